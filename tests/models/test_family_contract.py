"""What every entry of the table of families must do, and a family from outside that gives no more than its paths.

The other tests with a ``family`` parameter run over the same table; those of translation models are in
``test_translator``.
"""

import copy
import dataclasses
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from captum.attr import LayerConductance

import headviz
from headviz import HeadMask
from headviz.attribution.integration import sweep
from headviz.attribution.rules import PathOptions
from headviz.attribution.walk import Walk
from headviz.errors import ModelError
from headviz.evaluation.evaluator import Evaluator, EvaluatorOptions
from headviz.heads import ENCODER
from headviz.models.families import FAMILIES, family_of
from headviz.models.families.sheet import Attention, Family, Layers
from headviz.models.fast.stages import how_evaluated
from headviz.models.pruning import weight_of
from headviz.pruning.removal import repaired, require_repairable
from support.marks import OWN_WAYS, all_in_ci, some_in_ci
from support.plain import evaluate
from support.scored_data import made
from support.tiny import ALL_FAMILIES, PAIRS, TEXTS, worn_classifier, worn_model
from support.tiny_translation import tiny_translator

_LAYER = "encoder.layer.{i}"
GUEST = Family(  # no more than its paths, as a plugin would write it
    "A guest",
    "xmod",
    attention={
        ENCODER: Attention(
            query=f"{_LAYER}.attention.self.query",
            key=f"{_LAYER}.attention.self.key",
            value=f"{_LAYER}.attention.self.value",
            output=f"{_LAYER}.attention.output.dense",
        )
    },
    layers={
        ENCODER: Layers(
            modules="encoder.layer",
            count="num_hidden_layers",
            writes=("attention.output.dense", "output.dense"),
            inner=("intermediate.dense",),
            outer="output.dense",
        )
    },
    embeddings="embeddings",
    position_offset=True,
    tiny={"max_position_embeddings": 66, "type_vocab_size": 1, "pad_token_id": 1, "default_language": "en_XX"},
)

ALL = [*ALL_FAMILIES, GUEST.model_type]
# quick: one of each way in which attention and pruning are done; the others in CI
WAYS = ("bert", "albert", "modernbert", "mpnet", "deberta-v2", "gpt2", "gemma2", "t5", GUEST.model_type)
each_family = pytest.mark.parametrize("family", all_in_ci(ALL, WAYS))
each_way = pytest.mark.parametrize("family", some_in_ci(ALL, WAYS, [*OWN_WAYS, "distilbert", "roberta", "bart"]))


@pytest.fixture(autouse=True)
def guest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(FAMILIES, GUEST.model_type, GUEST)


def batch_of(clf: headviz.Classifier) -> dict[str, torch.Tensor]:
    return clf.collate(clf.encode(TEXTS, PAIRS))


def some_off(clf: headviz.Classifier) -> HeadMask:
    """A mask with different heads in every row; shared layers lose the same head."""
    if clf.family.shared_layers:
        return clf.full_mask.without([(row, 1) for row in range(clf.num_layers)])
    more = [(row, row % clf.num_heads) for row in range(3, clf.num_layers)]
    return clf.full_mask.without([(0, 1), (1, 0), (1, 3), (2, 2), *more])


# the sheets ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", all_in_ci([*ALL, "marian"], [*WAYS, "marian"]))
def test_what_a_sheet_names_is_there(family: str) -> None:
    sheet = family_of(family)
    clf = worn_classifier(family) if sheet.classifies else tiny_translator(family)
    assert sheet.model_type == family
    assert list(sheet.attention) == list(clf.stacks)
    for path in (sheet.embeddings, *(a.position_table for a in sheet.attention.values() if a.position_table)):
        assert clf.module(path) is not None
    for stack, rows in clf.stacks.items():
        reader = sheet.attention[stack].reader
        for layer in range(len(rows)):
            assert weight_of(clf.projections(rows[layer]).output).shape[1] == clf.num_heads * clf.head_size
            assert not reader or clf.module(sheet.reader(stack, layer)) is not None
    for layers in sheet.layers.values():
        modules = clf.module(layers.modules)
        assert sheet.why_layers_stay or getattr(clf.config, layers.count) == len(modules)
        for module in modules if not sheet.why_layers_stay else ():
            inside = dict(module.named_modules())
            assert {*layers.writes, layers.outer} <= set(inside)
            assert set(layers.inner) & set(inside)


# masks --------------------------------------------------------------------------------------------


