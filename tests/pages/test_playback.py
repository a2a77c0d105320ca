"""Playback of a run: what is played is what was recorded, and the answers are those under each step's mask."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from headviz.heads import HeadMask
from headviz.ui.pages.runs import playback
from support.page import DEMO


def test_a_text_breaks_where_its_answer_is_lost_for_good() -> None:
    named = [{"name": n} for n in ("yes", "no", "yes", "no", "not sure")]
    assert playback._breaks(named)["breaks"] == 3
    assert playback._breaks(named[:3])["breaks"] is None


@pytest.mark.slow
@pytest.mark.usefixtures("home", "recorded_runs")
def test_a_recorded_run_plays_its_steps_and_ones_own_text(
    open_page: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    import headviz

    played: list[dict[str, Any]] = []
    real = playback.component

    def noted(name: str) -> Any:
        made = real(name)

        def draw(**more: Any) -> Any:
            played.append(more["data"])
            return made(**more)

        return draw

    monkeypatch.setattr(playback, "component", noted)
    own = {"a": "The dog is not sleeping.", "b": "The dog is sleeping."}
    app = open_page("runs", **DEMO, **own, limit="20")
    app.session_state["playback_box"] = True
    app.run()
    assert not app.exception
    film = played[-1]
    clf = headviz.load("demo")
    assert [step["share"] for step in film["steps"]][:2] == [0.0, pytest.approx(0.1, abs=0.01)]
    assert len(film["steps"]) == 10
    text = film["texts"][0]
    assert text["text"] == " → ".join(own.values())
    batch = clf.collate(clf.encode([own["a"]], [own["b"]]))
    for step, answer in zip(film["steps"], text["answers"], strict=True):
        off = [divmod(place, 12) for place in step["off"]]
        chances = clf.logits(batch, HeadMask.full(12, 12).without(off))[0].softmax(-1)
        assert answer["share"] == f"{float(chances.max()):.2f}"
        assert answer["name"] in (clf.labels[int(chances.argmax())], "not sure")
    assert text["breaks"] is not None
