"""Where a pruned model of each family runs: the largest difference of a logit in each way, or why it is refused.

``python tests/models/test_ways.py [FAMILY …]`` measures the ways and writes ``docs/ways.json``, from which the table in
docs/families.md is made. The test measures them again.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForSequenceClassification

import headviz
from headviz.errors import UserError
from headviz.models.onnx import NEEDED, Session
from headviz.pruning.algorithms import NOTHING
from headviz.pruning.export import FILE
from headviz.pruning.faster import require_possible
from headviz.pruning.options import FasterOptions
from support.marks import seeds
from support.tiny import ALL_FAMILIES, PAIRS, TEXTS, tiny_classifier

RECORD = Path(__file__).resolve().parents[2] / "docs/ways.json"
# one of each way in which attention is done; the others are measured before a release
KINDS = ("bert", "albert", "modernbert", "deberta-v2", "phi3")
# the largest difference that passes; int8 may differ by twice as much as recorded. MobileBERT joins tokens with their
# padding
EQUAL = {"masked": 1e-5, "pruned": 1e-5, "headviz": 0.0, "ONNX": 1e-4}
UNEQUAL = {"mobilebert": 2e-2}

Outcome = float | str


class Pruned:
    """A small random model of a family with heads removed, or under that mask where it cannot lose any."""

    def __init__(self, family: str, place: Path) -> None:
        self.clf, self.place = tiny_classifier(family), place
        empty = [] if self.clf.family.why_not_empty else [(1, head) for head in range(self.clf.num_heads)]
        # as many of each group of queries, which is what plain shapes allow
        group = self.clf.num_heads // int(getattr(self.clf.config, "num_key_value_heads", None) or self.clf.num_heads)
        first = range(0, self.clf.num_heads, group)
        shared = [(row, 1) for row in range(self.clf.num_layers)]
        own = [(0, 1), (2, 0)] if group == 1 else [(row, head) for row in (0, 2) for head in first]
        self.mask = self.clf.full_mask.without(shared if self.clf.family.shared_layers else [*own, *empty])
        self.batch = self.clf.collate(self.clf.encode(TEXTS, PAIRS))
        self.small = headviz.prune(self.clf, self.mask) if self.clf.family.prunable else None

    def apart(self, logits: Any, expected: torch.Tensor) -> float:
        return float((torch.as_tensor(logits) - expected).abs().max())

    def require_small(self) -> Any:
        return self.small if self.small is not None else headviz.prune(self.clf, self.mask)

    def masked(self) -> float:
        """Against the model whose output matrices do not read the heads."""
        other = headviz.load(self.clf.export_masked(self.place / "zeroed", self.mask), device="cpu")
        return self.apart(self.clf.logits(self.batch, self.mask), other.logits(self.batch))

    def pruned(self) -> float:
        return self.apart(self.require_small().logits(self.batch), self.clf.logits(self.batch, self.mask))

    @cached_property
    def saved(self) -> Path:
        return self.require_small().save(self.place / "small")

    def headviz(self) -> float:
        return self.apart(headviz.load(self.saved, device="cpu").logits(self.batch), self.small.logits(self.batch))

    def transformers(self) -> float:
        model = AutoModelForSequenceClassification.from_pretrained(self.saved).eval()
        with torch.no_grad():
            return self.apart(model(**self.batch).logits, self.small.logits(self.batch))

    def portable(self) -> float:
        """Saving compares the logits itself."""
        self.require_small().save(self.place / "portable", portable=True)
        return 0.0

    def sentence_transformers(self) -> float:
        from sentence_transformers import CrossEncoder

        model = CrossEncoder(str(self.saved), device="cpu", activation_fn=torch.nn.Identity())
        with torch.no_grad():
            return self.apart(model(dict(self.batch))["scores"], self.small.logits(self.batch))

    def faster(self) -> float:
        """As it is, or with ``--repair none``."""
        require_possible(self.clf, FasterOptions(repair=NOTHING))
        return 0.0

    def onnx(self, precision: str = "float32") -> float:
        model = self.small or self.clf
        found = headviz.export(model, self.place / precision, precision, batch=1, length=4)
        return self.apart(Session(found.path / FILE).logits(self.batch), model.logits(self.batch))

    def int8(self) -> float:
        return self.onnx("int8")


WAYS: Mapping[str, Callable[[Pruned], float]] = {
    "masked": Pruned.masked,
    "pruned": Pruned.pruned,
    "headviz": Pruned.headviz,
    "transformers": Pruned.transformers,
    "portable": Pruned.portable,
    "sentence-transformers": Pruned.sentence_transformers,
    "ONNX": Pruned.onnx,
    "int8": Pruned.int8,
    "faster": Pruned.faster,
}


def outcome(made: Pruned, way: str) -> Outcome:
    """The largest difference of a logit, or the line that refuses."""
    try:
        return WAYS[way](made)
    except UserError as error:
        return str(error)


def outcomes(family: str) -> dict[str, Outcome]:
    with tempfile.TemporaryDirectory() as place:
        made = Pruned(family, Path(place))
        return {way: outcome(made, way) for way in WAYS}


@pytest.mark.slow
@pytest.mark.parametrize("family", seeds(KINDS, [name for name in ALL_FAMILIES if name not in KINDS]))
def test_each_way_is_as_recorded(family: str) -> None:
    for name in (*NEEDED, "sentence_transformers"):
        pytest.importorskip(name)
    recorded, now = json.loads(RECORD.read_text(encoding="utf-8"))[family], outcomes(family)
    assert list(recorded) == list(now)
    for way, found in now.items():
        assert isinstance(found, str) == isinstance(recorded[way], str), f"{way}: {found}, not {recorded[way]}"
        if not isinstance(found, str):
            rounded = 2 * recorded[way] if way == "int8" else 0.0
            assert found <= max(rounded, EQUAL.get(way, UNEQUAL.get(family, 1e-5))), way


def main(families: list[str]) -> None:
    known = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}
    for family in families or ALL_FAMILIES:
        known[family] = outcomes(family)
        print(family, known[family], flush=True)
        ordered = {name: known[name] for name in ALL_FAMILIES if name in known}
        RECORD.write_text(json.dumps(ordered, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
