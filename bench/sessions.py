"""Memory of one dashboard with several people at work, each in a browser of their own and on a model of their own.

    python -m bench.sessions                      # eight sessions, ten minutes
    python -m bench.sessions --sessions 3 --seconds 60

Each model is the demo with another head removed, on the demo's data. All sessions switch heads off in the Mask lab at
the same time, open Heads, Compare and One head, and begin again. The table tells the memory of the server's process.
What bounds it stands in SECURITY.md.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil

from tests.support.server import IDLE, serve

ERRORS = "[data-testid=stException], [data-testid=stAlertContentError]"
PAGES = ("masklab", "", "compare", "head")
CLICKS = 6  # in the Mask lab, each time it is open


def make_models(folder: Path, count: int) -> list[Path]:
    """The demo without one head each."""
    import headviz

    demo = headviz.load("demo")
    made = []
    for k in range(count):
        made.append(folder / f"model-{k}")
        headviz.prune(demo, headviz.HeadMask.full(12, 12).without([(k % 12, (5 * k) % 12)])).save(made[-1])
    return made


class Session:
    """One person: a browser context on one model."""

    def __init__(self, browser: Any, address: str, model: Path, seed: int) -> None:
        self.tab = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
        self.tab.set_default_timeout(240_000)
        self.address, self.model, self.draw = address, model, random.Random(seed)
        self.masks = 0

    def open(self, page: str) -> None:
        self.tab.goto(f"{self.address}/{page}?model={self.model}&task=demo")

    def settle(self) -> None:
        self.tab.wait_for_selector(IDLE)
        self.tab.wait_for_timeout(200)
        self.tab.wait_for_selector(IDLE)
        wrong = self.tab.locator(ERRORS).all_inner_texts()
        if wrong:
            raise RuntimeError(f"{self.tab.url}: {wrong}")

    def switch(self) -> None:
        """A click on a head of the board that is still there."""
        cells = self.tab.locator(".cell:not([aria-disabled=true])")
        cells.nth(self.draw.randrange(cells.count())).click()
        self.masks += 1


def memory(pid: int) -> float:
    """Resident memory in MB."""
    return psutil.Process(pid).memory_info().rss / 2**20


def work(browser: Any, server: Any, models: list[Path], seconds: float) -> list[tuple[float, float, int]]:
    """(seconds, MB, masks) after each thing that all sessions did; the first one is the empty server."""
    result = [(0.0, memory(server.pid), 0)]
    people = [Session(browser, server.address, model, k) for k, model in enumerate(models)]
    begun = time.perf_counter()

    def note() -> None:
        result.append((time.perf_counter() - begun, memory(server.pid), sum(p.masks for p in people)))

    while True:
        for page in PAGES:
            for person in people:
                person.open(page)
            for person in people:
                person.settle()
            note()
            for _ in range(CLICKS if page == "masklab" else 0):
                for person in people:
                    person.switch()
                for person in people:
                    person.settle()
                note()
            if time.perf_counter() - begun > seconds:
                return result


def main() -> None:
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=600)
    given = parser.parse_args()
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as place:
        path = os.environ.get("CHROMIUM") or shutil.which("chromium")
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        models = make_models(Path(place), given.sessions)
        with serve(Path(place) / "home", Path(place) / "log.txt", HEADVIZ_ROOTS=place) as server:
            result = work(browser, server, models, given.seconds)
    print(f"{given.sessions} sessions, {given.sessions} models, {os.cpu_count()} cores; load {os.getloadavg()[0]:.1f}")
    print(f"{'seconds':>8} {'MB':>7} {'masks':>6}")
    step = max(1, len(result) // 20)
    for seconds, size, masks in [*result[::step], result[-1]]:
        print(f"{seconds:8.0f} {size:7.0f} {masks:6d}")
    print(f"most: {max(size for _, size, _ in result):.0f} MB")


if __name__ == "__main__":
    main()
