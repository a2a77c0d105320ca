"""What stands in a head's place: against hooks on plain transformers models, its identities, and what it refuses."""

from typing import Any

import numpy as np
import pytest
import torch
from scipy.special import log_softmax

import headviz
from headviz import HeadMask, UserError
from headviz.evaluation import stand_ins
from headviz.evaluation.donors import Donors, PlaceMeans, kinds_of
from headviz.evaluation.evaluator import Evaluator, EvaluatorOptions
from headviz.evaluation.stand_ins import _losses, mean_outputs, standing_in
from headviz.models.families import FAMILIES
from headviz.models.network import Fill
from headviz.models.stand_in import StandIn
from headviz.pruning.plan import PruningPlan
from headviz.tasks.catalogue import get_task
from support.tiny import PRUNABLE, tiny_classifier, tiny_model, tiny_tokenizer
from support.tiny_translation import SOURCES, TARGETS, tiny_translator

FAMILY_NAMES = ("bert", "distilbert", "modernbert", "albert")
TEXTS = ("a dog sleeps .", "the red cat sees two birds in the garden", "no man eats", "a woman runs before the dog .")
PAIRS = ("a cat runs", "the bird is blue .", "a man eats in the house", "two women run")
OTHERS = ("the blue bird eats in the small garden .", "a big man is not in the house", "two dogs run", "an old cat .")


def data_of(texts: Any = TEXTS, pairs: Any = PAIRS) -> headviz.Dataset:
    return headviz.Dataset(get_task("mnli"), "dev", texts, pairs, np.arange(len(texts)) % 3)


DATA, REFERENCE = data_of(), data_of(OTHERS, PAIRS[::-1])
OFF = [(0, 1), (1, 0), (1, 3), (2, 2)]


def projections(clf: Any, model: Any) -> list[Any]:
    """The plain model's W_O of each layer."""
    family = FAMILIES[clf.config.model_type]
    path = family.attention["encoder"].output
    return [model.base_model.get_submodule(path.format(**family.place(model.config, i))) for i in range(clf.num_layers)]


def heads_of(clf: Any, model: Any, text: str, pair: str) -> list[torch.Tensor]:
    """What each layer's W_O reads of one text, [T, H·d], by hooks."""
    seen: list[torch.Tensor] = []
    handles = [
        m.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0][0].clone()))
        for m in dict.fromkeys(projections(clf, model))
    ]
    with torch.no_grad():
        model(**clf.collate(clf.encode([text], [pair])))
    for handle in handles:
        handle.remove()
    return seen


def replaced(clf: Any, model: Any, text: str, pair: str, stands: Any) -> np.ndarray:
    """The logits of one text with ``stands(layer, head, T)`` in the place of the heads that are off, by hooks."""
    run, size = [0], clf.head_size

    def hook(_: Any, inputs: Any) -> Any:
        layer, states = run[0], inputs[0].clone()
        run[0] += 1
        for row, head in OFF:
            if row == layer:
                states[0, :, head * size : (head + 1) * size] = stands(row, head, states.shape[1])
        return (states,)

    handles = [m.register_forward_pre_hook(hook) for m in dict.fromkeys(projections(clf, model))]
    with torch.no_grad():
        logits = model(**clf.collate(clf.encode([text], [pair]))).logits[0].numpy()
    for handle in handles:
        handle.remove()
    return logits


def slow_means(clf: Any, model: Any) -> list[torch.Tensor]:
    seen = [heads_of(clf, model, a, b) for a, b in zip(REFERENCE.texts, REFERENCE.pairs or (), strict=True)]
    return [torch.cat([one[layer] for one in seen]).mean(dim=0) for layer in range(clf.num_layers)]


@pytest.mark.parametrize("family", FAMILY_NAMES)
def test_mean_equals_hooks(family: str) -> None:
    clf, model = tiny_classifier(family), tiny_model(family)
    means, size = slow_means(clf, model), clf.head_size
    slow = [
        replaced(clf, model, a, b, lambda row, head, _: means[row][head * size : (head + 1) * size])
        for a, b in zip(TEXTS, PAIRS, strict=True)
    ]
    mask = clf.full_mask.without(OFF)
    result = headviz.evaluate(clf, DATA, mask, ablation="mean", reference=REFERENCE)
    np.testing.assert_allclose(result.logits, slow, atol=2e-5)
    many = headviz.evaluator_of(clf, DATA, ablation="mean", reference=REFERENCE)
    np.testing.assert_allclose(many.evaluate(mask).logits, slow, atol=2e-5)
    assert (result.ablation, result.reference) == ("mean", 4)
    assert np.abs(result.logits - headviz.evaluate(clf, DATA, mask).logits).max() > 1e-3