@each_family
@torch.no_grad()
def test_without_a_mask_it_is_transformers_and_a_mask_zeroes_what_the_output_matrix_reads(family: str) -> None:
    """The slow, obvious meaning of a mask, in transformers' own eager attention, text by text."""
    clf = worn_classifier(family)
    batch, mask = batch_of(clf), some_off(clf)
    model = worn_model(family, attn_implementation="eager")
    full = _one_by_one(model, clf)
    torch.testing.assert_close(clf.logits(batch), full, atol=1e-5, rtol=1e-5)
    theirs = dataclasses.replace(clf, model=_as_ours(model))
    for row in range(clf.num_layers):
        matrix = theirs.projections(row).output
        columns = weight_of(matrix)  # a view of the weight
        for head in mask.off_in(row):
            columns[:, head * clf.head_size : (head + 1) * clf.head_size] = 0
    model.config._attn_implementation = "eager"
    result = clf.logits(batch, mask)
    assert (result - full).abs().max() > 1e-3
    torch.testing.assert_close(result, _one_by_one(model, clf), atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(clf.logits(batch, mask, kernel="eager"), result, atol=1e-5, rtol=1e-5)


def _one_by_one(model: Any, clf: headviz.Classifier) -> torch.Tensor:
    return torch.cat([model(**clf.collate([e])).logits for e in clf.encode(TEXTS, PAIRS)])


def _as_ours(model: Any) -> Any:
    model.config._attn_implementation = "headviz"
    return model


@each_way
def test_a_model_that_passes_a_layer_over_raises(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mask that is not applied must raise: attention that never asks for its entry is noticed."""
    clf = worn_classifier(family)
    attention = clf.attention_module(0)
    plain = type(worn_model(family).base_model.get_submodule(_path(clf, 0)))
    if clf.family.own_attention is not None:
        attention.__class__ = plain
    if hasattr(attention, "config"):
        attention.config = copy.deepcopy(attention.config)
        attention.config._attn_implementation = "eager"
    with pytest.raises(ModelError, match="the mask was not applied everywhere"):
        clf.logits(batch_of(clf), some_off(clf))


def _path(clf: headviz.Classifier, row: int) -> str:
    paths, where = clf.attention(row)
    return paths.module.format(**where)


@each_way
def test_toggles_without_padding_equal_plain_evaluation_with_it(family: str) -> None:
    clf, data, rng = worn_classifier(family, spread=0.15), made(8), random.Random(1)
    budgets = (60_000, 2**30)
    evaluators = [Evaluator(clf, data, EvaluatorOptions(budget=b, chunk_tokens=150)) for b in budgets]
    full = clf.full_mask
    mask = full
    for step in range(4):
        plain = evaluate(clf, data, mask).logits
        for evaluator, budget in zip(evaluators, budgets, strict=True):
            np.testing.assert_allclose(evaluator.evaluate(mask).logits, plain, rtol=0, atol=1e-5)
            assert evaluator.memory <= budget
        if step != 2:
            mask = mask.toggled([(rng.randrange(full.num_layers), rng.randrange(4))])
        else:
            mask = full.without_random(rng.randint(0, full.num_layers * 4), seed=rng.random())


# conductance --------------------------------------------------------------------------------------


def captum_maps(clf: headviz.Classifier, family: str, walk: Walk, target: int, steps: int) -> Iterator[Any]:
    """Captum's attribution of every row's probabilities, under transformers' own eager attention."""
    model = worn_model(family, attn_implementation="eager")
    own = clf.family.own_attention is not None
    wanted = {"output_attentions": True} if own else {}  # else these modules give no probabilities
    names = list(walk.batch)

    def logits(embeddings: torch.Tensor, *rest: torch.Tensor) -> torch.Tensor:
        batch = {"inputs_embeds": embeddings, **dict(zip(names, rest, strict=True))}
        run = clf.family.forward
        result: torch.Tensor = model(**batch, **wanted).logits if run is None else run(model, batch, wanted)
        return result

    for row in range(clf.num_layers):
        module = model.base_model.get_submodule(_path(clf, row))
        result = LayerConductance(logits, module).attribute(
            walk.end, walk.start, target=target, additional_forward_args=tuple(walk.batch.values()), n_steps=steps
        )
        yield result[1].detach().numpy()


@each_way
def test_the_captum_rule_is_captum_in_every_layer(family: str) -> None:
    clf, steps = worn_classifier(family), 5
    encodings = clf.encode(TEXTS, PAIRS)
    walk = Walk(clf, encodings, [2] * len(TEXTS), None)
    torch.testing.assert_close(walk.at_input(keep=False)[0], clf.logits(batch_of(clf)), atol=1e-5, rtol=1e-5)
    if clf.family.shared_layers:
        pytest.skip("Captum cannot tell the layers of one module apart")
    if family == "t5":
        pytest.skip("Captum cannot read a module that also returns position biases, which have no batch")
    result = sweep(clf, encodings, [2] * len(TEXTS), PathOptions(steps, "captum"))
    for row, maps in enumerate(captum_maps(clf, family, walk, 2, steps)):
        assert np.abs(maps).max() > 1e-7
        for i, e in enumerate(encodings):
            t = len(e)
            np.testing.assert_allclose(
                result[i].attribution[row], maps[i, :, :t, :t], rtol=1e-4, atol=4e-6 * np.abs(maps).max()
            )


# pruning, saving ----------------------------------------------------------------------------------


@pytest.mark.slow
@each_family
def test_pruned_equals_masked_or_says_why_not_and_both_survive_a_reload(family: str, tmp_path: Path) -> None:
    clf = worn_classifier(family)
    digest, batch, mask = clf.digest, batch_of(clf), some_off(clf)
    again = headviz.load(clf.save(tmp_path / "whole"), device="cpu")
    assert again.digest == digest
    assert torch.equal(again.logits(batch), clf.logits(batch))
    if not clf.family.prunable:
        with pytest.raises(ModelError, match=clf.family.why_not_prunable):
            headviz.prune(clf, mask)
        return
    small = headviz.prune(clf, mask)
    torch.testing.assert_close(small.logits(batch), clf.logits(batch, mask), atol=1e-5, rtol=0)
    again = headviz.load(small.save(tmp_path / "small"), device="cpu")
    assert (again.present, again.digest) == (mask, small.digest)
    assert torch.equal(again.logits(batch), small.logits(batch))
    cost = small.cost()
    assert cost == clf.cost(mask)
    assert cost.parameters == sum(p.numel() for p in small.model.parameters()) < clf.cost().parameters
    twice = headviz.prune(headviz.prune(clf, clf.full_mask.without([(1, 3)])), mask)
    assert twice.digest == small.digest
    whole = headviz.load(small.export_masked(tmp_path / "masked"), device="cpu")
    torch.testing.assert_close(whole.logits(batch), small.logits(batch), atol=1e-5, rtol=0)
    assert clf.digest == digest, "the caller's model was edited"


# without a fast path ------------------------------------------------------------------------------


def test_a_family_without_a_fast_path_says_so() -> None:
    guest = worn_classifier(GUEST.model_type)
    with pytest.raises(ModelError, match="float32 only"):
        Evaluator(guest, made(), EvaluatorOptions(precision="bfloat16"))
    require_repairable(guest, "bias")
    with pytest.raises(ModelError, match="Choose repair 'bias'"):
        require_repairable(guest, "refit")


def test_a_decoder_is_not_taken_apart() -> None:
    """Its causal mask is transformers' business: the fast stages would leave it out."""
    clf, data = worn_classifier("bert", is_decoder=True, spread=0.15), made(12)
    assert "whole passes" in how_evaluated(clf)
    mask = some_off(clf)
    np.testing.assert_allclose(
        Evaluator(clf, data).evaluate(mask).logits, evaluate(clf, data, mask).logits, rtol=0, atol=1e-5
    )


# what other parts of headviz read of a sheet ------------------------------------------------------


def test_the_magnitude_of_a_head_counts_the_values_of_its_group() -> None:
    clf = headviz.prune(worn_classifier("llama"), HeadMask.full(3, 4).without([(0, 1)]))
    result = headviz.score_heads(clf, made(2), score="magnitude").values
    places = clf.projections(0)
    for place, (head, group) in enumerate(((0, 0), (2, 1), (3, 1))):
        out = places.output.weight[:, place * 8 : (place + 1) * 8].norm()
        assert result[0, head] == pytest.approx(float(out * places.value.weight[group * 8 : (group + 1) * 8].norm()))
    assert np.isnan(result[0, 1])


def test_the_mean_of_removed_heads_is_kept_in_a_model_that_runs_in_whole_passes() -> None:
    """GPT-2 stores its matrices transposed, and its layers are not run one by one."""
    clf, data = worn_classifier("gpt2"), made(6)
    small = repaired(clf, HeadMask.full(3, 4).without([(1, 2)]), data, "bias").classifier
    total, count = torch.zeros(8), 0
    for encoding in clf.encode(data.texts, data.pairs):
        call = clf.call(None, keep_outputs=True)
        with torch.no_grad():
            clf.forward(clf.collate([encoding]), call)
        total += call.outputs[1][0, 2].sum(dim=0)
        count += len(encoding)
    output = clf.projections(1).output
    expected = output.bias + total / count @ output.weight[16:24]
    torch.testing.assert_close(small.projections(1).output.bias, expected, atol=1e-5, rtol=1e-5)
