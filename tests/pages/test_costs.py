"""What each head costs is measured by itself on the first page, and then orders heads everywhere."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from headviz.ui.parts import scoring
from headviz.ui.shell import jobs


@pytest.mark.slow
@pytest.mark.usefixtures("costs_measured")
def test_costs_are_measured_without_being_asked_for(open_page: Callable[..., Any]) -> None:
    import headviz
    from headviz.ui.shell import loaders

    app = open_page("scores", samples="8", seed="3")
    assert not app.exception
    view = app.session_state["headviz"].view
    job = jobs.find(("cost", *scoring.key_of(replace(view, samples=8), "ablation")))
    assert job is not None
    assert job.finished.wait(120)
    assert not job.error
    app = app.run()
    assert not app.exception
    found = scoring.costs(view)
    assert found is not None
    assert found.score == "ablation"
    clf = loaders.classifier(view)
    exact = headviz.score_heads(clf, scoring.sample(view, clf), "ablation")
    assert (found.values == exact.values).all()
    assert scoring.ordering(view) is found
    open_page("scores", samples="12", seed="3")  # more are asked for: the costs are measured again
    more = jobs.find(("cost", *scoring.key_of(replace(view, samples=12), "ablation")))
    assert more is not None
    assert more.finished.wait(120)
    assert not more.error
    assert scoring.costs(view).samples == 12
    board = open_page("masklab", samples="8", seed="3")
    assert any("lowest by ablation" in b.label for b in board.button)
    # costs in loss are read from the same answers, so they need no click
    in_loss = scoring.key_of(replace(view, samples=8), "ablation-loss")
    assert jobs.find(in_loss) is None
    open_page("scores", samples="8", seed="3", beside="ablation-loss")
    assert jobs.find(in_loss) is not None
    assert jobs.find(in_loss).finished.wait(120)
    assert not jobs.find(in_loss).error
    beside = open_page("scores", samples="8", seed="3", beside="ablation-loss")
    assert not beside.exception
    assert not [b for b in beside.button if b.key == "compute_fine-tuned_ablation-loss"]
    open_page("scores", samples="16", seed="3", beside="ablation-loss")
    assert jobs.find(scoring.key_of(replace(view, samples=16), "ablation-loss")) is None


@pytest.mark.slow
def test_an_estimate_orders_the_heads_under_its_own_name(open_page: Callable[..., Any]) -> None:
    """The choice said "by ablation" beside a grid of another score."""
    import headviz
    from headviz.ui.shell import loaders

    app = open_page("masklab", samples="8", seed="4")
    view = app.session_state["headviz"].view
    clf = loaders.classifier(view)
    scoring.keep(view, headviz.score_heads(clf, scoring.sample(view, clf), "taylor"))
    app.run()
    assert next(s for s in app.selectbox if s.label == "Score").options[0] == "by taylor until ablation is measured"
    assert any("lowest by taylor" in b.label for b in app.button)