@pytest.mark.parametrize("family", ["bert", "modernbert"])
def test_resampling_equals_hooks(family: str) -> None:
    clf, model = tiny_classifier(family), tiny_model(family)
    seen = [heads_of(clf, model, a, b) for a, b in zip(REFERENCE.texts, REFERENCE.pairs or (), strict=True)]
    size, mask = clf.head_size, clf.full_mask.without(OFF)
    donors = Donors(clf, REFERENCE, StandIn("resample", draws=2))
    evaluator = Evaluator(clf, DATA, donors=donors)
    for draw, one in enumerate(evaluator.each_draw()):
        slow = []
        for a, b, text in zip(TEXTS, PAIRS, clf.encode(TEXTS, PAIRS), strict=True):
            given = seen[donors.donor(text, draw)]

            def stands(row: int, head: int, length: int, given: Any = given) -> torch.Tensor:
                own = given[row][:, head * size : (head + 1) * size]
                short = max(0, length - len(own))
                return torch.cat([own, own.mean(dim=0)[None].repeat(short, 1)])[:length]

            slow.append(replaced(clf, model, a, b, stands))
        logits = one.predictions(mask), one._logits(mask, True, None, None)
        np.testing.assert_allclose(logits[1], slow, atol=2e-5)
    whole = headviz.evaluate(clf, DATA, mask, ablation=StandIn("resample", draws=2), reference=REFERENCE)
    np.testing.assert_allclose(whole.logits, evaluator.evaluate(mask).logits, atol=1e-6)
    assert len(whole.draws) == 2
    drawn = whole.over_draws()["accuracy"]
    assert drawn["low"] <= drawn["mean"] <= drawn["high"]


@pytest.mark.parametrize("family", ["bert", "roberta"])
def test_means_by_kind_of_place_equal_hooks(family: str) -> None:
    clf, model = tiny_classifier(family), tiny_model(family)
    seen = [heads_of(clf, model, a, b) for a, b in zip(REFERENCE.texts, REFERENCE.pairs or (), strict=True)]
    size, mask = clf.head_size, clf.full_mask.without(OFF)

    def kinds(a: str, b: str) -> list[str]:
        first, second = (len(clf.tokenizer.tokenize(text)) for text in (a, b))
        inner = len(clf.encode([a], [b])[0]) - first - second - 2
        return ["first", *["A"] * first, *["inner"] * inner, *["B"] * second, "last"]

    own = [k for a, b in zip(REFERENCE.texts, REFERENCE.pairs or (), strict=True) for k in kinds(a, b)]
    slow = []
    for a, b in zip(TEXTS, PAIRS, strict=True):
        own_kinds = kinds(a, b)

        def stands(row: int, head: int, length: int, wanted: Any = own_kinds) -> torch.Tensor:
            every = torch.cat([one[row][:, head * size : (head + 1) * size] for one in seen])
            return torch.stack([every[[o == kind for o in own]].mean(dim=0) for kind in wanted[:length]])

        slow.append(replaced(clf, model, a, b, stands))
    result = headviz.evaluate(clf, DATA, mask, ablation="mean-by-place", reference=REFERENCE)
    np.testing.assert_allclose(result.logits, slow, atol=2e-5)
    assert (result.ablation, result.reference, result.draws) == ("mean-by-place", 4, ())
    plain = headviz.evaluate(clf, DATA, mask, ablation="mean", reference=REFERENCE)
    assert np.abs(result.logits - plain.logits).max() > 1e-4


def test_a_kind_of_place_that_the_reference_lacks_takes_the_mean_of_all() -> None:
    clf = tiny_classifier()
    alone = headviz.Dataset(get_task("sst2"), "dev", OTHERS, None, np.zeros(4, dtype=np.int64))
    result = PlaceMeans(clf, alone, StandIn("mean-by-place"))
    means = mean_outputs(clf, alone)
    np.testing.assert_allclose(result.rows[1][4], means[1].flatten(), atol=1e-5)
    (pair,) = clf.encode(["a dog"], ["a cat"])
    assert kinds_of(pair).tolist() == [0, 3, 3, 1, 4, 4, 2]


