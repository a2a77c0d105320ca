"""The pages of each further job in a browser: nothing fails, and nothing is wider than the screen."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support import job_folders

pytestmark = pytest.mark.browser
IN_CI = ("tokens",)  # words in colours, and a list of tags
WIDER = "(m => m.scrollWidth - m.clientWidth)(document.querySelector('[data-testid=stMain]'))"


@pytest.mark.slow
@pytest.mark.parametrize(
    "job", [job if job in IN_CI else pytest.param(job, marks=pytest.mark.soak) for job in job_folders.MADE]
)
def test_its_pages_fit_a_desk_and_a_phone(visit: Callable[..., Any], studio_folder: Path, job: str) -> None:
    v, folder = visit(), studio_folder / job
    folder.mkdir()
    own = job_folders.address(job, job_folders.make(job, folder))
    for page in ("", "masklab", "scores", "head", "compare", "analyses", "runs", "data"):
        v.go(page, **own, mask="fb7")
        for size in ({"width": 1280, "height": 800}, {"width": 390, "height": 844}):
            v.page.set_viewport_size(size)
            v.settle()
            assert v.page.evaluate(WIDER) <= 0
            assert not v.page.locator(".stException:visible").count()
        assert v.page.locator(".cell:visible").count() or page not in ("", "masklab", "scores")
    assert not v.errors
