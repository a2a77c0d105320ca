"""The published schema is met by what the library and the commands give, and refuses what does not meet it."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

import headviz
from headviz.runs.record import STATES
from support.tiny import tiny_classifier

jsonschema = pytest.importorskip("jsonschema")
SCHEMA = json.loads((Path(__file__).parents[2] / "docs/schema/results-1.json").read_text(encoding="utf-8"))


def check(name: str, found: Any) -> None:
    one = {"$schema": SCHEMA["$schema"], "$defs": SCHEMA["$defs"], "$ref": f"#/$defs/{name}"}
    jsonschema.Draft202012Validator(one).validate(json.loads(json.dumps(found, allow_nan=False)))


def results(tmp_path: Path) -> dict[str, Any]:
    clf, data = tiny_classifier(), headviz.load_task("demo", limit=12)
    mask = headviz.HeadMask.full(clf.num_layers, clf.num_heads).without("0.1")
    evaluator = headviz.evaluator_of(clf, data)
    compared = headviz.evaluate(clf, data, mask=mask).to_dict() | {"comparison": evaluator.compare(mask).to_dict()}
    headviz.write_mask(mask, tmp_path / "mask.json")
    return {
        "evaluation": compared,
        "scores": headviz.score_heads(clf, data, score="gates-causal", steps=2).to_dict(),
        "ablation": headviz.ablate(evaluator).to_dict(),
        "paired": headviz.paired([0, 1] * 9, [0, 1] * 9, [1, 1] * 9).to_dict(),
        "mask": json.loads((tmp_path / "mask.json").read_text()),
    }


@pytest.mark.slow
def test_results_meet_it_and_broken_ones_do_not(tmp_path: Path) -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    for name, result in results(tmp_path).items():
        check(name, result)
        for field in SCHEMA["$defs"][name]["required"]:
            without = copy.deepcopy(result)
            del without[field]
            with pytest.raises(jsonschema.ValidationError, match=field):
                check(name, without)


def test_every_state_of_a_run_is_named() -> None:
    assert set(SCHEMA["$defs"]["run"]["properties"]["state"]["enum"]) == set(STATES)
