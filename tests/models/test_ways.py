"""Where a pruned model of each family and job runs: the largest difference in each way, or why it is refused.

``python tests/models/test_ways.py [NAME …]`` measures the ways and writes ``docs/ways.json``, from which the table in
docs/families.md is made. The test measures them again.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

import headviz
from headviz.errors import UserError
from headviz.heads import CLASSIFICATION
from headviz.models.onnx import NEEDED, Session
from headviz.pruning.algorithms import NOTHING
from headviz.pruning.export import FILE, quantise
from headviz.pruning.faster import require_possible
from headviz.pruning.options import FasterOptions
from support.jobs import model_of
from support.marks import seeds
from support.tiny import ALL_FAMILIES, PAIRS, TEXTS, tiny_classifier

RECORD = Path(__file__).resolve().parents[2] / "docs/ways.json"
# one of each way in which attention is done; the others are measured before a release
KINDS = ("bert", "albert", "modernbert", "deberta-v2", "phi3")
JOBS = tuple(f"bert {job}" for job in ("labels", "number", "rank", "tokens", "span", "vector"))
IN_CI = (*KINDS, *JOBS)
WRITTEN = ("deberta-v2", "bert tokens")  # in CI those whose graph is written, which takes longest
# the largest difference that passes; int8 may differ by twice as much as recorded. MobileBERT joins tokens with their
# padding
EQUAL = {"masked": 1e-5, "pruned": 1e-5, "headviz": 0.0, "ONNX": 1e-4}
UNEQUAL = {"mobilebert": 2e-2}

Outcome = float | str


class Pruned:
    """A small random model with heads removed, or under that mask where it cannot lose any.

    ``name`` is a family, whose classifier is meant, or a family and a job.
    """

    def __init__(self, name: str, place: Path) -> None:
        family, _, job = name.partition(" ")
        self.clf, self.place = model_of(job, family) if job else tiny_classifier(family), place
        empty = [] if self.clf.family.why_not_empty else [(1, head) for head in range(self.clf.num_heads)]
        # as many of each group of queries, which is what plain shapes allow
        group = self.clf.num_heads // int(getattr(self.clf.config, "num_key_value_heads", None) or self.clf.num_heads)
        first = range(0, self.clf.num_heads, group)
        shared = [(row, 1) for row in range(self.clf.num_layers)]
        own = [(0, 1), (2, 0)] if group == 1 else [(row, head) for row in (0, 2) for head in first]
        self.mask = self.clf.full_mask.without(shared if self.clf.family.shared_layers else [*own, *empty])
        paired = self.clf.answer.num_texts != 1 and job != "vector"
        self.batch = self.clf.collate(self.clf.encode(TEXTS, PAIRS if paired else None))
        self.small = headviz.prune(self.clf, self.mask) if self.clf.family.prunable else None

    def apart(self, output: Any, expected: torch.Tensor) -> float:
        result = torch.as_tensor(output)
        assert torch.equal(result.isnan(), expected.isnan())  # where a text has no word
        return float((result - expected).nan_to_num().abs().max())

    def graph(self, clf: Any) -> tuple[torch.Tensor, ...]:
        """What a model gives by headviz, by the names in ``answer.graph``."""
        with torch.inference_mode():
            result: tuple[torch.Tensor, ...] = clf.graph(self.batch, clf.call())
        return result

    def require_small(self) -> Any:
        return self.small if self.small is not None else headviz.prune(self.clf, self.mask)

    def masked(self) -> float:
        """Against the model whose output matrices do not read the heads."""
        other = headviz.load(self.clf.export_masked(self.place / "zeroed", self.mask), device="cpu")
        return self.apart(self.clf.outputs_under(self.batch, self.mask), other.outputs_under(self.batch))

    def pruned(self) -> float:
        masked = self.clf.outputs_under(self.batch, self.mask)
        return self.apart(self.require_small().outputs_under(self.batch), masked)

    @cached_property
    def saved(self) -> Path:
        return self.require_small().save(self.place / "small")

    def headviz(self) -> float:
        other = headviz.load(self.saved, device="cpu")
        return self.apart(other.outputs_under(self.batch), self.small.outputs_under(self.batch))

    def transformers(self) -> float:
        model = getattr(transformers, self.clf.answer.auto_class).from_pretrained(self.saved).eval()
        with torch.no_grad():
            output = model(**{name: rows for name, rows in self.batch.items() if name != "places"})
        named = zip(self.clf.answer.graph, self.graph(self.small), strict=True)
        return max(self.apart(output[name], expected) for name, expected in named if name in output)

    def portable(self) -> float:
        """Saving compares the logits itself."""
        self.require_small().save(self.place / "portable", portable=True)
        return 0.0

    def sentence_transformers(self) -> float:
        from sentence_transformers import CrossEncoder, SentenceTransformer

        if self.clf.job == "vector":
            embedder = SentenceTransformer(str(self.saved), device="cpu")
            with torch.no_grad():
                return self.apart(embedder(dict(self.batch))["sentence_embedding"], self.graph(self.small)[1])
        if self.clf.kind != CLASSIFICATION:
            raise UserError("sentence-transformers has no models of this job.")
        model = CrossEncoder(str(self.saved), device="cpu", activation_fn=torch.nn.Identity())
        with torch.no_grad():
            return self.apart(model(dict(self.batch))["scores"], self.small.outputs_under(self.batch))

    def faster(self) -> float:
        """As it is, or with ``--repair none``."""
        require_possible(self.clf, FasterOptions(repair=NOTHING))
        return 0.0

    @cached_property
    def graph_file(self) -> Path:
        return headviz.export(self.small or self.clf, self.place / "onnx", batch=1, length=4).path / FILE

    def onnx(self, file: Path | None = None) -> float:
        model = self.small or self.clf
        expected = model.from_graph(self.graph(model), self.batch)
        return self.apart(Session(model, file or self.graph_file).outputs(self.batch), expected)

    def int8(self) -> float:
        """As ``headviz.export`` does it, without writing the graph once more."""
        return self.onnx(quantise(self.graph_file, self.place / FILE))


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
    """The largest difference of an output, or the line that refuses."""
    try:
        return WAYS[way](made)
    except UserError as error:
        return str(error)


def outcomes(name: str, ways: Iterable[str] = WAYS) -> dict[str, Outcome]:
    with tempfile.TemporaryDirectory() as place:
        made = Pruned(name, Path(place))
        return {way: outcome(made, way) for way in ways}


@pytest.mark.slow
@pytest.mark.parametrize("name", seeds(IN_CI, [name for name in (*ALL_FAMILIES, *JOBS) if name not in IN_CI]))
def test_each_way_is_as_recorded(name: str) -> None:
    for package in (*NEEDED, "sentence_transformers"):
        pytest.importorskip(package)
    recorded = json.loads(RECORD.read_text(encoding="utf-8"))[name]
    assert list(recorded) == list(WAYS)
    quick = name in IN_CI and name not in WRITTEN
    now = outcomes(name, [way for way in WAYS if not (quick and way in ("ONNX", "int8"))])
    for way, result in now.items():
        assert isinstance(result, str) == isinstance(recorded[way], str), f"{way}: {result}, not {recorded[way]}"
        if not isinstance(result, str):
            rounded = 2 * recorded[way] if way == "int8" else 0.0
            assert result <= max(rounded, EQUAL.get(way, UNEQUAL.get(name, 1e-5))), way


def main(names: list[str]) -> None:
    known = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}
    for name in names or (*ALL_FAMILIES, *JOBS):
        known[name] = outcomes(name)
        print(name, known[name], flush=True)
        ordered = {name: known[name] for name in (*ALL_FAMILIES, *JOBS) if name in known}
        RECORD.write_text(json.dumps(ordered, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
