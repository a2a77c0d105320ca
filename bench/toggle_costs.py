"""What one toggle in the Mask lab costs, apart from waiting: ``python -m bench.toggle_costs [--times 8]``.

Messages and bytes from server to browser, processor time of the server, and processor time of the page's main thread
in the browser. These hold on a busy machine too, where ``bench.dashboard``'s seconds do not.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import tempfile
from pathlib import Path
from typing import Any

import psutil

from tests.support.server import serve

from .dashboard import settle

PARTS = ("TaskDuration", "ScriptDuration", "LayoutDuration", "RecalcStyleDuration")


def server_time(pid: int) -> float:
    return sum(psutil.Process(pid).cpu_times()[:2])


def main() -> None:
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=8)
    times = parser.parse_args().times
    frames: list[int] = []

    def socket(opened: Any) -> None:
        opened.on("framereceived", lambda data: frames.append(len(data)))

    rows = []
    with sync_playwright() as playwright:
        path = os.environ.get("CHROMIUM") or shutil.which("chromium")
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        with tempfile.TemporaryDirectory() as folder, serve(Path(folder) / "home", Path(folder) / "log.txt") as running:
            tab = browser.new_page(viewport={"width": 1280, "height": 1000})
            tab.set_default_timeout(180_000)
            tab.on("websocket", socket)
            tab.goto(f"{running.address}/masklab")
            tab.get_by_test_id("stMetricValue").get_by_text("0 of 144", exact=True).wait_for()
            settle(tab)
            watch = tab.context.new_cdp_session(tab)
            watch.send("Performance.enable", {"timeDomain": "threadTicks"})

            def spent() -> dict[str, float]:
                result = watch.send("Performance.getMetrics")["metrics"]
                return {m["name"]: m["value"] for m in result}

            for k in range(times + 2):
                place = (k * 37) % 144
                frames.clear()
                before, own = spent(), server_time(running.pid)
                tab.locator(f'.cell[data-i="{place}"]').first.click()
                tab.get_by_test_id("stMetricValue").get_by_text(f"{k + 1} of 144", exact=True).wait_for()
                settle(tab)
                after = spent()
                rows.append(
                    [len(frames), sum(frames) / 1000, 1000 * (server_time(running.pid) - own)]
                    + [1000 * (after[name] - before[name]) for name in PARTS]
                )
    names = ["messages", "kB", "server ms", *(f"browser {name.removesuffix('Duration').lower()} ms" for name in PARTS)]
    for name, column in zip(names, zip(*rows[2:], strict=True), strict=True):
        print(f"{name:26s} median {statistics.median(column):8.1f}   from {min(column):8.1f} to {max(column):8.1f}")


if __name__ == "__main__":
    main()
