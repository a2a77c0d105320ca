"""How fast the dashboard answers, measured in a browser: medians and 95th percentiles against the aims.

    python -m bench.dashboard            # starts its own server on the demo

first page    from the start of the server's process until the grid of the first page is there    aim 6 s
page open     the first page until its grid is there; server up, nothing cached in the browser   aim 2 s
head click    a click on a head until its name stands in the card                                aim 0.2 s
mask toggle   a click on the board until the page says how many heads are off                    aim 0.4 s
compare       a typed word until the verdict has been drawn again                                no aim given

The browser runs on the same machine and takes its share of it; the load is printed with the figures.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.support.server import serve

IDLE = "[data-testid=stApp][data-test-script-state=notRunning]"
AIMS = {"first page": 6.0, "page open": 2.0, "head click": 0.2, "mask toggle": 0.4}


def settle(tab: Any) -> None:
    tab.wait_for_selector(IDLE)
    tab.wait_for_timeout(500)
    tab.wait_for_selector(IDLE)


def clocked(action: Callable[[], None]) -> float:
    begun = time.perf_counter()
    action()
    return time.perf_counter() - begun


def page_open(browser: Any, address: str, times: int) -> list[float]:
    out = []
    for _ in range(times):
        context = browser.new_context(viewport={"width": 1280, "height": 900})
        tab = context.new_page()
        tab.set_default_timeout(120_000)

        def opened(tab: Any = tab) -> None:
            tab.goto(address)
            tab.locator(".cell").first.wait_for()

        out.append(clocked(opened))
        context.close()
    return out


def head_click(tab: Any, address: str, times: int) -> list[float]:
    tab.goto(address)
    tab.locator(".cell").first.wait_for()
    settle(tab)
    out = []
    for k in range(times):
        layer, head = (k * 5) % 12, (k * 7) % 12

        def clicked(layer: int = layer, head: int = head) -> None:
            tab.locator(f'.cell[data-i="{12 * layer + head}"]').first.click()
            tab.locator("h3", has_text=f"L{layer}·H{head} ").first.wait_for()

        out.append(clocked(clicked))
        settle(tab)
    return out


def mask_toggle(tab: Any, address: str, times: int) -> list[float]:
    tab.goto(f"{address}/masklab")
    settle(tab)
    tab.get_by_test_id("stMetricValue").get_by_text("0 of 144", exact=True).wait_for()
    out = []
    for k in range(times):
        place = (k * 37) % 144

        def toggled(k: int = k, place: int = place) -> None:
            tab.locator(f'.cell[data-i="{place}"]').first.click()
            tab.get_by_test_id("stMetricValue").get_by_text(f"{k + 1} of 144", exact=True).wait_for()

        out.append(clocked(toggled))
        settle(tab)
    return out


def compare(tab: Any, address: str, times: int) -> list[float]:
    tab.goto(f"{address}/compare")
    settle(tab)
    field = tab.locator(".fields textarea").first
    out = []
    for k in range(times):
        words = f"the dog sees {k + 2} birds"

        def typed(words: str = words) -> None:
            field.fill(words)
            tab.wait_for_url(lambda url: words.replace(" ", "+") in url or words.replace(" ", "%20") in url)
            tab.wait_for_selector(IDLE)

        out.append(clocked(typed))
        settle(tab)
    return out


def measured(browser: Any, address: str, begun: float, times: int) -> dict[str, list[float]]:
    """All of it, on one server."""
    page_open(browser, address, 1)
    found = {"first page": [time.perf_counter() - begun]}
    found["page open"] = page_open(browser, address, max(3, times // 4))
    tab = browser.new_page(viewport={"width": 1280, "height": 1000})
    tab.set_default_timeout(120_000)
    for name, measure in (("head click", head_click), ("mask toggle", mask_toggle), ("compare", compare)):
        found[name] = measure(tab, address, times)
    return found


def main() -> None:
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=20)
    times = parser.parse_args().times
    load = os.getloadavg()
    with sync_playwright() as playwright:
        path = os.environ.get("CHROMIUM") or shutil.which("chromium")
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        with tempfile.TemporaryDirectory() as folder, serve(Path(folder) / "home", Path(folder) / "log.txt") as running:
            print(f"server start          {time.perf_counter() - running.begun:6.2f} s")
            found = measured(browser, running.address, running.begun, times)
    print(f"load before {load[0]:.1f}, after {os.getloadavg()[0]:.1f}; {os.cpu_count()} cores")
    for name, seconds in found.items():
        ranked = sorted(seconds)
        high = ranked[min(len(ranked) - 1, round(0.95 * (len(ranked) - 1)))]
        aim = f"   aim {AIMS[name]} s" if name in AIMS else ""
        print(f"{name:14s} median {statistics.median(ranked):6.2f} s   95 % {high:6.2f} s   n {len(ranked)}{aim}")


if __name__ == "__main__":
    main()
