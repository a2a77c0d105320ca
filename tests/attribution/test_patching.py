"""Patching against hooks on a plain transformers model, its identities, and what it refuses."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.stats
import torch
from torch.utils.flop_counter import FlopCounterMode

import headviz
from headviz import HeadId, HeadMask, UserError
from headviz.attribution.alignment import align
from headviz.models.families import FAMILIES
from headviz.ui.pages.compare.patching import alignment_of, read_pairs
from support.tiny import tiny_classifier, tiny_model

A, B = ("a dog sleeps .", "the red cat runs"), ("a dog eats .", "the red bird runs")
LONGER = ("a small dog sleeps .", "the red cat runs")


def outputs_of(clf: Any, model: Any, batch: dict[str, torch.Tensor]) -> list[torch.Tensor]:
    """What each layer's W_O reads, [T, W], by hooks."""
    seen: list[torch.Tensor] = []
    handles = [
        m.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0][0].clone())) for m in modules_of(clf, model)
    ]
    with torch.no_grad():
        model(**batch)
    for handle in handles:
        handle.remove()
    return seen


def modules_of(clf: Any, model: Any) -> list[Any]:
    """The plain model's W_O, each once."""
    family = FAMILIES[clf.config.model_type]
    path = family.attention["encoder"].output
    result = [
        model.base_model.get_submodule(path.format(**family.place(model.config, i))) for i in range(clf.num_layers)
    ]
    return list(dict.fromkeys(result))


@contextmanager
def changed(clf: Any, model: Any, values: dict[tuple[int, int], torch.Tensor], at: list[int]) -> Iterator[None]:
    """The outputs of some heads at some tokens replaced in every pass, by hooks."""
    run, size = [0], clf.head_size

    def hook(_: Any, inputs: Any) -> Any:
        layer, states = run[0] % clf.num_layers, inputs[0].clone()
        run[0] += 1
        for (row, head), value in values.items():
            if row == layer:
                states[0, at, head * size : (head + 1) * size] = value
        return (states,)

    handles = [m.register_forward_pre_hook(hook) for m in modules_of(clf, model)]
    yield
    for handle in handles:
        handle.remove()


def oracle(clf: Any, model: Any, text: Any, donor: Any, at: list[int], there: list[int]) -> tuple[Any, Any]:
    """Logits with each head patched alone, and with all."""
    one, other = (clf.collate(clf.encode([t[0]], [t[1]])) for t in (text, donor))
    given, size = outputs_of(clf, model, other), clf.head_size
    value = {
        (row, head): given[row][there, head * size : (head + 1) * size]
        for row in range(clf.num_layers)
        for head in range(clf.num_heads)
    }
    grid = np.zeros((clf.num_layers, clf.num_heads, 3))
    with torch.no_grad():
        for (row, head), values in value.items():
            with changed(clf, model, {(row, head): values}, at):
                grid[row, head] = model(**one).logits[0]
        with changed(clf, model, value, at):
            whole = model(**one).logits[0].numpy()
    return grid, whole


def expected_effect(result: Any, logits: Any) -> Any:
    """Of the lead of the donor's answer, the share that these logits have come."""
    a, b = int(result.from_logits.argmax()), int(result.to_logits.argmax())
    lead = (lambda v: v[..., b]) if a == b else (lambda v: v[..., b] - v[..., a])
    return (lead(logits) - lead(result.from_logits)) / (lead(result.to_logits) - lead(result.from_logits))


@pytest.mark.parametrize(
    ("family", "positions"),
    [
        *(("bert", positions) for positions in ("all", "changed", "first", [2, 3])),
        ("distilbert", "first"),
        ("roberta", "changed"),
        ("electra", [2, 3]),
        ("modernbert", "first"),
        ("albert", "all"),
    ],
)
def test_every_head_equals_hooks_on_the_plain_model(family: str, positions: Any) -> None:
    clf, model = tiny_classifier(family), tiny_model(family, attn_implementation="eager")
    result = headviz.patch(clf, A, B, positions=positions)
    at = list(result.positions)
    grid, whole = oracle(clf, model, A, B, at, [result.alignment[i] for i in at])
    np.testing.assert_allclose(result.logits, grid, atol=2e-5)
    np.testing.assert_allclose(result.whole, whole, atol=2e-5)
    np.testing.assert_allclose(result.effect, expected_effect(result, grid), rtol=1e-2, atol=1e-3)
    assert np.abs(result.logits - result.from_logits).max() > 1e-3


