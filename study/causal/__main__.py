"""Measure what study/causal.md says of the demo, and write it: ``python -m study.causal [--pairs N] [--examples N]``.

The sentences are made from the measurements, so another demo model gets other sentences. ``--kept FILE`` keeps what is
measured, so that a run that was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import headviz
from headviz.demo import planted_heads
from headviz.demo.reading import PHENOMENA, minimal_pairs
from headviz.heads import HeadId
from headviz.results import plain
from headviz.statistics.intervals import interval_of_mean
from study.causal.text import KINDS, SETS, ablated, alone, by_kind, direct, following, roles, together

PAGE = Path(__file__).resolve().parents[1] / "causal.md"

TITLE = "# What a head carries: patching and references"
INTRODUCTION = """*Planted* heads are those that training gave a known part: three for each phenomenon
(`headviz.demo.planted_heads`).

`headviz.patch` puts one head's output for a donor text into the pass of another text: 0 = the answer stays, 1 = it is
the donor's. `headviz.patch_pairs` averages over minimal pairs, which `headviz.demo.reading` draws: two pairs of
sentences that differ in one stretch of up to three words and in their label, none of them from the training data. The
interval is 95 % over pairs, q is Benjamini and Hochberg's over the 144 heads.""".splitlines()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--pairs", type=int, default=12, help="minimal pairs of each phenomenon")
    parser.add_argument("--examples", type=int, default=300, help="dev examples for ablation")
    parser.add_argument("--followed", type=int, default=6, help="of these pairs, those whose paths are followed")
    parser.add_argument("--kept", type=Path, help="a file that keeps what is measured")
    args = parser.parse_args()
    given = f"--pairs {args.pairs} --examples {args.examples} --followed {args.followed}"
    clf = headviz.load("demo", device="cpu")
    keep = Keep(args.kept, clf.digest)
    pairs, examples, followed = args.pairs, args.examples, args.followed
    result = {n: keep(f"patched {n} {pairs} {SETS}", partial(patched, clf, n, pairs)) for n in PHENOMENA}
    lines, heads = alone(result)
    sections = [lines, together(result)]
    kinds = {n: keep(f"kind {n} {examples}", partial(kind_costs, clf, n, examples)) for n in PHENOMENA}
    sections.append(by_kind(kinds, result))
    sections.append(ablated(keep(f"ablated {examples} {heads}", lambda: costs(clf, examples, heads))))
    sections.append(direct(keep(f"direct {examples}", lambda: direct_shares(clf, examples))))
    sections.append(roles())
    sections.append(following({n: keep(f"paths {n} {followed}", partial(paths, clf, n, followed)) for n in PHENOMENA}))
    asked = f"Written by `python -m study.causal {given}` on the shipped demo."
    body = [line for section in sections for line in ("", *section)]
    PAGE.write_text("\n".join([TITLE, "", asked, *INTRODUCTION, *body, ""]), encoding="utf-8")


class Keep:
    """Measurements as JSON, by name. Those of another model are not taken."""

    def __init__(self, place: Path | None, of: str) -> None:
        self.place, self.of, self.start = place, of, time.perf_counter()
        read = json.loads(place.read_text()) if place is not None and place.is_file() else {}
        self.found: dict[str, Any] = read.get("found", {}) if read.get("of") == of else {}

    def __call__(self, name: str, measure: Callable[[], Any]) -> Any:
        if name not in self.found:
            self.found[name] = plain(measure())
            if self.place is not None:
                self.place.write_text(json.dumps({"of": self.of, "found": self.found}))
            print(f"{name}: {time.perf_counter() - self.start:.0f} s", flush=True)
        return self.found[name]


def pairs_of(name: str, count: int) -> list[Any]:
    return [((a.premise, a.hypothesis), (b.premise, b.hypothesis)) for a, b in minimal_pairs(name, count)]


