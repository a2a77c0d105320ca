"""While a mask is being evaluated, the Mask lab shows what there is so far, and says that it is a part."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from headviz.attribution.conductance import Explainer
from headviz.evaluation import mask_evaluator
from headviz.evaluation.evaluator import Evaluator
from headviz.ui.shell import jobs
from support.running import until


@pytest.mark.slow
def test_a_part_is_shown_then_the_whole(open_page: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    go = threading.Event()
    real = Evaluator.growing

    def slow(self: Evaluator, mask: Any = None, reference: Any = None, **more: Any) -> Iterator[mask_evaluator.Growing]:
        index = np.arange(8)
        yield mask_evaluator.part_of(
            self.data, self.whole(mask), index, self.predictions(reference)[index], self.predictions(mask)[index]
        )
        assert go.wait(60)
        yield from real(self, mask, reference, **more)

    monkeypatch.setattr(Evaluator, "growing", slow)
    monkeypatch.setattr(jobs, "PARTIAL_AFTER", 0.1)
    app = open_page("masklab", off="0.1,4.4", limit="15")
    said = " ".join(m.value for m in app.markdown).replace("\\", "")
    assert "Without L0·H1 and L4·H4: " in said
    assert "on 8 of 15 examples so far, too few to say" in said
    assert "answers are" not in said  # eight may be alike by chance
    assert any("n = " not in m.delta and m.label == "full model" for m in app.metric)
    assert not [s for s in app.subheader if "Confusion" in s.value]  # comes with the whole
    go.set()
    job = next(j for j in jobs._jobs.values() if j.partial is not None)
    assert job.finished.wait(60)
    app.run()
    assert not app.exception
    assert "so far" not in " ".join(m.value for m in app.markdown)
    assert [s for s in app.subheader if "Confusion" in s.value]


@pytest.mark.slow
def test_maps_of_few_steps_are_shown_while_they_are_refined(
    open_page: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    go, real = threading.Event(), Explainer._maps

    def slow(self: Explainer, encodings: Any, targets: Any, options: Any) -> Any:
        assert options.steps == 16 or go.wait(60)
        return real(self, encodings, targets, options)

    monkeypatch.setattr(Explainer, "_maps", slow)
    monkeypatch.setattr("headviz.attribution.conductance.TOLERANCE", 1e-9)
    monkeypatch.setattr("headviz.attribution.conductance.ENOUGH", 32)
    monkeypatch.setattr(jobs, "PATIENCE", 0.0)
    app = open_page("head", text="a small dog runs .", pair="a cat sleeps .")
    job = next(j for j in jobs._jobs.values() if "maps" in j.key and j.running)
    until(lambda: job.partial is not None)
    app.run()
    assert not app.exception
    said = " ".join(m.value for m in app.markdown)
    assert "16 steps, estimated integration error" in said
    go.set()
    assert job.finished.wait(60)
    app.run()
    assert not app.exception
    assert "32 steps, estimated integration error" in " ".join(m.value for m in app.markdown)


@pytest.mark.slow
def test_the_next_click_on_any_head_is_computed_ahead(
    open_page: Callable[..., Any], small: dict[str, str], computed_ahead: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = open_page("masklab", **small, off="1.1", limit="12")
    job = next(j for j in jobs._jobs.values() if "ahead" in j.key)
    assert job.turn.rank == jobs.LAST
    assert job.finished.wait(120)
    assert (job.error, job.stopped, job.done) == ("", False, job.total)

    def refuse(*given: Any) -> Any:
        raise AssertionError("nothing was to be computed")

    monkeypatch.setattr(Evaluator, "_run", refuse)
    monkeypatch.setattr("headviz.ui.parts.measure.ahead", lambda *given: None)
    app = next(b for b in app.button if b.key == "ask_what_if").click().run()  # one more head
    assert not app.exception
    app = next(b for b in app.button if b.key == "all_on").click().run()  # one head less
    assert not app.exception
    assert "0 of 12" in [m.value for m in app.metric]
