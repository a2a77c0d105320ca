"""The ranking beside the grid: what reaches the browser."""

import numpy as np

from headviz.heads import HeadId, HeadMask, HeadScores
from headviz.ui.parts import scoring
from headviz.ui.widgets import grid


def table(values: np.ndarray, margin: float) -> HeadScores:
    return HeadScores(
        score="taylor",
        values=values,
        stderr=np.full(values.shape, margin / 2),
        interval_low=values - margin,
        interval_high=values + margin,
        samples=7,
        undefined=0,
        undefined_by_head=np.zeros(values.shape, dtype=int),
        mask=HeadMask.full(*values.shape),
        stability=float("nan"),
        settings={},
        notes=(),
    )


def drawn(monkeypatch, found, **more):
    sent = {}
    monkeypatch.setattr(grid, "component", lambda name: lambda **all: sent.update(all))
    names = {h: f"L{h.layer}·H{h.head}" for h in found.ranked()}
    options = {"mask": found.mask, "selected": None, "on_select": print, "interval": scoring.interval} | more
    grid.rank_list("ranking", found, names, **options)
    return sent


def test_rows_stand_in_order_with_their_intervals_on_one_axis(monkeypatch):
    found = table(np.array([[0.5, -0.25], [0.125, 0.0]]), 0.05)
    data = drawn(monkeypatch, found)["data"]
    assert [r["head"] for r in data["rows"]] == [0, 2, 3, 1]
    assert [r["text"] for r in data["rows"]] == ["+0.5000", "+0.1250", "+0.0000", "−0.2500"]
    assert (data["lo"], data["hi"]) == (-0.3, 0.55)
    assert data["names"][3] == "95 % interval"
    assert data["rows"][3]["spoken"] == "L0·H1: −0.2500 [−0.3, −0.2]"


def test_heads_without_a_value_have_no_row_and_no_interval_is_no_zero(monkeypatch):
    values = np.array([[1.0, np.nan], [3.0, 2.0]])
    data = drawn(monkeypatch, table(values, np.nan))["data"]
    assert [r["head"] for r in data["rows"]] == [2, 3, 0]
    assert {r["low"] for r in data["rows"]} == {None}
    assert data["names"] == ["rank", "head", "value", ""]
    assert (data["lo"], data["hi"]) == (1.0, 3.0)


def test_selection_and_mask_are_marked_and_a_click_selects(monkeypatch):
    found, chosen = table(np.arange(6.0).reshape(2, 3), 0.1), []
    sent = drawn(
        monkeypatch, found, mask=found.mask.toggled([HeadId(0, 1)]), selected=HeadId(1, 2), on_select=chosen.append
    )
    assert sent["data"]["off"] == [1]
    assert sent["data"]["selected"] == 5
    monkeypatch.setattr(grid.st, "session_state", {"ranking": {"select": {"head": 4}}})
    sent["on_select_change"]()
    assert chosen == [HeadId(1, 1)]