def patched(clf: headviz.Classifier, name: str, count: int) -> dict[str, Any]:
    """Every head alone, and the planted ones together beside random sets from the same layers."""
    pairs, rng = pairs_of(name, count), np.random.default_rng(0)
    own = planted_heads(name)
    others = [[h for h in clf.present.kept if h.layer == head.layer and h not in own] for head in own]
    sets: list[list[HeadId]] = []
    while len(sets) < SETS:
        drawn = [free[rng.integers(len(free))] for free in others]
        if len(set(drawn)) == len(drawn):
            sets.append(drawn)
    result = headviz.patch_pairs(clf, pairs, sets=[own, *sets])
    mean, low, high = interval_of_mean(result.together[:, 0])
    random = np.abs(result.together[:, 1:].mean(axis=0))
    return {
        "of": len(pairs),
        "n": result.n,
        "mean": result.mean,
        "low": result.interval_low,
        "high": result.interval_high,
        "clear": int((result.q_value < 0.05).sum()),
        "together": [mean, low, high],
        "beaten": int((random < abs(mean)).sum()),
    }


def of_kind(data: headviz.Dataset, name: str, most: int) -> headviz.Dataset:
    return data.subset(np.flatnonzero(np.array(data.slices) == name)[:most])


def kind_costs(clf: headviz.Classifier, name: str, count: int) -> dict[str, Any]:
    """The cost of the three planted heads on their own examples, by whose outputs stand in their place."""
    train = headviz.load_task("demo", split="train")
    data, mask = of_kind(headviz.load_task("demo"), name, count), clf.full_mask.without(planted_heads(name))
    every, own = headviz.sample(train, 192, length_filter=None), of_kind(train, name, 192)
    out: dict[str, Any] = {"n": len(data)}
    for what, kind, reference in (
        ("zero", "zero", None),
        ("all", "mean", every),
        ("own", "mean", own),
        ("drawn", "resample", every),
        ("drawn own", "resample", own),
    ):
        out[what] = cost(headviz.evaluator_of(clf, data, ablation=kind, reference=reference), mask)
    return out


def cost(evaluator: headviz.Evaluator, mask: headviz.HeadMask) -> list[float]:
    """Points of accuracy lost with their interval; of several draws the mean of each."""
    result = [one.compare(mask).primary for one in evaluator.each_draw()]
    rows = [[-100 * d.delta, -100 * d.interval_high, -100 * d.interval_low] for d in result]
    return [0.0 + float(v) for v in np.mean(rows, axis=0)]


def costs(clf: headviz.Classifier, count: int, heads: list[HeadId]) -> dict[str, Any]:
    """The cost of some heads by what stands in their place."""
    data = headviz.load_task("demo", limit=count)
    reference = headviz.sample(headviz.load_task("demo", split="train"), 256, length_filter=None)
    out: dict[str, Any] = {"n": len(data), "heads": {head.dotted: {} for head in dict.fromkeys(heads)}}
    for kind in KINDS:
        evaluator = headviz.evaluator_of(clf, data, ablation=kind, reference=None if kind == "zero" else reference)
        out["full"] = evaluator.evaluate().metrics["accuracy"]
        for name, cells in out["heads"].items():
            cells[kind] = cost(evaluator, clf.full_mask.without([name]))
    return out


def direct_shares(clf: headviz.Classifier, count: int) -> dict[str, Any]:
    """Over dev examples: each head's direct contribution to the predicted score, beside its single ablation."""
    data = headviz.load_task("demo", limit=count)
    assert data.pairs is not None
    own, lost, off = [], [], []
    for text, pair in zip(data.texts, data.pairs, strict=True):
        result = headviz.contributions(clf, text, pair)
        own.append(result.heads[..., result.predicted])
        lost.append(result.ablation[..., result.predicted])
        off.append(abs(result.total - result.logits).max())
    heads, without = np.array(own), np.array(lost)
    rank = [float(np.corrcoef(a.argsort().argsort(), b.argsort().argsort())[0, 1]) for a, b in _flat(heads, without)]
    return {
        "n": len(data),
        "rank": interval_of_mean(rank),
        "own": np.abs(heads).mean(axis=0),
        "lost": np.abs(without).mean(axis=0),
        "off": max(off),
    }


def _flat(a: np.ndarray, b: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    return [(x.ravel(), y.ravel()) for x, y in zip(a, b, strict=True)]


def paths(clf: headviz.Classifier, name: str, count: int) -> dict[str, Any]:
    pairs = pairs_of(name, count)
    return {**headviz.paths(clf, pairs).to_dict(), "of": len(pairs)}


if __name__ == "__main__":
    main()
