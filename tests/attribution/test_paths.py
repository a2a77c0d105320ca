"""Paths against hooks on a plain transformers model, their identities, and what is refused."""

from contextlib import ExitStack
from typing import Any

import numpy as np
import pytest
import torch

import headviz
from attribution.test_patching import A, B, modules_of, outputs_of
from headviz import HeadId, HeadMask, UserError
from headviz.attribution.paths import INPUTS, _Pair
from headviz.models.families import FAMILIES
from support.tiny import tiny_classifier, tiny_model

RECEIVER = HeadId(2, 1)


def effects(clf: Any, text: Any, donor: Any, receiver: Any = None, into: Any = "answer", **given: Any) -> np.ndarray:
    """[L, H] the share of the way that each sender moves the answer through one receiver; NaN where none can."""
    pair = _Pair(clf, text, donor, "all", **{"mask": None, **given})
    return pair.into_each([receiver], None)[receiver, into]


def linear(clf: Any, model: Any, into: str) -> Any:
    """The plain model's module that makes the receiver's queries, keys or values."""
    family = FAMILIES[clf.config.model_type]
    attention = family.attention["encoder"]
    path = {"queries": attention.query, "keys": attention.key, "values": attention.value}[into]
    return model.base_model.get_submodule(path.format(**family.place(model.config, RECEIVER.layer)))


def oracle(clf: Any, model: Any, sender: HeadId, into: str) -> Any:
    """The logits with one path open, by hooks."""
    one, other = (clf.collate(clf.encode([t[0]], [t[1]])) for t in (A, B))
    own, donor, size = outputs_of(clf, model, one), outputs_of(clf, model, other), clf.head_size
    mine = slice(sender.head * size, (sender.head + 1) * size)
    theirs = slice(RECEIVER.head * size, (RECEIVER.head + 1) * size)
    run, seen = [0], []

    def freeze(_: Any, inputs: Any) -> Any:
        layer = run[0]
        run[0] += 1
        states = own[layer].clone()
        if layer == sender.layer:
            states[:, mine] = donor[layer][:, mine]
        return (states[None],)

    with ExitStack() as hooks, torch.no_grad():
        for module in modules_of(clf, model):
            hooks.callback(module.register_forward_pre_hook(freeze).remove)
        if into != "answer":
            hooks.callback(linear(clf, model, into).register_forward_hook(lambda *a: seen.append(a[2].clone())).remove)
        logits = model(**one).logits[0]
    if into == "answer":
        return logits.numpy()

    def put(_: Any, __: Any, states: Any) -> Any:
        states = states.clone()
        states[..., theirs] = seen[0][..., theirs]
        return states

    with ExitStack() as hooks, torch.no_grad():
        hooks.callback(linear(clf, model, into).register_forward_hook(put).remove)
        return model(**one).logits[0].numpy()


@pytest.mark.parametrize(
    ("family", "into"), [("bert", "answer"), ("bert", "queries"), ("bert", "values"), ("distilbert", "keys")]
)
def test_every_path_equals_hooks_on_the_plain_model(family: str, into: str) -> None:
    clf, model = tiny_classifier(family), tiny_model(family, attn_implementation="eager")
    result = headviz.patch(clf, A, B)
    a, b = int(result.from_logits.argmax()), int(result.to_logits.argmax())
    lead = (lambda v: v[b]) if a == b else (lambda v: v[b] - v[a])
    grid = effects(clf, A, B, None if into == "answer" else RECEIVER, into)
    last = clf.num_layers if into == "answer" else RECEIVER.layer
    assert {int(layer) for layer in np.argwhere(np.isfinite(grid))[:, 0]} == set(range(last))
    for layer in range(last):
        for head in range(clf.num_heads):
            moved = lead(oracle(clf, model, HeadId(layer, head), into)) - lead(result.from_logits)
            np.testing.assert_allclose(grid[layer, head] * result.span, moved, atol=2e-6 + 1e-3 * abs(moved))
    assert np.nanmax(np.abs(grid * result.span)) > 3e-6  # by queries and keys tiny models move little


@pytest.mark.parametrize("family", ["bert", "deberta-v2", "bart", "t5", "modernbert"])
def test_in_the_last_layer_the_path_to_the_answer_is_all_that_a_head_does(family: str) -> None:
    clf = tiny_classifier(family)
    grid = effects(clf, A, B)
    step = clf.num_layers - 1 if clf.order is None else clf.order.row(clf.num_layers - 1)
    np.testing.assert_allclose(grid[step], headviz.patch(clf, A, B).effect[step], rtol=1e-2, atol=1e-3)


