"""The README's moving picture: from the first page to the flip of a negation, and to a sentence of one's own.

    headviz serve --headless &
    python docs/recording.py --out docs/pictures/start.webp

A browser does what a visitor does: an example, a click on one head, the demonstration's steps on two fifths of the
heads and on a sentence of one's own, which is typed. Waiting is cut short; nothing else is changed. Needs playwright,
Chromium (``CHROMIUM`` names its path) and Pillow. A file of more than 2 MB is refused.
"""

from __future__ import annotations

import argparse
import io
import os
import shutil
import sys
from pathlib import Path
from typing import Any

SIZE = (1160, 800)  # of the page; the picture is 1,000 pixels wide
LARGEST = 2_000_000  # bytes
IDLE = "[data-testid=stApp][data-test-script-state=notRunning]"
HEAD, EXAMPLE = "L4·H10", "The dog is not sleeping."
OWN = ("The cat never slept.", "The cat slept.")
# an arrow that shows where the visitor's pointer is; it ripples at a click
POINTER = """() => {
  const arrow = document.createElement("div");
  arrow.id = "pointer";
  arrow.style.cssText = "position:fixed;left:0;top:0;z-index:9999999;pointer-events:none";
  arrow.innerHTML = `<svg width="60" height="60" viewBox="-24 -24 48 48" style="margin:-30px">
    <circle r="0" fill="#0e7490" opacity=".28"/>
    <path d="M0 0V17L4.2 13.2L7 19.5L9.8 18.2L7 12H12.6Z" fill="#111" stroke="#fff" stroke-width="1.4"/></svg>`;
  document.documentElement.append(arrow);
}"""


class Film:
    """Pictures of a tab, and how long each is shown."""

    def __init__(self, tab: Any) -> None:
        self.tab = tab
        self.frames: list[tuple[bytes, float]] = []  # PNG, seconds
        self.at = (SIZE[0] * 0.6, SIZE[1] * 0.75)

    def take(self, seconds: float) -> bool:
        """One picture; whether it differs from the one before."""
        shot = self.tab.screenshot(type="png")
        new = not self.frames or self.frames[-1][0] != shot
        if new:
            self.frames.append((shot, seconds))
        return new

    def hold(self, seconds: float) -> None:
        self.take(seconds)
        self.frames[-1] = (self.frames[-1][0], seconds)

    def rest(self, quiet: int = 12, longest: int = 400) -> None:
        """Take pictures until the page has not changed for a moment. What it waits for is not shown at length."""
        still = 0
        for _ in range(longest):
            idle = self.tab.query_selector(IDLE) is not None
            still = still + 1 if not self.take(0.1) and idle else 0
            if still > quiet:
                return
            self.tab.wait_for_timeout(150)
        raise SystemExit("The page did not come to rest.")

    def point(self, place: tuple[float, float], ripple: float = 0) -> None:
        self.tab.evaluate(
            "([x, y, r]) => { const a = document.getElementById('pointer');"
            "a.style.transform = `translate(${x}px, ${y}px)`; a.querySelector('circle').setAttribute('r', r) }",
            [*place, ripple],
        )

    def click(self, target: Any) -> None:
        """Go there along a line, slow at both ends, and click."""
        target.scroll_into_view_if_needed()
        self.take(0.3)
        box = target.bounding_box()
        there = (box["x"] + min(box["width"] * 0.6, 130), box["y"] + box["height"] * 0.55)
        for i in range(1, 11):
            part = (i / 10) ** 2 * (3 - 2 * i / 10)
            self.point((self.at[0] + part * (there[0] - self.at[0]), self.at[1] + part * (there[1] - self.at[1])))
            self.take(0.05)
        self.at = there
        for size in (8, 15):
            self.point(there, size)
            self.take(0.09)
        self.point(there)
        target.click(position={"x": there[0] - box["x"], "y": there[1] - box["y"]})

    def type(self, field: Any, text: str) -> None:
        self.click(field)
        field.select_text()
        self.take(0.35)
        for letter in text:
            field.press_sequentially(letter)
            self.take(0.06)

    def write(self, out: Path) -> int:
        from PIL import Image

        pictures = [Image.open(io.BytesIO(shot)).convert("RGB") for shot, _ in self.frames]
        lengths = [round(1000 * seconds) for _, seconds in self.frames]
        pictures[0].save(
            out, save_all=True, append_images=pictures[1:], duration=lengths, loop=0, lossless=True, method=4
        )
        return out.stat().st_size


def play(film: Film, address: str) -> None:
    """Four clicks and two sentences."""
    tab = film.tab
    tab.goto(f"{address}/?model=demo")
    head = tab.locator(f".st-key-board_cost .cell[aria-label^='{HEAD},']")
    head.wait_for()
    tab.evaluate(POINTER)
    film.point(film.at)
    film.rest()
    film.frames = film.frames[-1:]  # it begins with the page that has come to rest
    film.hold(1.6)
    film.click(tab.get_by_role("button", name=EXAMPLE).first)
    film.rest()
    film.hold(1.2)
    film.click(head)
    film.rest()
    film.hold(3.0)
    film.click(tab.locator(".st-key-chips_story").get_by_role("button").nth(2))
    film.rest()
    film.hold(2.6)
    film.click(tab.locator(".st-key-story_next button"))
    film.rest()
    film.hold(1.0)
    for field, text in zip(("Premise", "Hypothesis"), OWN, strict=True):
        film.type(tab.get_by_label(field, exact=True), text)
    film.rest()
    film.hold(3.0)


def main() -> int:
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--address", default="http://127.0.0.1:8501")
    parser.add_argument("--out", type=Path, default=Path("docs/pictures/start.webp"))
    args = parser.parse_args()
    with sync_playwright() as playwright:
        path = os.environ.get("CHROMIUM") or shutil.which("chromium")
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        tab = browser.new_page(viewport={"width": SIZE[0], "height": SIZE[1]}, device_scale_factor=1000 / SIZE[0])
        tab.set_default_timeout(180_000)
        film = Film(tab)
        play(film, args.address.rstrip("/"))
        browser.close()
    size = film.write(args.out)
    seconds = sum(seconds for _, seconds in film.frames)
    print(f"{args.out}: {len(film.frames)} pictures, {seconds:.1f} s, {size / 1e6:.2f} MB")
    return int(size > LARGEST)


if __name__ == "__main__":
    sys.exit(main())