@pytest.mark.parametrize(("kind", "budget"), [("mean", 2**20), ("mean-by-place", 0), ("resample", 2**20)])
def test_shared_prefixes_hold(kind: str, budget: int) -> None:
    """One evaluator that has seen other masks before gives what a fresh one gives."""
    clf = tiny_classifier()
    some = headviz.evaluator_of(clf, DATA, EvaluatorOptions(budget), ablation=kind, reference=REFERENCE)
    make = {"resample": Donors, "mean-by-place": PlaceMeans}.get(kind)
    donors = None if make is None else make(clf, REFERENCE, StandIn(kind))
    masks = [clf.full_mask.without(OFF[:n]) for n in (4, 1, 3, 0, 2, 4)]
    for mask in masks:
        fresh = Evaluator(some.clf, DATA, donors=donors)  # with the same values in the heads' place
        for one, other in zip(some.each_draw(), fresh.each_draw(), strict=True):
            a, b = (e._logits(mask, True, None, None) for e in (one, other))  # type: ignore[attr-defined]
            np.testing.assert_allclose(a, b, atol=1e-6)


@pytest.mark.parametrize(("family", "kind"), [*((family, "mean") for family in PRUNABLE), ("bert", "constant")])
def test_real_removal_equals_the_masked_model(
    family: str, kind: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stand_ins, "STEPS", 1)
    clf = tiny_classifier(family)
    mask = clf.full_mask.without([*OFF, *((2, h) for h in range(4))])  # a layer without heads as well
    small = headviz.prune(clf, mask, ablation=kind, reference=REFERENCE)
    masked = headviz.evaluate(clf, DATA, mask, ablation=kind, reference=REFERENCE).logits
    np.testing.assert_allclose(headviz.evaluate(small, DATA).logits, masked, atol=1e-5)
    small.save(tmp_path / "small")
    np.testing.assert_allclose(headviz.evaluate(headviz.load(tmp_path / "small"), DATA).logits, masked, atol=1e-5)
    if kind == "mean" and clf.projections(0).output.bias is not None:
        filled = standing_in(clf, kind, REFERENCE)
        filled.export_masked(tmp_path / "plain", mask)
        np.testing.assert_allclose(headviz.evaluate(headviz.load(tmp_path / "plain"), DATA).logits, masked, atol=1e-5)
        twice = headviz.prune(headviz.prune(filled, clf.full_mask.without(OFF[:2])), mask)
        np.testing.assert_allclose(headviz.evaluate(twice, DATA).logits, masked, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("family", ["marian", "t5"])
def test_translation_models_take_the_mean(family: str, tmp_path: Any) -> None:
    """T5's projections have no bias; the pruned model has one, also after loading."""
    clf, data = tiny_translator(family), headviz.Dataset(get_task("demo-translation"), "dev", SOURCES, TARGETS)
    mask = clf.full_mask.without([(0, 1), (3, 0), (5, 2), (7, 3)])
    filled = standing_in(clf, "mean", data)
    batch = clf.collate(clf.encode(data.texts, data.references))
    masked = filled.forward(batch, filled.call(mask))
    assert not torch.allclose(masked, clf.forward(batch, clf.call(mask)), atol=1e-3)
    small = headviz.prune(clf, mask, ablation="mean", reference=data)
    torch.testing.assert_close(small.forward(batch, small.call()), masked, atol=1e-5, rtol=1e-4)
    small.save(tmp_path / "small")
    again: Any = headviz.load(tmp_path / "small")
    torch.testing.assert_close(again.forward(batch, again.call()), masked, atol=1e-5, rtol=1e-4)
    if family == "t5":
        with pytest.raises(UserError, match="no bias behind its attention"):
            filled.export_masked(tmp_path / "plain", mask)
    with pytest.raises(UserError, match="'resample' is for classifiers"):
        headviz.evaluate(clf, data, mask, ablation="resample", reference=data)


def test_means_leave_out_padding_and_order() -> None:
    clf = tiny_classifier()
    whole = mean_outputs(clf, REFERENCE)
    turned = mean_outputs(clf, REFERENCE.subset([3, 1, 0, 2]))
    one_by_one = [mean_outputs(clf, REFERENCE.subset([i])) for i in range(4)]
    lengths = [len(e) for e in clf.encode(REFERENCE.texts, REFERENCE.pairs)]
    for row in range(3):
        torch.testing.assert_close(whole[row], turned[row], atol=1e-6, rtol=1e-5)
        parts = sum(n * rows[row] for n, rows in zip(lengths, one_by_one, strict=True))
        torch.testing.assert_close(whole[row], parts / sum(lengths), atol=1e-6, rtol=1e-5)


def test_a_constant_is_seeded_and_no_worse_than_the_mean(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stand_ins, "STEPS", 3)
    clf = tiny_classifier()
    mean = standing_in(clf, "mean", REFERENCE)
    one, same, other = (standing_in(clf, StandIn("constant", seed=seed), REFERENCE) for seed in (0, 0, 1))
    assert one.digest == same.digest != other.digest
    gold = headviz.evaluate(clf, REFERENCE).gold
    assert gold is not None
    before, behind = (_losses(clf, REFERENCE, gold, c.fill.values, None, None, None) for c in (mean, one))
    assert (behind <= before + 1e-7).all()
    assert (behind < before - 1e-4).any()


def test_constants_of_a_model_whose_classes_have_no_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stand_ins, "STEPS", 1)
    order = ("contradiction", "entailment", "neutral")
    named, plain = tiny_classifier(labels=order), tiny_classifier(labels=("LABEL_0", "LABEL_1", "LABEL_2"))
    mask, how = plain.full_mask.without(OFF), {"ablation": "constant", "reference": REFERENCE}
    wanted = headviz.evaluate(named, DATA, mask, **how).logits
    assert not np.array_equal(wanted, headviz.evaluate(named, DATA, mask, ablation="mean", reference=REFERENCE).logits)
    result = headviz.evaluate(plain, DATA, mask, label_order=order, **how).logits
    np.testing.assert_array_equal(result, wanted)
    small = headviz.prune(plain, mask, label_order=order, **how)
    np.testing.assert_allclose(headviz.evaluate(small, DATA, label_order=order).logits, wanted, atol=1e-5)


