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
from headviz.extras.tickets.transfer_matrix import wanted
from headviz.extras.tickets.transfer_spec import TransferSpec
from headviz.pruning.finetuning import fine_tune
from headviz.pruning.options import FinetuneOptions
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


@pytest.mark.parametrize("form", FORMS)
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


@pytest.mark.slow
def test_a_transfer_takes_masks_by_layer_and_tables() -> None:
    demo = {"model": "demo", "task": "demo", "dev_limit": 4, "device": "cpu"}
    mask = HeadMask.full(12, 12).without([(3, 5)])
    masks = {"mask": mask, "by layer": {3: [5]}, "JSON's keys": {"3": [5]}, "table": mask.array().astype(int).tolist()}
    result = headviz.transfer(masks, {"demo": demo}, random=0)
    assert {entry.source for entry in result.entries} == set(masks)
    assert len({(entry.sparsity, entry.value, entry.change) for entry in result.entries}) == 1
    spec = TransferSpec.from_dict({"masks": {"a": {"3": [5]}}, "targets": {"demo": demo}})
    assert [w.mask for w in wanted(spec.masks_on(spec.open("demo", Path())), ("demo",), mask.full(12, 12))][1] == mask


@pytest.mark.parametrize("layer", [-1, True, "x", 3, 0.5, None])
def test_what_is_no_number_of_a_layer_is_named(layer: Any) -> None:
    for call in (lambda m: headviz.read_mask(m, 3, 4), tiny_classifier().under, lambda m: own_mask(m, (3, 4))):
        for heads in ([0], []):
            with pytest.raises(UserError, match=rf"^{layer!r} is not the number of a layer.* 0 to 2"):
                call({layer: heads})


@pytest.mark.slow
def test_training_takes_a_table() -> None:
    clf, options = tiny_classifier(), FinetuneOptions(epochs=1, batch=4)
    tables = [fine_tune(clf, data(), options, mask=mask).classifier.digest for mask in (MASK, TABLE, FORMS["by layer"])]
    assert len(set(tables)) == 1


def test_rows_of_a_model_with_three_stacks() -> None:
    clf = tiny_translator("t5")
    row = clf.stacks["decoder"][1]
    assert clf.under({row: [3]}) == clf.under({str(row): (3,)}) == clf.present.without([(row, 3)])


@pytest.mark.parametrize(
    ("call", "what"),
    [
        *(("evaluate", what) for what in WRONG),
        *((call, what) for call in ("prune", "conductance", "score_heads", "ablate") for what in ("twos", "a text")),
    ],
)
def test_what_is_no_mask_is_one_clear_line(call: str, what: str) -> None:
    with pytest.raises(UserError) as wrong:
        CALLS[call](tiny_classifier(), WRONG[what])
    assert "\n" not in str(wrong.value)


@pytest.mark.parametrize("what", WRONG)
def test_nothing_is_removed_by_what_is_no_mask(what: str) -> None:
    model = tiny_model()
    with pytest.raises(UserError):
        headviz.prune_heads(model, WRONG[what])
    with pytest.raises(UserError), headviz.masked(model, WRONG[what]):
        pass
    assert sum(w.numel() for w in model.parameters()) == sum(w.numel() for w in tiny_model().parameters())


def test_ablate_takes_a_model_and_data_or_an_evaluator() -> None:
    clf, examples = tiny_classifier(), data()
    evaluator = headviz.Evaluator(clf, examples)
    one, other = headviz.ablate(clf, examples), headviz.ablate(evaluator)
    np.testing.assert_array_equal(one.values, other.values)
    np.testing.assert_array_equal(headviz.ablate(clf, data=examples, base={0: [1]}).values[0, 1], np.nan)
    for wrong in ((clf,), (evaluator, examples), (examples, clf), ("demo", examples), (3,)):
        with pytest.raises(UserError):
            headviz.ablate(*wrong)
