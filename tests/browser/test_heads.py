"""The Scores page as people use it: computing, stopping, refining, comparing weights, taking the picture along."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from support import studio

pytestmark = [pytest.mark.browser, pytest.mark.slow]
Open = Callable[..., Any]
DEMO = {"model": "demo", "task": "demo"}  # its tables are shipped: nothing to compute


ATTEMPTS = count(1)  # a server keeps what it has computed: a test's second try needs data that no try has had


@pytest.fixture
def many(query: dict[str, str], studio_folder: Path) -> dict[str, str]:
    """More examples than a machine scores while somebody looks for the stop button."""
    attempt = next(ATTEMPTS)
    return {**query, "data": str(studio.make_data(studio_folder / f"many-{attempt}", 7000, seed=attempt))}


def stop_button(v: Any) -> Any:
    """Ours; streamlit's own stands in the header while a page is drawn."""
    return v.page.get_by_test_id("stMain").get_by_role("button", name="Stop").first


def stop(v: Any) -> None:
    """Once more where the page was drawn anew under the pointer."""
    from playwright.sync_api import TimeoutError as TooLate

    done = v.page.get_by_role("button", name="Continue")
    stop_button(v).click()
    try:
        done.wait_for(timeout=20_000)
    except TooLate:
        stop_button(v).click()
        done.wait_for()


def open_options(v: Any) -> None:
    """The menu with weights, number of examples and the switch for values."""
    v.page.get_by_role("button", name="Options").click()


def measured(v: Any) -> int:
    said = v.page.get_by_text(re.compile(r"Measured on [\d,]+ [a-z]+ examples")).first.inner_text()
    found = re.search(r"on ([\d,]+) [a-z]+ examples", said)
    assert found
    return int(found[1].replace(",", ""))


def test_a_score_grows_is_stopped_keeps_what_it_has_and_goes_on(visit: Open, many: dict[str, str]) -> None:
    v = visit()
    v.go("scores", **many, samples="6000")
    v.page.get_by_text("has not been computed").wait_for()
    v.page.get_by_role("button", name="Compute scores on 6000 examples").click()
    stop_button(v).wait_for()
    v.page.get_by_text(
        re.compile(r"Measured on [\d,]+ [a-z]+ examples")
    ).first.wait_for()  # a first table, while it runs
    assert stop_button(v).count()
    v.page.locator('[class*="st-key-note_heads_"]').get_by_role("button", name="Details").first.click()
    v.page.get_by_text(re.compile(r"Another sample of this size would agree on \d+ %")).first.wait_for()
    v.page.keyboard.press("Escape")
    stop(v)
    v.settle()
    kept = measured(v)
    assert 4 <= kept < 6000
    v.cell("L0·H0").hover()
    said = v.page.locator(".tip dd").all_inner_texts()
    assert re.fullmatch(r"[+−]?[\d.]+(e.\d+)?", said[0])
    assert re.fullmatch(r"\[.+, .+\]", said[1])
    assert re.fullmatch(r"\d+ of 144", said[2])
    v.page.get_by_role("button", name="Continue").click()
    stop_button(v).wait_for()
    v.page.wait_for_function(
        "n => [...document.querySelectorAll('p')].some(p => {"
        " const m = p.innerText.match(/Measured on ([\\d,]+) [a-z]+ ex/); return m && +m[1].replace(',', '') > n })",
        arg=kept,
    )
    stop(v)


def test_before_and_after_fine_tuning_stand_side_by_side(visit: Open, tmp_path: Path) -> None:
    v = visit()
    v.go("scores", **DEMO)
    v.settle()
    open_options(v)
    v.page.get_by_role("radio", name="difference").or_(
        v.page.get_by_role("button", name="difference", exact=True)
    ).first.click()
    v.page.get_by_text(re.compile(r"The largest change by fine-tuning is that of L\d+·H\d+")).wait_for()
    v.page.keyboard.press("Escape")
    v.settle()
    assert v.page.locator("p.title").all_inner_texts() == ["Pre-trained", "Fine-tuned", "Fine-tuned − pre-trained"]
    boards = v.page.locator(".board")
    cells = [boards.nth(i).locator('.cell[aria-label^="L4·H0,"]') for i in range(3)]
    before, after, change = (
        float(re.search(r"conductance-spearman ([^\s,]+)", c.get_attribute("aria-label"))[1]) for c in cells
    )
    assert change == pytest.approx(after - before, abs=6e-4)
    cells[2].hover()
    v.page.locator(".tip:not([hidden])").wait_for()
    told = v.page.locator(".tip:not([hidden]) dt").all_inner_texts()
    # what is recorded of the demo's head stands last
    assert told == ["pre-trained", "fine-tuned", "change", "carries", "looks at"]
    cells[2].click()
    v.page.get_by_text(re.compile(r"pre-trained .+ fine-tuned .+ change")).wait_for()
    v.settle()
    with v.page.expect_download() as caught:
        v.page.get_by_role("button", name="CSV").click()
    rows = list(csv.reader(Path(caught.value.path()).read_text(encoding="utf-8").splitlines()))
    assert rows[0][:3] == ["rank", "head", "change of conductance-spearman"]
    assert len(rows) == 145


