"""The Runs page with something on it: for readers of all sorts, on a phone too, and its ways on."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from support import studio
from support.axe import check_everywhere
from support.timed import Clock

pytestmark = [pytest.mark.browser, pytest.mark.slow]
Open = Callable[..., Any]
LONG = 240_000  # milliseconds that timings may take on a busy machine
KINDS = ("pruning", "sweep")
SEEN = {
    "pruning": "After removing",
    "sweep": "reaches the highest",
    "failed": "The disk is full",
    "faster": "accuracy on dev against the measured speed",
}
ATTACK = "<img src=x onerror=alert(1)> **bold** [x](javascript:alert(2))"


@pytest.fixture(scope="module")
def finished(server: str, server_home: Path, studio_folder: Path) -> Iterator[dict[str, str]]:
    """Runs done in this process: name -> id."""
    from headviz.runs.service import this_user
    from support.recorded_runs import Runs, pruning, put_sweep

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HEADVIZ_HOME", str(server_home))
        runs, about, plan = Runs(), {"owner": this_user()}, pruning(studio_folder)
        made = {"pruning": runs.put("done", "prune", plan, **about, title="the pruning run")}
        made["sweep"], (made["member"], *_) = put_sweep(runs, studio_folder, **about, title="the sweep run")
        made["failed"] = runs.put("failed", "prune", plan, 3, **about, title=ATTACK)
        yield made


def opened(v: Any, run: str, name: str, **more: str) -> Any:
    page = v.go("runs", run=run, **more)
    page.get_by_text(SEEN[name]).first.wait_for()
    v.settle()
    return page


@pytest.mark.parametrize("name", KINDS)
def test_nothing_serious_in_light_and_dark_and_nothing_too_wide_for_a_phone(
    visit: Open, query: dict[str, str], finished: dict[str, str], name: str
) -> None:
    v = visit()
    check_everywhere(v, "runs", {**query, "run": finished[name]})
    assert v.page.get_by_text(SEEN[name]).first.is_visible()


def test_a_title_is_a_text(visit: Open, query: dict[str, str], finished: dict[str, str]) -> None:
    v = visit()
    page = opened(v, finished["failed"], "failed", **query)
    page.get_by_role("heading", name=ATTACK).wait_for()
    assert page.locator("img[src=x]").count() == 0
    assert not v.dialogs
    assert page.locator(".stMain a[href^=javascript]").count() == 0


def test_runs_are_compared_on_one_picture(visit: Open, query: dict[str, str], finished: dict[str, str]) -> None:
    v = visit()
    page = opened(v, finished["sweep"], "sweep", **query)
    page.get_by_role("tab", name="Its runs").click()
    v.settle()
    v.choose(re.compile("Open a run"), finished["member"])
    page.get_by_role("button", name="Back to its sweep").wait_for()
    page.get_by_text("After removing").wait_for()
    v.settle()
    v.choose(re.compile("Compare with"), "the pruning run")
    page.wait_for_url(re.compile(r"run=[0-9a-f]{8}%2C" + finished["pruning"]))
    v.settle()
    assert page.locator(".st-key-run_curves .legendtext").count() == 2


def test_the_steps_of_a_report_fit_a_window_and_are_scrolled_on_a_phone(browser: Any) -> None:
    from headviz.display.numbers import change
    from headviz.reports.html_page import Page

    names = ("accuracy", "f1")
    header = ("model", "seed", "heads removed", *(f"{n} [95 %]" for n in names))
    header += (*(f"change of {n}, points" for n in names), "parameters", "time")
    both = ("0.809 [0.774, 0.844]",) * 2 + (change(-0.12, -0.15, -0.105, 100),) * 2
    report = Page("a report")
    report.table(header, [("full θ0, retrained the same way", 0, "10.0 %", *both, 108_312_578, "164 min")])
    for width, fits in ((1280, True), (390, False)):
        page = browser.new_page(viewport={"width": width, "height": 900})
        page.set_content(report.html())
        shown, whole = page.evaluate("(e => [e.clientWidth, e.scrollWidth])(document.querySelector('.scroll'))")
        assert (whole <= shown) is fits, (width, shown, whole)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.close()


def test_a_faster_model_is_compared_in_all_runtimes(
    visit: Open, query: dict[str, str], server: str, server_home: Path, studio_folder: Path, tmp_path: Path
) -> None:
    """The table comes after the press, and stays for the run's report."""
    pytest.importorskip("onnxruntime")
    from headviz.cli import main
    from headviz.runs.service import this_user
    from support.recorded_runs import Runs, source

    small = studio_folder / "small"  # a model whose exports take a second
    studio.make_model(small / "model", layers=3, heads=4)
    studio.make_data(small / "data", 48)
    spec = {**source(small), "targets": [1.2], "batch": 2, "length": 8, "samples": 12, "dev_limit": 24}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HEADVIZ_HOME", str(server_home))
        patch.setattr("headviz.pruning.faster.Timer", Clock)
        faster = Runs().put("done", "faster", spec, owner=this_user(), title="the faster run")
    v = visit()
    page = opened(v, faster, "faster", **{**query, **studio.address(small)})
    page.get_by_role("button", name="Compare runtimes").click()
    page.get_by_text("pruned, ONNX int8").first.wait_for(state="attached", timeout=LONG)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HEADVIZ_HOME", str(server_home))
        assert main(["run", "report", faster, "--out", str(tmp_path / "run.html")]) == 0
    report = (tmp_path / "run.html").read_text(encoding="utf-8")
    assert "Runtimes: " in report
    assert "ONNX int8" in report
