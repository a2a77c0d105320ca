"""A moving picture of a running dashboard, for the README.

    headviz serve --headless &
    python docs/recording.py --out docs/pictures/start.webp

By default it is the demonstration, step by step. ``--steps FILE`` names a JSON file with another list of what a visitor
does: [["open", "?model=demo"], ["click", "CSS or text=…"], ["type", "SELECTOR", "words"], ["key", "Enter"],
["point", "SELECTOR"], ["settle"], ["hold", 1.5]]. Needs playwright, Chromium (``CHROMIUM`` names its path) and Pillow.
The file stays under 2 MB, or the script says so.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

SIZE = (1120, 700)
FASTEST = 120  # milliseconds between two pictures
LARGEST = 2_000_000  # bytes
QUIET = 3000  # milliseconds without work after which a page has come to rest
IDLE = "[data-testid=stApp][data-test-script-state=notRunning]"
Step = Sequence[Any]


def demonstration() -> list[Step]:
    """The start page, then the steps of the demonstration, each by its own link."""
    from headviz.ui.parts.story import steps
    from headviz.ui.shell.view import link_path

    played: list[Step] = [("open", "?model=demo"), ("settle",), ("hold", 2.0)]
    for step in steps():
        played += [("open", link_path(step.page, step.shown()).lstrip("/")), ("settle",), ("hold", 3.5)]
    return played


class Film:
    """Pictures with how long each is shown; equal ones are one."""

    def __init__(self, tab: Any) -> None:
        self.tab = tab
        self.frames: list[tuple[bytes, float]] = []  # PNG, seconds

    def take(self, seconds: float) -> None:
        shot = self.tab.screenshot(type="png")
        if self.frames and self.frames[-1][0] == shot:
            seconds += self.frames.pop()[1]
        self.frames.append((shot, seconds))

    def settle(self, longest: float = 120.0) -> None:
        """Take pictures while the page works, until it has been still for a moment. Waiting is shown quickly."""
        still = 0
        for _ in range(int(longest * 1000 / FASTEST)):
            self.take(0.06)
            self.tab.wait_for_timeout(FASTEST)
            working = self.tab.query_selector(IDLE) is None or self.tab.query_selector("[data-testid=stProgress]")
            still = 0 if working else still + 1
            if still * FASTEST > QUIET:
                return
        raise SystemExit("The page did not come to rest.")

    def write(self, out: Path, quality: int = 70) -> int:
        from PIL import Image

        pictures = [Image.open(io.BytesIO(shot)).convert("RGB") for shot, _ in self.frames]
        lengths = [max(60, int(1000 * min(seconds, 4))) for _, seconds in self.frames]
        pictures[0].save(
            out, save_all=True, append_images=pictures[1:], duration=lengths, loop=0, quality=quality, method=4
        )
        return out.stat().st_size


def play(film: Film, steps: Sequence[Step], address: str) -> None:
    tab = film.tab
    for what, *given in steps:
        if what == "open":
            tab.goto(f"{address}/{given[0]}")
            tab.wait_for_selector(IDLE)
        elif what == "click":
            tab.locator(given[0]).first.click()
        elif what == "point":
            tab.locator(given[0]).first.hover()
        elif what == "type":
            tab.locator(given[0]).first.fill("")
            for letter in given[1]:
                tab.locator(given[0]).first.press_sequentially(letter)
                film.take(0.06)
        elif what == "key":
            tab.keyboard.press(given[0])
        elif what == "settle":
            film.settle()
        elif what == "hold":
            film.take(given[0])
        else:
            raise SystemExit(f"There is no step '{what}'.")


def main() -> int:
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--address", default="http://127.0.0.1:8501")
    parser.add_argument("--out", type=Path, default=Path("docs/pictures/start.webp"))
    parser.add_argument("--steps", type=Path, help="a JSON file with the list of steps")
    parser.add_argument("--dark", action="store_true")
    given = parser.parse_args()
    steps = demonstration() if given.steps is None else json.loads(given.steps.read_text(encoding="utf-8"))
    with sync_playwright() as playwright:
        path = os.environ.get("CHROMIUM") or shutil.which("chromium")
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        tab = browser.new_page(
            viewport={"width": SIZE[0], "height": SIZE[1]}, color_scheme="dark" if given.dark else "light"
        )
        tab.set_default_timeout(180_000)
        film = Film(tab)
        play(film, steps, given.address.rstrip("/"))
        browser.close()
    size = film.write(given.out)
    print(f"{given.out}: {len(film.frames)} pictures, {size / 1e6:.2f} MB")
    return int(size > LARGEST)


if __name__ == "__main__":
    sys.exit(main())