@pytest.mark.parametrize(
    ("family", "alignment"),
    [
        ("bert", None),
        ("bert", {0: 3}),
        ("modernbert", {0: 0, 1: 4}),
        *((family, {0: 4, 2: 0, 5: 5}) for family in ("bert", "mpnet", "albert")),
    ],
)
def test_any_alignment_and_heads_patched_together(family: str, alignment: dict[int, int] | None) -> None:
    """The fast stages have the first tokens alone of the last layer, and gave the donor's first."""
    clf, model = tiny_classifier(family), tiny_model(family, attn_implementation="eager")
    both = [HeadId(1, 0), HeadId(clf.num_layers - 1, 2)]
    result = headviz.patch(clf, A, LONGER, alignment=alignment, sets=[both, [(1, 2)], clf.present.kept])
    at, there = list(result.positions), [result.alignment[i] for i in result.positions]
    grid, whole = oracle(clf, model, A, LONGER, at, there)
    np.testing.assert_allclose(result.logits, grid, atol=2e-5)
    np.testing.assert_allclose(result.whole, whole, atol=2e-5)
    one, other = (clf.collate(clf.encode([t[0]], [t[1]])) for t in (A, LONGER))
    given, size = outputs_of(clf, model, other), clf.head_size
    values = {tuple(h): given[h.layer][there, h.head * size : (h.head + 1) * size] for h in both}
    with torch.no_grad(), changed(clf, model, values, at):
        logits = model(**one).logits[0].numpy()
    expected = [expected_effect(result, x) for x in (logits, result.logits[1, 2], result.whole)]
    np.testing.assert_allclose(result.together, expected, rtol=1e-2, atol=1e-3)
    with pytest.raises(UserError, match="is off"):
        headviz.patch(clf, A, LONGER, sets=[both], mask=clf.present.without([both[0]]))


@pytest.mark.parametrize("family", ["bert", "albert"])
def test_a_text_patched_with_itself_is_the_same_bit_for_bit(family: str) -> None:
    clf = tiny_classifier(family)
    result = headviz.patch(clf, A, A)
    assert np.array_equal(result.logits, np.broadcast_to(result.from_logits, result.logits.shape))
    assert np.isnan(result.effect).all()  # nothing to move: 0 / 0
    np.testing.assert_allclose(result.whole, result.from_logits, atol=1e-5)


def test_removed_and_masked_heads() -> None:
    clf = tiny_classifier()
    mask = HeadMask.full(3, 4).without([(0, 1), (1, 0), (1, 1), (1, 2), (1, 3)])
    masked, pruned = headviz.patch(clf, A, B, mask=mask), headviz.patch(headviz.prune(clf, mask), A, B)
    assert {tuple(h) for h in np.argwhere(np.isnan(masked.effect))} == {(h.layer, h.head) for h in mask.off}
    np.testing.assert_allclose(masked.logits, pruned.logits, atol=1e-5)
    np.testing.assert_allclose(masked.whole, pruned.whole, atol=1e-5)


def test_in_the_demo_one_head_carries_an_antonym() -> None:
    big = "The big dog is sleeping."
    result = headviz.patch(headviz.load("demo"), (big, "The small dog is sleeping."), (big, big), positions="all")
    assert (result.from_label, result.to_label) == ("contradiction", "entailment")
    assert (result.effect > 0.5).sum() == 1


def test_alignment_and_positions() -> None:
    clf = tiny_classifier()
    one, other = clf.encode([A[0]], [A[1]])[0], clf.encode([LONGER[0]], [LONGER[1]])[0]
    assert align(one, one) == tuple(range(len(one)))
    assert align(one, other)[:4] == (0, 1, 3, 4)
    result = headviz.patch(clf, A, B, positions="changed")
    assert [(result.tokens[i], result.donor_tokens[i]) for i in result.positions] == [
        ("sleeps", "eats"),
        ("cat", "bird"),
    ]
    own = headviz.patch(clf, A, LONGER, alignment={0: 0, 2: 2}, target="neutral")
    assert own.positions == (0, 2)
    start, end = own.from_logits[1], own.to_logits[1]
    np.testing.assert_allclose(own.effect, (own.logits[..., 1] - start) / (end - start), rtol=1e-4)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"donor": "a dog"}, "compares two texts"),
        ({"donor": ("a dog", "a cat", "a bird")}, "two strings"),
        ({"donor": ("two men in", "three women on before")}, "no word in common"),
        ({"positions": "middle"}, "middle"),
        ({"positions": [99]}, "no token 99"),
        ({"positions": [True]}, "no token True"),
        ({"donor": A, "positions": "changed"}, "No token has another"),
        ({"donor": LONGER, "alignment": {1: 1}, "positions": [2]}, "no partner"),
        ({"alignment": {1: 50}}, "outside the texts"),
        ({"target": "maybe"}, "maybe"),
        ({"mask": HeadMask.full(2, 4)}, "3×4"),
    ],
)
def test_what_makes_no_sense_is_refused(options: dict[str, Any], why: str) -> None:
    clf = headviz.wrap(tiny_model(), tiny_classifier().tokenizer)
    clf.config.headviz_num_texts = 2
    with pytest.raises(UserError, match=why):
        headviz.patch(clf, A, **{"donor": B, **options})


