"""What every entry of the table of families must do, and a family from outside that gives no more than its paths.

The other tests with a ``family`` parameter run over the same table; those of translation models are in
``test_translator``.
"""

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
from headviz.attribution.integration import Walk, sweep
from headviz.attribution.rules import PathOptions
from headviz.errors import ModelError
from headviz.evaluation.dispatch import evaluate
from headviz.evaluation.evaluator import Evaluator, EvaluatorOptions
from headviz.heads import ENCODER
from headviz.models.families import FAMILIES, family_of
from headviz.models.families.sheet import Attention, Family, Layers
from headviz.models.fast.stages import how_evaluated
from headviz.pruning.repair.apply import require_repairable
from support.marks import classifiers
from support.scored_data import made
from support.tiny import FAMILY_NAMES, PAIRS, TEXTS, tiny_classifier, tiny_model, tiny_tokenizer
from support.tiny_translation import TRANSLATION_NAMES, tiny_translator

FULL = HeadMask.full(3, 4)
MASK = FULL.without([(0, 1), (1, 0), (1, 3), (2, 2)])

_LAYER = "encoder.layer.{i}"
GUEST = Family(  # pre-norm, so the fast path does not know it; as a plugin would write it
    "RoBERTa-PreLayerNorm",
    "roberta-prelayernorm",
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
            pre_norm=True,
        )
    },
    embeddings="embeddings",
    position_offset=True,
    tiny={"max_position_embeddings": 66, "type_vocab_size": 1, "pad_token_id": 1},
)

kinds_of_families = pytest.mark.parametrize("family", [*classifiers(FAMILY_NAMES), GUEST.model_type])
each_family = pytest.mark.parametrize("family", [*FAMILY_NAMES, GUEST.model_type])


@pytest.fixture(autouse=True)
def guest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(FAMILIES, GUEST.model_type, GUEST)


def batch_of(clf: headviz.Classifier) -> dict[str, torch.Tensor]:
    return clf.collate(clf.encode(TEXTS, PAIRS))


# the sheets ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", [*FAMILY_NAMES, *TRANSLATION_NAMES, GUEST.model_type])
def test_what_a_sheet_names_is_there(family: str) -> None:
    sheet = family_of(family)
    clf = tiny_translator(family) if sheet.translates else tiny_classifier(family)
    assert sheet.model_type == family
    assert list(sheet.attention) == list(clf.stacks)
    for path in (sheet.embeddings, *(a.position_table for a in sheet.attention.values() if a.position_table)):
        assert clf.module(path) is not None
    for stack, rows in clf.stacks.items():
        reader = sheet.attention[stack].reader
        for layer in range(len(rows)):
            assert clf.projections(rows[layer]).output.in_features == clf.num_heads * clf.head_size
            assert not reader or clf.module(sheet.reader(stack, layer)) is not None
    for layers in sheet.layers.values():
        modules = clf.module(layers.modules)
        assert sheet.why_layers_stay or getattr(clf.config, layers.count) == len(modules)
        for module in modules if not sheet.why_layers_stay else ():
            inside = dict(module.named_modules())
            assert {*layers.writes, layers.outer} <= set(inside)
            assert set(layers.inner) & set(inside)


def test_titles_are_told_apart() -> None:
    assert len({family.title for family in FAMILIES.values()}) == len(FAMILIES)


# masks --------------------------------------------------------------------------------------------


@each_family
def test_masking_equals_zeroing_the_output_columns(family: str) -> None:
    """The slow, obvious meaning of a mask: what W_O reads from the head is zero."""
    model = tiny_model(family)
    clf = headviz.wrap(model, tiny_tokenizer(int(model.config.pad_token_id)))
    if clf.family.shared_layers:
        mask = FULL.without([(layer, 1) for layer in range(3)])  # the same head in every layer
    else:
        mask = MASK
    for layer in range(3):
        matrix = clf.projections(layer).output
        for head in mask.off_in(layer):
            matrix.weight.data[:, head * clf.head_size : (head + 1) * clf.head_size] = 0
    untouched = headviz.wrap(model, clf.tokenizer)
    batch = batch_of(clf)
    assert (untouched.logits(batch, mask) - untouched.logits(batch)).abs().max() > 1e-3
    torch.testing.assert_close(untouched.logits(batch, mask), clf.logits(batch), atol=1e-6, rtol=0)


