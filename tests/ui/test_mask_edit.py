"""What an edit of a mask means."""

import numpy as np
import pytest

from headviz.errors import MaskError
from headviz.heads import HeadId, HeadMask
from headviz.storage.exchange import mask_from_text, mask_json
from headviz.ui.shell import mask_edit
from headviz.ui.shell.mask_edit import History

FULL = HeadMask.full(3, 4)


def test_undo_and_redo_walk_the_same_line_until_a_new_edit() -> None:
    h = History().push("a").push("b").push("c")
    back = h.undo().undo()
    assert (back.present, back.redo().present, back.redo().redo()) == ("a", "b", h)
    assert h.undo().undo().undo().present == ""
    assert History().undo() == History().redo() == History()
    assert back.push("d").redo().present == "d"  # forgets what was undone
    assert back.push("a").redo().present == "b"  # the same is no edit


def test_history_is_bounded() -> None:
    h = History()
    for i in range(3 * mask_edit.DEPTH):
        h = h.push(str(i))
    assert len(h.past) == mask_edit.DEPTH
    assert h.undo().present == str(3 * mask_edit.DEPTH - 2)


@pytest.mark.parametrize("first_click_arrived", [True, False])
def test_undo_of_a_double_click_leads_before_its_first_click(first_click_arrived: bool) -> None:
    h = History().push("base")
    if first_click_arrived:
        h = h.push("one off")
    h = h.push("solo", base="base")
    assert h.present == "solo"
    assert h.undo().present == "base"
    assert h.undo().undo().present == ""


def test_a_double_click_back_to_its_base_is_no_edit() -> None:
    h = History().push("base").push("one off")
    assert h.push("base", base="base") == History().push("base")


def test_places_from_the_browser() -> None:
    mask = mask_edit.from_indices([0, 7, 11], 3, 4)
    assert mask.off == (HeadId(0, 0), HeadId(1, 3), HeadId(2, 3))


@pytest.mark.parametrize("bad", [12, -1, "3", None, 1.0, True, [0]])
def test_places_outside_the_grid_are_refused(bad: object) -> None:
    with pytest.raises(MaskError, match="3×4"):
        mask_edit.from_indices([bad], 3, 4)


def test_the_lowest_are_chosen_among_the_heads_that_are_there() -> None:
    values = np.arange(12.0).reshape(3, 4)
    assert mask_edit.off_to_count(values, 3, FULL).off == (HeadId(0, 0), HeadId(0, 1), HeadId(0, 2))
    present = FULL.without([(0, 0), (0, 1)])
    assert mask_edit.off_to_count(values, 2, present).off == (HeadId(0, 2), HeadId(0, 3))
    with pytest.raises(MaskError, match="10"):
        mask_edit.off_to_count(values, 11, present)


def test_the_lowest_of_equal_heads_are_drawn_and_said() -> None:
    values = np.zeros((3, 4))
    values[2, 3], values[2, 2], values[2, 1] = -1.0, 5.0, np.nan
    picked = mask_edit.off_to_count(values, 4, FULL)
    assert picked == mask_edit.off_to_count(values, 4, FULL)
    assert HeadId(2, 3) in picked.off
    assert not {HeadId(2, 2), HeadId(2, 1)} & set(picked.off)
    assert set(picked.off) != {HeadId(2, 3), HeadId(0, 0), HeadId(0, 1), HeadId(0, 2)}
    assert mask_edit.tie_at(values, 4, FULL) == "3 of the 4 are drawn from 9 heads with the same value."
    assert not any(mask_edit.tie_at(values, count, FULL) for count in (0, 1, 10, 11, 12))


def test_random_is_exact_seeded_and_among_those_there() -> None:
    present = FULL.without([(1, 1)])
    one, same, other = (mask_edit.off_at_random(5, present, seed) for seed in (1, 1, 2))
    assert one == same != other
    assert len(one.off) == 5
    assert HeadId(1, 1) not in one.off


def test_inverting_twice_is_nothing_and_spares_removed_heads() -> None:
    present = FULL.without([(1, 1)])
    mask = FULL.without([(0, 0), (2, 2)])
    once = mask_edit.inverted(mask, present)
    assert len(once.off) == 12 - 1 - 2
    assert mask_edit.inverted(once, present) == mask
    named = mask_edit.inverted(FULL.without([(1, 1), (0, 0)]), present)  # a link may name a head that is not there
    assert (1, 1) not in named.off
    assert len(named.off) == 12 - 1 - 1


MASK = FULL.without([(0, 1), (2, 3)])
READ = [MASK.hex, f"  {MASK.hex.upper()} ", f"0x{MASK.hex}", "0.1,2.3", "L0·H1, L2·H3", "0.1\n2.3", '["0.1", "2.3"]']
READ += ["[[0, 1], [2, 3]]", mask_json(MASK, model="demo"), '{"0": [1], "2": [3]}']
READ += ['{"pruned_heads": {"0": [1], "2": [3]}, "num_labels": 2}', "[[1, 0, 1, 1], [1, 1, 1, 1], [1, 1, 1, 0]]"]
NONSENSE = [
    "",
    "hello",
    "fff0f",
    "12.0",
    "{",
    "[" * 5000,
    '{"off": 3}',
    '{"off": [{"a": 1}]}',
    "[[0, 1, 2]]",
    "mask.json",
]
NONSENSE += ["[[0, true]]", '{"layers": 12, "heads": 12, "off": []}', '{"3": "5"}', '{"x": [5]}', '{"0": [true]}']


@pytest.mark.parametrize("text", READ)
def test_pasted_masks_are_read(text: str) -> None:
    assert mask_from_text(text, 3, 4) == MASK


@pytest.mark.parametrize("text", NONSENSE)
def test_pasted_nonsense_says_what_is_wrong(text: str) -> None:
    with pytest.raises(MaskError) as caught:
        mask_from_text(text, 3, 4)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 250


def test_heads_may_be_named_by_their_stack() -> None:
    stacks = {"encoder": range(2), "cross": range(2, 4), "decoder": range(4, 6)}
    for text in ("cross.1.3, 0.2", '["cross.1.3", "0.2"]', '{"off": ["cross.1.3", [0, 2]]}'):
        assert mask_from_text(text, 6, 4, stacks).off == ((0, 2), (3, 3))
    for wrong in ("cross.2.0", "middle.0.0", '["cross.0.9"]', '[""]'):
        with pytest.raises(MaskError):
            mask_from_text(wrong, 6, 4, stacks)


def test_named_masks() -> None:
    saved = mask_edit.save_named({}, "  taylor   50 % ", MASK)
    assert saved == {"taylor 50 %": MASK.hex}
    assert mask_edit.save_named(saved, "taylor 50 %", FULL) == {"taylor 50 %": FULL.hex}
    for bad in ("", "   ", "x" * 61):
        with pytest.raises(MaskError):
            mask_edit.save_named(saved, bad, MASK)
