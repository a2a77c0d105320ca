"""Pictures of every page of a running dashboard and of the demonstration, for the README and docs/demonstration.md.

    headviz serve --headless &
    python docs/screenshots.py --out docs/pictures

Each page is taken in light at 1280 pixels, with --all also in dark and in both at 390 (a phone). Needs playwright,
Pillow and Chromium (``CHROMIUM`` names its path). The demo is shown, with a few heads off, so no text of any data set
is in a picture. The Runs page shows ``--run``, the id of a run of that dashboard.
"""

from __future__ import annotations

import argparse
import io
import os
import shutil
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from headviz.heads import HeadMask
from headviz.ui.parts.story import Step, steps
from headviz.ui.shell.frame import PAGES
from headviz.ui.shell.view import to_address

IDLE = "[data-testid=stApp][data-test-script-state=notRunning]"
VIEW = {"head": "3.5", "analysis": "by-slice", "mask": HeadMask.full(12, 12).without_random(17, seed=1).hex}
TURNS = {"off": "8.0", "head": "8.0"}  # the first pair's answer
OWN = {"workbench": TURNS, "compare": TURNS, "scores": {"head": "4.10"}, "masklab": {"off": "4.10"}}
SHOTS = (("light", 1280), ("dark", 1280), ("light", 390), ("dark", 390))
SHARP = 1.25  # pixels of the picture per pixel of the page


def keep(tab: Any, path: Path) -> None:
    """The screen with 256 colours, which are a third of the bytes and look the same."""
    from PIL import Image

    picture = Image.open(io.BytesIO(tab.screenshot())).convert("RGB")
    few = picture.quantize(256, method=Image.Quantize.MAXCOVERAGE, kmeans=3, dither=Image.Dither.NONE)
    few.save(path, optimize=True)


def take(browser: Any, address: str, page: str, scheme: str, width: int, out: Path, step: Step | None = None) -> None:
    """One page as a picture of its whole length, or a step of the demonstration as it stands on the screen."""
    context = browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme=scheme, device_scale_factor=SHARP
    )
    tab = context.new_page()
    tab.set_default_timeout(180_000)
    shown = OWN.get(page, VIEW) if step is None else step.shown()
    query = urlencode(shown if isinstance(shown, dict) else to_address(shown))
    tab.goto(f"{address}/{'' if page == next(iter(PAGES)) else page}?{query}")
    if page == "analyses":
        start = tab.get_by_role("button", name="Run", exact=True)
        start.or_(tab.locator(".js-plotly-plot")).first.wait_for()  # unless somebody has run it already
        if start.count():
            start.click()
    for _ in range(3):  # progress may come and go
        tab.wait_for_selector(IDLE)
        tab.wait_for_timeout(1200)
    tab.wait_for_function("!document.querySelector('[data-testid=stProgress]')")
    if step is not None:
        tab.wait_for_timeout(6000)  # token attributions
        keep(tab, out / f"demonstration-{step.number}.png")
        context.close()
        return
    height = tab.evaluate("document.querySelector('[data-testid=stMain]').scrollHeight")
    tab.set_viewport_size({"width": width, "height": min(height + 40, 4000)})
    tab.wait_for_timeout(1200)
    keep(tab, out / f"{page}-{scheme}-{width}.png")
    context.close()


def main() -> None:
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--address", default="http://127.0.0.1:8501")
    parser.add_argument("--out", type=Path, default=Path("docs/pictures"))
    parser.add_argument("--run", default="", help="the run that the Runs page shows")
    parser.add_argument("--all", action="store_true", help="also in dark, and as on a phone")
    args = parser.parse_args()
    if args.run:
        VIEW["run"] = args.run
    args.out.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        path = os.environ.get("CHROMIUM") or shutil.which("chromium")
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        for page in PAGES:
            for scheme, width in SHOTS if args.all else SHOTS[:1]:
                take(browser, args.address.rstrip("/"), page, scheme, width, args.out)
                print(f"{page} {scheme} {width}", flush=True)
        for step in steps():
            take(browser, args.address.rstrip("/"), step.page, "light", 1280, args.out, step)
            print(f"step {step.number}", flush=True)


if __name__ == "__main__":
    main()