@kinds_of_families
def test_toggles_without_padding_equal_plain_evaluation_with_it(family: str) -> None:
    clf, data, rng = tiny_classifier(family, layers=4, spread=0.15), made(40), random.Random(1)
    budgets = (0, 60_000, 2**30)
    evaluators = [Evaluator(clf, data, EvaluatorOptions(budget=b, chunk_tokens=150)) for b in budgets]
    full = HeadMask.full(4, 4)
    mask = full
    for step in range(16):
        plain = evaluate(clf, data, mask).logits
        for evaluator, budget in zip(evaluators, budgets, strict=True):
            np.testing.assert_allclose(evaluator.evaluate(mask).logits, plain, rtol=0, atol=1e-5)
            assert evaluator.memory <= budget
        if step % 5:
            mask = mask.toggled([(rng.randrange(4), rng.randrange(4))])
        else:
            mask = full.without_random(rng.randint(0, 16), seed=rng.random())


# conductance --------------------------------------------------------------------------------------


def captum_maps(clf: headviz.Classifier, family: str, walk: Walk, target: int, steps: int) -> Iterator[Any]:
    """Captum's attribution of every layer's probabilities, under transformers' own eager attention."""
    model = tiny_model(family)
    model.set_attn_implementation("eager")
    names = list(walk.batch)

    def logits(embeddings: torch.Tensor, *rest: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = model(inputs_embeds=embeddings, **dict(zip(names, rest, strict=True))).logits
        return found

    for layer in range(clf.num_layers):
        where = clf.family.place(clf.config, layer)
        module = model.base_model.get_submodule(clf.family.attention[ENCODER].module.format(**where))
        found = LayerConductance(logits, module).attribute(
            walk.end, walk.start, target=target, additional_forward_args=tuple(walk.batch.values()), n_steps=steps
        )
        yield found[1].detach().numpy()


@kinds_of_families
@pytest.mark.parametrize("steps", [1, 5, 20])
def test_the_captum_rule_is_captum_in_every_layer(family: str, steps: int) -> None:
    clf = tiny_classifier(family)
    if clf.family.shared_layers:
        pytest.skip("Captum cannot tell the layers of one module apart")
    encodings = clf.encode(TEXTS, PAIRS)
    walk = Walk(clf, encodings, [2] * len(TEXTS), None)
    found = sweep(clf, encodings, [2] * len(TEXTS), PathOptions(steps, "captum"))
    for layer, maps in enumerate(captum_maps(clf, family, walk, 2, steps)):
        assert np.abs(maps).max() > 1e-4
        for i, e in enumerate(encodings):
            t = len(e)
            np.testing.assert_allclose(
                found[i].attribution[layer], maps[i, :, :t, :t], rtol=1e-4, atol=2e-6 * np.abs(maps).max()
            )


# pruning, saving ----------------------------------------------------------------------------------


@each_family
def test_pruned_equals_masked_or_says_why_not_and_both_survive_a_reload(family: str, tmp_path: Path) -> None:
    clf = tiny_classifier(family)
    digest, batch = clf.digest, batch_of(clf)
    again = headviz.load(clf.save(tmp_path / "whole"), device="cpu")
    assert again.digest == digest
    assert torch.equal(again.logits(batch), clf.logits(batch))
    if not clf.family.prunable:
        with pytest.raises(ModelError, match=clf.family.why_not_prunable):
            headviz.prune(clf, MASK)
        return
    small = headviz.prune(clf, MASK)
    torch.testing.assert_close(small.logits(batch), clf.logits(batch, MASK), atol=1e-5, rtol=0)
    again = headviz.load(small.save(tmp_path / "small"), device="cpu")
    assert (again.present, again.digest) == (MASK, small.digest)
    assert torch.equal(again.logits(batch), small.logits(batch))
    assert clf.digest == digest, "the caller's model was edited"


# without a fast path ------------------------------------------------------------------------------


def test_a_family_without_a_fast_path_says_so(tmp_path: Path) -> None:
    guest = tiny_classifier(GUEST.model_type)
    assert "whole passes" in how_evaluated(guest)
    assert "fast" in how_evaluated(tiny_classifier("bert"))
    assert "own layers" in how_evaluated(tiny_classifier("modernbert"))
    with pytest.raises(ModelError, match="float32 only"):
        Evaluator(guest, made(), EvaluatorOptions(precision="bfloat16"))
    require_repairable(guest, "bias")
    with pytest.raises(ModelError, match="Choose repair 'bias'"):
        require_repairable(guest, "refit")


def test_a_decoder_is_not_taken_apart() -> None:
    """Its causal mask is transformers' business: the fast stages would leave it out."""
    clf, data = tiny_classifier("bert", is_decoder=True, spread=0.15), made(12)
    assert "whole passes" in how_evaluated(clf)
    np.testing.assert_allclose(
        Evaluator(clf, data).evaluate(MASK).logits, evaluate(clf, data, MASK).logits, rtol=0, atol=1e-5
    )