@pytest.mark.slow
def test_a_constant_is_learned_in_the_place_of_its_own_head() -> None:
    """An encoder-decoder model runs its rows in another order than they are numbered in."""
    clf, gold = tiny_classifier("bart"), np.arange(4) % 3
    means, texts = mean_outputs(clf, REFERENCE), clf.encode(REFERENCE.texts, REFERENCE.pairs)
    wanted = _losses(clf, REFERENCE, gold, means, None, None, None)
    for row in range(clf.num_layers):
        kept = list(clf.present.kept_in(row))
        for at, head in enumerate(kept):
            result = stand_ins._loss(clf, texts, gold, row, np.full(4, at), means[row][kept]) / 4
            assert float(result) == pytest.approx(wanted[row, head], abs=1e-5)


def test_constants_of_a_model_in_half_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stand_ins, "STEPS", 1)
    half, full = (
        headviz.wrap(tiny_model().bfloat16().to(to), tiny_tokenizer()) for to in (torch.bfloat16, torch.float32)
    )
    start = mean_outputs(full, REFERENCE)
    wanted, result = (
        stand_ins._descend(clf, REFERENCE, np.arange(4) % 3, start, 0, None, None) for clf in (full, half)
    )
    for one, other, mean in zip(result, wanted, start, strict=True):
        moved = (other - mean).abs().max()
        assert 0 < (one - other).abs().max() < 0.1 * moved


def test_states_and_names_never_mix() -> None:
    """Another fill is another model to every cache."""
    clf = tiny_classifier()
    mean, other = (standing_in(clf, "mean", data) for data in (REFERENCE, DATA))
    assert len({clf.digest, mean.digest, other.digest}) == 3
    assert mean.filled(None).digest == clf.digest
    assert (
        headviz.prune(mean, clf.full_mask.without(OFF)).digest != headviz.prune(clf, clf.full_mask.without(OFF)).digest
    )


