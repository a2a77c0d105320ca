"""Masks as people write them, in every call that takes one: by layer, as tables, and what is neither."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import headviz
from headviz import HeadMask, UserError
from headviz.attribution.attattr import attattr
from headviz.pruning.removal import repaired
from headviz.storage.exchange import own_mask
from support.tiny import PAIRS, TEXTS, tiny_classifier, tiny_model
from support.tiny_translation import tiny_translator

MASK = HeadMask.full(3, 4).without([(1, 2), (2, 0)])
TABLE = MASK.array()
FORMS: dict[str, Any] = {
    "by layer": {1: [2], 2: [0]},
    "JSON's keys": {"1": [2], "2": [0]},
    "sets and ranges": {1: {2}, 2: range(1)},
    "numpy's numbers": {np.int64(1): np.array([2]), 2: torch.tensor([0])},
    "booleans": TABLE,
    "an array": TABLE.astype(np.float32),
    "a tensor": torch.tensor(TABLE).to(torch.bfloat16),
    "lists": TABLE.astype(int).tolist(),
    "lists of booleans": TABLE.tolist(),
    "a list of arrays": list(TABLE),
    "a data frame": pd.DataFrame(TABLE),
}
WRONG: dict[str, Any] = {
    "a layer too many": {3: [0]},
    "a head too many": {0: [4]},
    "a negative layer": {-1: [0]},
    "half a layer": {0.5: [0]},
    "a truth value as a layer": {True: [0]},
    "a number for a list": {0: 1},
    "a text for a list": {0: "12"},
    "a truth value as a head": {0: [True]},
    "half a head": {0: [0.5]},
    "heads that are used up": {0: (head for head in [1])},
    "a table of another grid": np.ones((4, 3)),
    "a flat table": np.ones(12),
    "twos": np.full((3, 4), 2),
    "not a number": np.full((3, 4), np.nan),
    "halves": torch.full((3, 4), 0.5),
    "uneven rows": [[1] * 4, [1] * 4, [1] * 3],
    "tables in a table": [[np.ones(2)] * 4] * 3,
    "words": [["1"] * 4] * 3,
    "nothing": [],
    "pairs": [(0, 1)],
    "a text": "fff",
    "another type": object(),
}


def data() -> Any:
    return headviz.load_task("demo", limit=6)


CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "evaluate": lambda clf, mask: headviz.evaluate(clf, data(), mask).logits,
    "evaluator": lambda clf, mask: headviz.Evaluator(clf, data()).predictions(mask),
    "compare": lambda clf, mask: str(headviz.Evaluator(clf, data()).compare(mask, {0: [0]}).deltas),
    "prune": lambda clf, mask: headviz.prune(clf, mask).present.hex,
    "conductance": lambda clf, mask: headviz.conductance(clf, TEXTS[0], PAIRS[0], mask=mask, steps=4).attribution,
    "attattr": lambda clf, mask: attattr(clf, TEXTS[0], PAIRS[0], mask=mask, steps=4).attribution,
    "score_heads": lambda clf, mask: headviz.score_heads(clf, data(), score="taylor", mask=mask).values,
    "ablate": lambda clf, mask: headviz.ablate(clf, data(), base=mask).values,
    "patch": lambda clf, mask: (
        headviz.patch(clf, (TEXTS[0], PAIRS[0]), (TEXTS[0], PAIRS[1]), mask=mask, positions="all").effect
    ),
    "repaired": lambda clf, mask: repaired(clf, mask, data(), "none").classifier.present.hex,
    "speed": lambda clf, mask: headviz.speed(clf, mask, batches=(1,), length=8, repeats=2).mask.hex,
    "cost": lambda clf, mask: clf.cost(mask).parameters,
    "logits": lambda clf, mask: clf.logits(clf.collate(clf.encode(TEXTS, PAIRS)), mask).numpy(),
}


@pytest.mark.parametrize("call", CALLS)
def test_masks_by_layer_and_tables_do_what_a_head_mask_does(call: str) -> None:
    clf = tiny_classifier()
    expected = CALLS[call](clf, MASK)
    for form in ("by layer", "lists"):  # the two tests after this one take every form
        np.testing.assert_array_equal(CALLS[call](clf, FORMS[form]), expected, err_msg=form)


@pytest.mark.parametrize("form", ["JSON's keys", "booleans", "a tensor", "a data frame"])
def test_a_callers_own_model_takes_every_form(form: str) -> None:
    model, clf = tiny_model().eval(), tiny_classifier()
    inputs = clf.collate(clf.encode(TEXTS, PAIRS))
    with torch.no_grad():
        with headviz.masked(model, MASK):
            expected = model(**inputs).logits
        with headviz.masked(model, FORMS[form]):
            assert torch.equal(model(**inputs).logits, expected)
    headviz.prune_heads(model, FORMS[form])
    assert model.config.pruned_heads == {1: [2], 2: [0]}


@pytest.mark.parametrize("form", FORMS)
def test_what_needs_no_model_takes_every_form(form: str, tmp_path: Path) -> None:
    assert headviz.pruned_heads(FORMS[form]) == {1: [2], 2: [0]}
    for ending in (".json", ".npy", ".txt"):
        written = headviz.write_mask(FORMS[form], tmp_path / f"mask{ending}", shape=(3, 4))
        assert headviz.read_mask(written, 3, 4) == MASK
    if isinstance(FORMS[form], dict):
        with pytest.raises(UserError, match="as shape"):
            headviz.write_mask(FORMS[form], tmp_path / "mask.json")
    else:
        assert headviz.read_mask(headviz.write_mask(FORMS[form], tmp_path / "own.json"), 3, 4) == MASK


@pytest.mark.parametrize("layer", [-1, True, "x", 3, 0.5, None])
def test_what_is_no_number_of_a_layer_is_named(layer: Any) -> None:
    for call in (lambda m: headviz.read_mask(m, 3, 4), lambda m: own_mask(m, (3, 4))):
        for heads in ([0], []):
            with pytest.raises(UserError, match=rf"^{layer!r} is not the number of a layer.* 0 to 2"):
                call({layer: heads})


def test_rows_of_a_model_with_three_stacks() -> None:
    clf = tiny_translator("t5")
    row = clf.stacks["decoder"][1]
    assert clf.under({row: [3]}) == clf.under({str(row): (3,)}) == clf.present.without([(row, 3)])


@pytest.mark.parametrize(
    ("call", "what"),
    [*(("evaluate", what) for what in WRONG), ("prune", "twos"), ("conductance", "a text"), ("ablate", "twos")],
)
def test_what_is_no_mask_is_one_clear_line(call: str, what: str) -> None:
    with pytest.raises(UserError) as wrong:
        CALLS[call](tiny_classifier(), WRONG[what])
    assert "\n" not in str(wrong.value)


def test_nothing_is_removed_by_what_is_no_mask() -> None:
    model = tiny_model()
    for wrong in WRONG.values():
        with pytest.raises(UserError):
            headviz.prune_heads(model, wrong)
        with pytest.raises(UserError), headviz.masked(model, wrong):
            pass
    assert sum(w.numel() for w in model.parameters()) == sum(w.numel() for w in tiny_model().parameters())
