"""Which head did it? Against brute force over all sets of masked heads."""

from __future__ import annotations

from itertools import combinations, islice
from typing import Any

import numpy as np
import pytest

import headviz
from headviz.attribution.text_under_mask import toggled_each, which_heads, which_moves
from headviz.errors import Cancelled, MaskError
from headviz.heads import HeadId, HeadMask
from support.tiny import tiny_classifier, tiny_model, tiny_tokenizer

TEXT, PAIR = "a dog sleeps .", "the red cat runs"


@pytest.fixture(scope="module")
def clf() -> Any:
    return tiny_classifier("bert", layers=3, heads=4, spread=0.6)


def answer(clf: Any, mask: HeadMask) -> int:
    return int(clf.logits(clf.collate(clf.encode([TEXT], [PAIR])), mask)[0].argmax())


@pytest.fixture(scope="module")
def flipping(clf: Any) -> list[HeadMask]:
    """Masks of 2 to 6 heads under which the answer is another one."""
    count, full = 8, HeadMask.full(3, 4)
    was = answer(clf, full)
    drawn = (full.without_random(2 + seed % 5, seed) for seed in range(400))
    result = list(islice((m for m in drawn if answer(clf, m) != was), count))
    assert len(result) == count, "the model is too steady for this test"
    return result


def brute_force(clf: Any, mask: HeadMask) -> int:
    """The size of the smallest set whose return gives the answer back."""
    was = answer(clf, HeadMask.full(3, 4))
    for size in range(1, len(mask.off) + 1):
        if any(answer(clf, mask.with_(group)) == was for group in combinations(mask.off, size)):
            return size
    raise AssertionError("all heads on is the full model")


@pytest.mark.parametrize("family", ["bert", "albert", "modernbert"])
def test_each_toggled_head_is_the_answer_of_its_own_mask(family: str) -> None:
    """Against one forward pass for each head, with heads off and with heads removed."""
    clf = tiny_classifier(family, layers=3, heads=4, spread=0.6)
    for mask in (HeadMask.full(3, 4), HeadMask.full(3, 4).without([(0, 1), (2, 0), (2, 3)])):
        each = toggled_each(clf, TEXT, PAIR, mask)
        for head in mask.toggled(mask.off).kept:
            batch = clf.collate(clf.encode([TEXT], [PAIR]))
            alone = clf.answer.values(clf.logits(batch, mask.toggled([head])).cpu().numpy())[0]
            assert np.allclose(each[head], alone, atol=1e-6)


def test_each_toggled_head_of_a_pruned_model(clf: Any) -> None:
    small = headviz.prune(clf, HeadMask.full(3, 4).without([(1, 1), (1, 2)]))
    each = toggled_each(small, TEXT, PAIR, small.present)
    assert np.isnan(each[1, 1]).all()
    batch = small.collate(small.encode([TEXT], [PAIR]))
    alone = small.answer.values(small.logits(batch, small.present.toggled([HeadId(1, 0)])).cpu().numpy())[0]
    assert np.allclose(each[1, 0], alone, atol=1e-6)


def test_finds_a_smallest_set(clf: Any, flipping: list[HeadMask]) -> None:
    was = answer(clf, HeadMask.full(3, 4))
    for mask in flipping:
        result = which_heads(clf, TEXT, PAIR, mask)
        assert result is not None
        assert result.smallest
        assert len(result.heads) == brute_force(clf, mask)
        assert set(result.heads) <= set(mask.off)
        assert answer(clf, mask.with_(result.heads)) == was == result.full
        assert answer(clf, mask) == result.masked


def test_greedy_sets_restore_and_need_each_head(clf: Any, flipping: list[HeadMask]) -> None:
    was = answer(clf, HeadMask.full(3, 4))
    for mask in flipping:
        result = which_heads(clf, TEXT, PAIR, mask, trials=1)
        assert result is not None
        assert answer(clf, mask.with_(result.heads)) == was
        if not result.smallest:
            for h in result.heads:
                assert answer(clf, mask.with_(set(result.heads) - {h})) != was


def share(clf: Any, mask: HeadMask, target: int) -> float:
    return float(clf.logits(clf.collate(clf.encode([TEXT], [PAIR])), mask)[0].softmax(-1)[target])


def test_the_head_that_moves_it_most_is_the_best_single_return(clf: Any) -> None:
    whole = HeadMask.full(3, 4)
    target = answer(clf, whole)
    full = share(clf, whole, target)
    for seed in range(6):
        mask = whole.without_random(2 + seed % 5, seed)
        result = which_moves(clf, TEXT, PAIR, mask)
        assert (result.target, result.full, result.masked) == (target, full, share(clf, mask, target))
        gaps = {h: abs(full - share(clf, mask.with_([h]), target)) for h in mask.off}
        nearest = min(gaps.values())
        if nearest >= abs(full - result.masked):
            assert result.head is None
            assert result.back == result.masked
        else:
            assert result.head is not None
            assert gaps[result.head] == nearest
            assert result.back == share(clf, mask.with_([result.head]), target)


def test_which_moves_can_be_stopped_and_needs_classes(clf: Any) -> None:
    mask = HeadMask.full(3, 4).without([(0, 0)])
    with pytest.raises(Cancelled):
        which_moves(clf, TEXT, PAIR, mask, cancel=lambda: True)
    number = tiny_classifier("bert", labels=("score",))
    with pytest.raises(MaskError, match="number"):
        which_moves(number, TEXT, None, mask)


def test_several_labels_are_given_back_together() -> None:
    """The least set after which every label is decided as by the full model; with thresholds of one's own too."""
    model = tiny_model(layers=3, heads=4, spread=0.6, labels=("red", "cold", "wet"))
    clf = headviz.wrap(model, tiny_tokenizer(), "tiny", job="labels")
    whole, batch = HeadMask.full(3, 4), clf.collate(clf.encode([TEXT], [PAIR]))
    for decide in (clf.answer, clf.answer.at((0.4, 0.6, 0.45), clf.labels)):

        def decided(mask: HeadMask, decide: Any = decide) -> list[int]:
            return list(decide.plain(clf.logits(batch, mask).numpy())[0])

        flipped = 0
        for seed in range(8):
            mask = whole.without_random(2 + seed % 4, seed)
            result = which_heads(clf, TEXT, PAIR, mask, answer=decide)
            if decided(mask) == decided(whole):
                assert result is None
                continue
            assert result is not None
            flipped += 1
            assert decided(mask.with_(result.heads)) == decided(whole) == list(result.full)
            sets = (group for size in range(1, len(mask.off) + 1) for group in combinations(mask.off, size))
            assert len(result.heads) == len(next(g for g in sets if decided(mask.with_(g)) == decided(whole)))
        assert flipped > 1
    moved = which_moves(clf, TEXT, PAIR, mask)
    before, after = (clf.answer.values(clf.logits(batch, m).numpy())[0] for m in (whole, mask))
    assert moved.target == np.abs(before - after).argmax()
    assert moved.full == pytest.approx(before[moved.target])