def test_ablation_costs_by_reference() -> None:
    clf = tiny_classifier()
    evaluator = Evaluator(clf, DATA)
    mean = headviz.ablate(evaluator, ablation="mean", reference=REFERENCE)
    direct = headviz.evaluate(clf, DATA, clf.full_mask.without([(1, 2)]), ablation="mean", reference=REFERENCE)
    assert mean.values[1, 2] == pytest.approx(mean.baseline - direct.metrics["accuracy"])
    assert "mean" in mean.subject.stand_in
    drawn = headviz.ablate(evaluator, ablation=StandIn("resample", draws=3), reference=REFERENCE)
    assert drawn.by_draw is not None
    assert drawn.by_draw.shape == (3, 3, 4)
    np.testing.assert_allclose(drawn.values, drawn.by_draw.mean(axis=0))
    score = headviz.score_heads(clf, DATA, "ablation", ablation="mean", cache=False)
    own = headviz.ablate(evaluator, ablation="mean", reference=DATA)
    np.testing.assert_allclose(score.values, own.values)
    full, without = (
        headviz.evaluate(clf, DATA, mask, ablation="mean", reference=DATA).logits.astype(float)
        for mask in (clf.full_mask, clf.full_mask.without([(1, 2)]))
    )
    here = np.arange(len(DATA)), DATA.labels
    loss = headviz.score_heads(clf, DATA, "ablation-loss", ablation="mean", cache=False)
    gained = log_softmax(full, axis=1)[here] - log_softmax(without, axis=1)[here]
    assert loss.values[1, 2] == pytest.approx(gained.mean(), abs=1e-6)


def test_a_patched_or_explained_model_keeps_its_fill() -> None:
    """Whatever takes a model takes one with something in its heads' place: here a pass with kept probabilities."""
    clf = standing_in(tiny_classifier(), "mean", REFERENCE)
    mask = clf.full_mask.without(OFF)
    patched = headviz.patch(clf, (TEXTS[0], PAIRS[0]), (TEXTS[0], PAIRS[0]), mask=mask)
    logits = headviz.evaluate(clf, DATA, mask).logits[0]
    np.testing.assert_allclose(patched.from_logits, logits, atol=1e-5)


def test_what_cannot_be_is_refused() -> None:
    clf = tiny_classifier()
    mask = HeadMask.full(3, 4).without(OFF)
    with pytest.raises(UserError, match="Unknown ablation 'median'"):
        headviz.evaluate(clf, DATA, mask, ablation="median", reference=REFERENCE)
    with pytest.raises(UserError, match="needs a reference"):
        headviz.evaluate(clf, DATA, mask, ablation="mean")
    with pytest.raises(UserError, match="With 'resample' another vector"):
        headviz.prune(clf, mask, ablation="resample", reference=REFERENCE)
    with pytest.raises(UserError, match="With 'mean-by-place' another vector"):
        headviz.prune(clf, mask, ablation="mean-by-place", reference=REFERENCE)
    with pytest.raises(UserError, match="With 'mean-by-place' another vector"):
        PruningPlan("demo", "demo", algorithm="iterative", score="taylor", ablation="mean-by-place")
    with pytest.raises(UserError, match="two different texts"):
        headviz.evaluate(clf, DATA, mask, ablation="resample", reference=REFERENCE.subset([0]))
    unlabelled = headviz.Dataset(get_task("mnli"), "dev", OTHERS, PAIRS)
    with pytest.raises(UserError, match="reference has none"):
        headviz.evaluate(clf, DATA, mask, ablation="constant", reference=unlabelled)


@pytest.mark.parametrize(
    ("text", "stand_in"),
    [("zero", StandIn()), ("mean:64", StandIn("mean", 64)), ("mean-by-place:9", StandIn("mean-by-place", 9))],
)
def test_a_choice_as_text(text: str, stand_in: StandIn) -> None:
    assert StandIn.of(text) == stand_in
    assert stand_in.text == text
    assert StandIn.of("mean").text == "mean"
    for wrong in ("mean:", "mean:0", "MEAN", "", None, 3):
        with pytest.raises(UserError):
            StandIn.of(wrong)


def test_a_fill_is_known_by_its_vectors() -> None:
    rows = (torch.zeros(4, 8), torch.ones(4, 8))
    assert Fill("mean", rows, 4, "a").digest == Fill("constant", rows, 9, "b").digest
    assert Fill("mean", rows, 4, "a").digest != Fill("mean", rows[::-1], 4, "a").digest
