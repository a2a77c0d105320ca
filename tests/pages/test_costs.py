"""What each head costs is measured by itself on the first page, and then orders heads everywhere."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import headviz
from headviz.heads import HeadMask, lowest
from headviz.ui.parts import scoring
from headviz.ui.shell import jobs, loaders


def ended(key: tuple[Any, ...]) -> None:
    job = jobs.find(key)
    assert job is not None
    assert job.finished.wait(120)
    assert not job.error


@pytest.mark.slow
@pytest.mark.usefixtures("costs_measured")
def test_costs_are_measured_without_being_asked_for(open_page: Callable[..., Any], small: dict[str, str]) -> None:
    app = open_page("scores", **small, samples="8", seed="3")
    assert not app.exception
    view = app.session_state["headviz"].view
    ended(("cost", *scoring.key_of(replace(view, samples=8), "ablation")))
    assert not app.run().exception
    found = scoring.costs(view)
    assert found is not None
    assert found.score == "ablation"
    clf = loaders.classifier(view)
    exact = headviz.score_heads(clf, scoring.sample(view, clf), "ablation")
    assert (found.values == exact.values).all()
    assert scoring.ordering(view) is found
    open_page("scores", **small, samples="12", seed="3")  # more are asked for: the costs are measured again
    ended(("cost", *scoring.key_of(replace(view, samples=12), "ablation")))
    assert scoring.costs(view).samples == 12
    # costs in loss are read from the same answers, so they need no click
    in_loss = scoring.key_of(replace(view, samples=8), "ablation-loss")
    assert jobs.find(in_loss) is None
    open_page("scores", **small, samples="8", seed="3", beside="ablation-loss")
    ended(in_loss)
    beside = open_page("scores", **small, samples="8", seed="3", beside="ablation-loss")
    assert not beside.exception
    assert not [b for b in beside.button if b.key == "compute_fine-tuned_ablation-loss"]
    open_page("scores", **small, samples="16", seed="3", beside="ablation-loss")
    assert jobs.find(scoring.key_of(replace(view, samples=16), "ablation-loss")) is None


@pytest.mark.slow
def test_an_estimate_orders_the_heads_under_its_own_name(open_page: Callable[..., Any], small: dict[str, str]) -> None:
    """The choice said "by ablation" beside a grid of another score. One click switches its lowest off."""
    app = open_page("masklab", **small, samples="8", seed="4", count="5")
    view = app.session_state["headviz"].view
    clf = loaders.classifier(view)
    found = headviz.score_heads(clf, scoring.sample(view, clf), "taylor")
    scoring.keep(view, found)
    app.run()
    assert next(s for s in app.selectbox if s.label == "Score").options[0] == "by taylor until ablation is measured"
    full = HeadMask.full(3, 4)

    def off_after(key: str) -> tuple[Any, ...]:
        app.button(key=key).click().run()
        assert not app.exception
        mask = app.session_state["headviz"].view.mask
        return HeadMask.from_hex(mask, 3, 4).off if mask else ()

    assert "taylor" in app.button(key="lowest").label
    chosen = off_after("lowest")
    assert set(chosen) == {*lowest(np.array(found.values), 5, full.kept, seed=0)}
    assert set(off_after("invert")) == {*full.kept} - {*chosen}
    assert len(off_after("random")) == 5
    assert not off_after("all_on")