@pytest.mark.parametrize("family", ["bert", "deberta-v2", "bart", "qwen2"])
def test_a_text_sends_nothing_to_itself(family: str) -> None:
    clf = tiny_classifier(family)
    pair = _Pair(clf, A, A, "all", None)
    logits, reached = pair._send(pair.senders[:2], [RECEIVER])
    np.testing.assert_allclose(pair.measured.of(logits), pair.start, atol=1e-5)
    for into, values in zip(INPUTS, reached[RECEIVER], strict=True):
        same = pair._receive(RECEIVER, into, values)
        np.testing.assert_allclose(pair.measured.of(same), pair.start, atol=1e-5, err_msg=into)
        noise = pair._receive(RECEIVER, into, torch.randn_like(values))
        assert np.abs(pair.measured.of(noise) - pair.start).max() > 1e-4, into


def test_masked_heads_send_and_receive_as_removed_ones() -> None:
    clf = tiny_classifier()
    mask = HeadMask.full(3, 4).without([(0, 1), (1, 0), (1, 1), (1, 2), (1, 3)])
    masked = effects(clf, A, B, RECEIVER, "values", mask=mask)
    pruned = effects(headviz.prune(clf, mask), A, B, RECEIVER, "values")
    np.testing.assert_allclose(masked, pruned, atol=1e-4)
    assert np.argwhere(np.isfinite(masked)).tolist() == [[0, 0], [0, 2], [0, 3]]


def test_the_graph_holds_the_strongest_and_each_receiver_goes_on_to_the_answer() -> None:
    clf = tiny_classifier(seed=4, spread=0.4)  # answers the two texts differently
    seen: list[tuple[int, int]] = []
    result = headviz.paths(clf, [(A, B), (B, A)], receivers=2, depth=2, edges=9, progress=lambda *at: seen.append(at))
    assert result.n == 2
    assert len(result.edges) == 9
    assert seen[-1][0] == seen[-1][1]
    assert [abs(e.effect) for e in result.edges] == sorted((abs(e.effect) for e in result.edges), reverse=True)
    for edge in result.edges:
        assert edge.low <= edge.effect <= edge.high
        if edge.receiver is not None:
            assert edge.sender.layer < edge.receiver.layer
            assert edge.receiver in {e.sender for e in result.edges}
    direct = np.mean([effects(clf, A, B), effects(clf, B, A)], axis=0)
    first = max((e for e in result.edges if e.receiver is None), key=lambda e: abs(e.effect))
    assert abs(first.effect) == pytest.approx(np.abs(direct).max(), rel=1e-4)
    one = headviz.paths(clf, [(A, B)], receivers=1, depth=0, edges=3)
    assert all(np.isnan(e.low) and e.into == "answer" for e in one.edges)


def test_an_alignment_of_the_callers_is_followed() -> None:
    clf = tiny_classifier()
    usual = headviz.paths(clf, [(A, B)], receivers=1, depth=1)
    length = len(headviz.patch(clf, A, B).tokens)
    same = headviz.paths(clf, [(A, B)], receivers=1, depth=1, alignment={i: i for i in range(length)})
    assert str(same.edges) == str(usual.edges)  # without an interval, which is NaN
    fewer = {0: 0, 1: 3}
    other = headviz.paths(clf, [(A, B)], receivers=1, depth=1, alignment=fewer)
    assert str(other.edges) != str(usual.edges)
    strongest = other.edges[0]
    effect = effects(clf, A, B, strongest.receiver, strongest.into, alignment=fewer)[strongest.sender]
    assert effect == pytest.approx(strongest.effect, rel=1e-4)
    with pytest.raises(UserError, match="one pair of texts"):
        headviz.paths(clf, [(A, B), (B, A)], alignment=fewer)


def test_what_cannot_be_followed_is_refused() -> None:
    clf = headviz.load("demo", device="cpu")
    with pytest.raises(UserError, match="no way to follow"):
        headviz.paths(clf, [(("A dog ran.", "A dog ran."), ("A cat ran.", "A cat ran."))] * 2)
    with pytest.raises(UserError, match="no way to follow"):
        headviz.paths(clf, [(("A dog ran.", "A dog ran."), ("A dog ran.", "A dog ran."))])
    with pytest.raises(UserError, match="whole number"):
        headviz.paths(clf, [], receivers=0)
    with pytest.raises(headviz.errors.Cancelled):
        headviz.paths(clf, [(A, B)], cancel=lambda: True)
