"""What the demo's heads do, from exact ablation: `python -m tools.demo.abilities` (some minutes).

Heads are chosen on one half of the dev set; every figure is measured on the other half. The
tables go into card.json; `python -m tools.demo.card` prints them.
"""

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headviz.demo import DATA, PHENOMENA, read_split
from headviz.demo.reading import Example
from headviz.evaluation.evaluator import Evaluator
from headviz.heads import HeadId, HeadMask

from . import search
from .network import HEADS

CARRIES = 0.10  # a head carries a phenomenon if its removal alone costs this much, and costs no other as much
CURVE = tuple(step / 20 for step in range(1, 19))


@dataclass
class Probe:
    """Right and wrong answers under masks, remembered; examples of even rank choose, odd ones report."""

    evaluator: Evaluator
    names: tuple[str, ...] = PHENOMENA

    def __post_init__(self) -> None:
        slices = np.array(self.evaluator.data.slices)
        self.groups = {name: np.flatnonzero(slices == name) for name in self.names}
        self.full = HeadMask.full(self.evaluator.clf.num_layers, self.evaluator.clf.num_heads)
        self.base = self.right(self.full)

    def right(self, mask: HeadMask) -> NDArray[np.bool_]:
        """Per example: answered rightly under this mask."""
        result = self.evaluator.predictions(mask, keep=False) == np.asarray(self.evaluator.data.gold)
        return np.asarray(result, dtype=bool)

    def accuracy(self, right: NDArray[np.bool_], half: int | None) -> dict[str, float]:
        """Accuracy per phenomenon on one half (0 chooses, 1 reports) or on all."""
        part = slice(None) if half is None else slice(half, None, 2)
        return {name: float(right[rows[part]].mean()) for name, rows in self.groups.items()}

    def costs(self, right: NDArray[np.bool_], half: int | None) -> dict[str, float]:
        """Accuracy lost per phenomenon."""
        full, now = self.accuracy(self.base, half), self.accuracy(right, half)
        return {name: full[name] - now[name] for name in self.names}


def measure(evaluator: Evaluator) -> dict[str, Any]:
    """All head tables of the card."""
    probe = Probe(evaluator)
    heads = probe.full.kept
    single = {head: probe.right(probe.full.without([head])) for head in heads}
    chosen = {head: probe.costs(right, 0) for head, right in single.items()}
    reported = {head: probe.costs(right, 1) for head, right in single.items()}
    return {
        "heads_total": len(heads),
        "sets": [_carriers(probe, name, chosen, reported) for name in probe.names],
        "shared": [f"{h.layer}.{h.head}" for h in heads if sum(c >= CARRIES for c in chosen[h].values()) > 1],
        "removal": _removal(probe),
        "cost": {f"{h.layer}.{h.head}": {n: round(v, 4) for n, v in reported[h].items()} for h in heads},
    }


def _carriers(probe: Probe, name: str, chosen: dict[HeadId, Any], reported: dict[HeadId, Any]) -> dict[str, Any]:
    """The heads that carry a phenomenon, the costliest first: what each costs alone, and all of them together."""
    ranked = sorted(chosen, key=lambda h: (-chosen[h][name], h))
    members = [head for head in ranked if [n for n, cost in chosen[head].items() if cost >= CARRIES] == [name]]
    together = probe.costs(probe.right(probe.full.without(members)), 1)
    others = [together[other] for other in probe.names if other != name]
    return {
        "phenomenon": name,
        "heads": [f"{h.layer}.{h.head}" for h in members],
        "alone": [round(reported[h][name], 4) for h in members],
        "cost": round(together[name], 4),
        "others_over_5": sum(cost > 0.05 for cost in others),
        "mean_other": round(float(np.mean(others)), 4),
    }


def _removal(probe: Probe) -> list[dict[str, float]]:
    """Accuracy on the reporting half as heads go, in the order in which gates close under a rising price."""
    report = np.concatenate([rows[1::2] for rows in probe.groups.values()])
    clf = probe.evaluator.clf
    pool: dict[str, list[Example]] = {name: [] for name in probe.names}
    for example in read_split("train"):
        pool[example.phenomenon].append(example)
    gates = search.kept_by_all(clf.model, clf.tokenizer, pool)
    order = [HeadId(int(place) // HEADS, int(place) % HEADS) for place in gates.ravel().argsort()]
    out = [{"share": 0.0, "accuracy": round(float(probe.base[report].mean()), 4)}]
    for share in CURVE:
        gone = order[: round(share * len(order))]
        out.append({"share": share, "accuracy": round(float(probe.right(probe.full.without(gone))[report].mean()), 4)})
    return out


def main() -> None:
    """Measure the shipped model and store the tables in its card."""
    import argparse

    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    from headviz.models.loading import load
    from headviz.tasks import load_task

    tables = measure(Evaluator(load("demo"), load_task("demo")))
    path = DATA / "card.json"
    card = json.loads(path.read_text()) if path.exists() else {}
    card["heads"] = tables
    path.write_text(json.dumps(card, indent=1) + "\n")
    for row in tables["sets"]:
        print(row)
    print(tables["removal"])


if __name__ == "__main__":
    main()