def test_the_tooltip_follows_the_score(visit: Open) -> None:
    """The pointer stays on a head while the score is changed by keyboard: the tooltip has the new score's values."""
    v = visit()
    v.go("scores", **DEMO)
    v.cell("L4·H10").hover()
    tip = v.page.locator(".tip")
    tip.get_by_text("conductance-spearman", exact=True).wait_for()
    field = v.page.get_by_role("combobox", name=re.compile("Score")).first
    field.focus()
    v.page.keyboard.type("taylor")
    v.page.keyboard.press("Enter")
    tip.get_by_text("taylor", exact=True).wait_for()
    assert not tip.get_by_text("conductance-spearman", exact=True).count()


def test_a_click_on_a_head_draws_its_card_alone_and_all_else_follows_it(visit: Open, tmp_path: Path) -> None:
    v = visit()
    v.go("scores", **DEMO)
    received: list[int] = []
    v.page.reload()  # so that its connection is heard from the beginning
    v.page.on("websocket", lambda ws: ws.on("framereceived", lambda frame: received.append(len(frame))))
    v.page.reload()
    v.page.locator(".cell").first.wait_for()
    v.settle()
    whole, received[:] = len(received), []
    v.cell("L3·H5").click()
    v.page.locator("h3", has_text="L3·H5").wait_for()
    v.settle()
    assert 0 < len(received) < whole / 2
    assert "head=3.5" in v.page.url
    chosen = v.page.locator('.row[aria-selected="true"]')
    assert "L3·H5" in chosen.get_attribute("aria-label")
    for grid in v.page.locator(".board").all():
        assert grid.locator('.cell[data-selected="1"]').get_attribute("data-i") == str(3 * 12 + 5)
    with v.page.expect_download() as waited:  # drawn before the click, yet it leads to what is seen now
        v.page.get_by_role("button", name="↓ Report").click()
    waited.value.save_as(tmp_path / "report.html")
    assert "head=3.5" in (tmp_path / "report.html").read_text()
    v.page.locator(".row").first.click()
    v.page.wait_for_url(lambda url: "head=3.5" not in url and "head=" in url)
    v.settle()
    first = v.page.locator(".row").first.get_attribute("aria-label").split(":")[0]
    v.page.locator("h3", has_text=first).wait_for()
    shown = v.page.locator('.cell[data-selected="1"]')
    assert [first in (c.get_attribute("aria-label") or "") for c in shown.all()] == [True, True]
    v.page.get_by_role("button", name="Switch off", exact=True).click()  # that is more than the card: the page follows
    v.page.get_by_text("1 of 144 off").wait_for()
    assert v.page.locator('.cell[data-off="1"]').count() >= 2


def test_the_wheel_moves_the_page_until_the_ranking_was_clicked_and_a_chosen_head_moves_nothing(visit: Open) -> None:
    v = visit(viewport={"width": 1280, "height": 800})
    v.go("scores", **DEMO)
    ranking, main = v.page.locator(".ranking .list"), v.page.get_by_test_id("stMain")
    ranking.wait_for()
    v.settle()

    def places() -> list[int]:
        return [int(e.evaluate("e => e.scrollTop")) for e in (main, ranking)]

    before = v.page.locator(".ranking").bounding_box()
    v.cell("L4·H10").click()
    v.page.get_by_role("heading", name="L4·H10").wait_for()
    v.settle()
    assert v.page.locator(".ranking").bounding_box() == before
    main.evaluate("e => e.scrollTop = 600")
    ranking.hover()
    _, inside = places()
    page, _ = places()
    v.page.mouse.wheel(0, 60)
    v.page.wait_for_timeout(400)
    assert places() == [page + 60, inside]
    ranking.locator(".row").first.click()
    v.settle()
    page, inside = places()
    v.page.mouse.wheel(0, 60)
    v.page.wait_for_timeout(400)
    assert places()[0] == page
    assert places()[1] != inside
