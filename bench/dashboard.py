"""How fast the dashboard answers, measured in a browser: medians and 95th percentiles against the aims.

    python -m bench.dashboard                                     # starts its own server on the demo
    python -m bench.dashboard --address http://127.0.0.1:8501     # a running dashboard, of another version too

first page    from the start of the server's process until the grid of the first page is there    aim 2.5 s
page open     the first page until its grid is there; server up, nothing cached in the browser   aim 1.2 s
page change   a click on another page's name until its grid is there and the page is at rest      aim 1.2 s
toggle        a click on the first page's grid until what the head costs on dev has been painted aim 0.35 s
mask toggle   the same on the board of the Mask lab, with all heads of before still off          aim 0.35 s
own pair      a changed sentence on the first page until both answers to it have been painted    aim 0.5 s

Clicks and words are timed in the page, from the pointer going down and from the last letter. The browser runs on the
same machine and takes its share of it; the load is printed with the figures.
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

from tests.support.server import IDLE, serve

AIMS = {"first page": 2.5, "page open": 1.2, "page change": 1.2, "toggle": 0.35, "mask toggle": 0.35, "own pair": 0.5}
WATCH = """window.watch = (selector, text) => {
  const texts = () => [...document.querySelectorAll(selector)].map((node) => node.textContent);
  const old = texts().join();
  const seen = () => (text ? texts().some((one) => one.includes(text)) : texts().join() !== old);
  window.shown = new Promise((done, never) => {
    setTimeout(() => never(new Error(`not painted within a minute: ${text}`)), 60000);
    let begun;
    for (const begins of ["pointerdown", "input"])
      addEventListener(begins, () => (begun ??= performance.now()), { capture: true, once: true });
    const look = new MutationObserver(() => {
      if (begun === undefined || !seen()) return;
      look.disconnect();
      const { port1, port2 } = new MessageChannel();
      port1.onmessage = () => done((performance.now() - begun) / 1000);
      requestAnimationFrame(() => port2.postMessage(0));
    });
    look.observe(document.body, { subtree: true, childList: true, characterData: true });
  });
}"""  # a message posted in an animation frame arrives when that frame has been painted


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
            tab.goto(address, wait_until="commit")
            tab.locator(".cell").first.wait_for()

        out.append(clocked(opened))
        settle(tab)
        context.close()
    return out


def page_change(tab: Any, address: str, times: int) -> list[float]:
    tab.goto(address)
    settle(tab)
    out = []
    for k in range(times):
        name = ("Mask lab", "Scores", "Workbench")[k % 3]

        def changed(name: str = name) -> None:
            tab.get_by_role("link", name=name, exact=True).click()
            tab.get_by_role("heading", name=name).wait_for()
            tab.locator(".cell").first.wait_for()
            tab.wait_for_selector(IDLE)

        out.append(clocked(changed))
        settle(tab)
    return out


def click(tab: Any, place: int, selector: str, text: str) -> float:
    """Seconds from a click on a cell until such an element has been painted with this text."""
    tab.evaluate("([selector, text]) => watch(selector, text)", [selector, text])
    tab.locator(f'.cell[data-i="{place}"]').first.click()
    return float(tab.evaluate("() => shown"))


def toggle(tab: Any, address: str, times: int) -> list[float]:
    tab.goto(address)
    tab.locator(".cell").first.wait_for()
    settle(tab)
    out = []
    for k in range(times):
        layer, head = (k * 5) % 12, (k * 7) % 12
        out.append(click(tab, 12 * layer + head, "p.dev", f"Without L{layer}·H{head},"))
        settle(tab)
        tab.locator(f'.cell[data-i="{12 * layer + head}"]').first.click()  # on again
        settle(tab)
    return out


def mask_toggle(tab: Any, address: str, times: int) -> list[float]:
    tab.goto(f"{address}/masklab")
    settle(tab)
    tab.get_by_test_id("stMetricValue").get_by_text("0 of 144", exact=True).wait_for()
    out = []
    for k in range(times):
        place = (k * 37) % 144

        out.append(click(tab, place, "[data-testid=stMetricValue]", f"{k + 1} of 144"))
        settle(tab)
    return out


def own_pair(tab: Any, address: str, times: int) -> list[float]:
    tab.goto(address)
    settle(tab)
    field = tab.locator(".fields textarea").first
    out = []
    for k in range(times):
        tab.evaluate("watch('.answers', '')")
        field.fill(("The dog is not sleeping.", "The dog is sleeping.")[k % 2])
        out.append(float(tab.evaluate("() => shown")))
        settle(tab)
    return out


def measured(browser: Any, address: str, begun: float | None, times: int) -> dict[str, list[float]]:
    """All of it, on one server."""
    up = None if begun is None else time.perf_counter() - begun
    first = page_open(browser, address, 1)[0]
    result = {} if up is None else {"first page": [up + first]}
    result["page open"] = page_open(browser, address, max(3, times // 2))
    tab = browser.new_page(viewport={"width": 1280, "height": 1000})
    tab.set_default_timeout(120_000)
    tab.add_init_script(WATCH)
    for name, measure in (
        ("page change", page_change),
        ("toggle", toggle),
        ("mask toggle", mask_toggle),
        ("own pair", own_pair),
    ):
        result[name] = measure(tab, address, times)
    return result


def main() -> None:
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--address", help="a running dashboard; else one is started")
    given = parser.parse_args()
    times = given.times
    load = os.getloadavg()
    with sync_playwright() as playwright:
        path = os.environ.get("CHROMIUM") or shutil.which("chromium")
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        if given.address:
            result = measured(browser, given.address, None, times)
        else:
            with (
                tempfile.TemporaryDirectory() as folder,
                serve(Path(folder) / "home", Path(folder) / "log.txt") as running,
            ):
                print(f"server start          {time.perf_counter() - running.begun:6.2f} s")
                result = measured(browser, running.address, running.begun, times)
    print(f"load before {load[0]:.1f}, after {os.getloadavg()[0]:.1f}; {os.cpu_count()} cores")
    for name, seconds in result.items():
        ranked = sorted(seconds)
        high = ranked[min(len(ranked) - 1, round(0.95 * (len(ranked) - 1)))]
        aim = f"   aim {AIMS[name]} s" if name in AIMS else ""
        print(f"{name:14s} median {statistics.median(ranked):6.2f} s   95 % {high:6.2f} s   n {len(ranked)}{aim}")


if __name__ == "__main__":
    main()