def test_a_set_of_pairs_is_the_mean_of_its_pairs() -> None:
    clf = tiny_classifier(seed=3)  # answers some of these texts differently
    more = ("no man eats", "two birds run"), ("a cat runs", "no .")
    texts = [(A, B), (B, A), (A, A), (A, LONGER), (LONGER, more[1]), (more[1], A), more]
    alone = [headviz.patch(clf, *pair, positions="first") for pair in texts]
    used = [p.effect for p in alone if p.from_label != p.to_label and abs(p.span) >= 0.5]
    assert len(used) > 2
    result = headviz.patch_pairs(clf, texts, positions="first")
    np.testing.assert_allclose(result.mean, np.mean(used, axis=0))
    assert result.n + result.same_answer + result.small == len(texts)
    assert (result.interval_low <= result.mean).all()
    half = scipy.stats.ttest_1samp([u[1, 2] for u in used], 0.0)
    assert result.p_value[1, 2] == pytest.approx(half.pvalue)
    with pytest.raises(UserError, match="too few to average"):
        headviz.patch_pairs(clf, [(A, A), (B, B)])
    twice = headviz.patch_pairs(clf, [*texts, *texts], positions="first")  # says nothing new
    np.testing.assert_array_equal(twice.p_value, result.p_value)


@contextmanager
def flops_counted() -> Iterator[FlopCounterMode]:
    """PyTorch's own counter, which also knows oneDNN's linear layer."""

    def of_linear(x: Any, weight: Any, *_: Any, **__: Any) -> int:
        return 2 * int(np.prod(x)) * int(weight[0])

    known = {torch.ops.mkldnn._linear_pointwise: of_linear}
    with FlopCounterMode(display=False, custom_mapping=known) as counter:
        yield counter


def test_a_whole_grid_costs_half_as_many_passes_as_it_has_heads() -> None:
    """A head of layer l needs l's W_O and what lies above it: with six layers of six heads about 18, and both texts."""
    clf = tiny_classifier(layers=6, heads=6, hidden=192, intermediate_size=768)
    with flops_counted() as one:
        clf.logits(clf.collate(clf.encode([A[0]], [A[1]])))
    with flops_counted() as grid:
        result = headviz.patch(clf, A, B)
    assert np.isfinite(result.logits).all()
    assert 12 < grid.get_total_flops() / one.get_total_flops() <= 24


def test_a_token_without_a_partner_is_no_alignment() -> None:
    """As the page's table gives it, whatever pandas makes of an empty cell."""
    assert alignment_of([0, None, pd.NA, float("nan"), 2]) == {0: 0, 4: 2}


def test_pairs_from_a_table() -> None:
    def of(content: str, kind: str = "csv") -> Any:
        return read_pairs(content.encode(), kind)

    four = "text,donor,text_pair,donor_pair\na,b,c,d\ne,f,g,\n"
    assert of(four) == [(("a", "c"), ("b", "d")), (("e", "g"), ("f", "g"))]
    assert of("text\tdonor\na b\tc d\n", "tsv") == [("a b", "c d")]
    assert of("first\tsecond\na | b\tc | d\n", "tsv") == [(("a", "b"), ("c", "d"))]
    with pytest.raises(UserError, match="no column 'donor'"):
        of("text,other,third\na,b,c\n")
    with pytest.raises(UserError, match="cannot be read"):
        of("text", "xlsx")


def test_a_share_of_rounding_is_no_effect() -> None:
    """Heads that write nothing still moved the two answers apart by 1e-7, and had effects of 4."""
    model = tiny_model()
    with torch.no_grad():
        for layer in model.bert.encoder.layer:
            layer.attention.output.dense.weight.mul_(1e-6)
    clf = headviz.wrap(model, tiny_classifier().tokenizer)
    result = headviz.patch(clf, A, B)
    assert 0 < abs(result.span) < 1e-3
    assert np.isnan(result.effect).all()
    with pytest.raises(UserError, match="hardly move it"):
        headviz.paths(clf, [(A, B)])
    assert np.isfinite(headviz.patch(tiny_classifier(), A, B).effect).all()
