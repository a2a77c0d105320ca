"""What One head sends to the browser, by the number of tokens: bytes, seconds, and pictures of the page.

    python -m bench.maps --model FOLDER            # a classifier of one text; starts its own server
    python -m bench.maps --model FOLDER --shots DIR

open    all that the websocket receives until the page of a text stands, a head chosen
head    what it receives when the next head is chosen
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from tests.support.server import serve

from .dashboard import clocked, settle

SIZES = (20, 60, 130, 512)
WORDS = """The committee met on Tuesday and heard that the new bridge would cost twice as much as the engineers had
promised, although nobody could say who had made the first estimate or why it was never checked by the city. A man from
the harbour asked whether the old ferry might not serve as well; the chair thanked him and went on to the budget. In the
evening the paper wrote that the meeting had been calm, which those who were present did not remember in this way."""


def texts(model: str, folder: Path) -> Path:
    """A folder of data with one text for each size, of exactly so many tokens with this model."""
    import headviz

    clf = headviz.load(model, device="cpu")
    words, rows = WORDS.split() * 12, ["sentence\tlabel"]
    for size in SIZES:
        made = ((n, clf.encode([" ".join(words[:n])])[0]) for n in range(size, 0, -1))
        most = next(n for n, encoded in made if len(encoded) <= size and not encoded.truncated)
        rows.append(f"{' '.join(words[:most])}\t{clf.labels[len(rows) % 2]}")
    for split in ("train", "dev"):
        (folder / f"{split}.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    return folder


def visit(browser: Any, address: str, query: dict[str, str], screen: dict[str, int], **more: Any) -> Any:
    context = browser.new_context(viewport=screen, **more)
    tab = context.new_page()
    tab.set_default_timeout(300_000)
    tab.received = 0

    def take(frame: bytes | str) -> None:
        tab.received += len(frame)

    tab.on("websocket", lambda socket: socket.on("framereceived", take))
    tab.goto(f"{address}/head?{urlencode(query)}")
    tab.get_by_text("Attention against attribution").first.wait_for()
    tab.locator(".st-key-maps [data-label]").wait_for()  # the maps are drawn
    settle(tab)
    return tab


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", required=True)
    parser.add_argument("--shots", type=Path)
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)))
    args = parser.parse_args()
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        home = Path(name)
        data = texts(args.model, home)
        query = {"model": args.model, "task": "custom", "data": str(data), "columns": "sentence", "label": "label"}
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        environment = {"HEADVIZ_ROOTS": f"{data}:{args.model}"}
        with serve(home / "home", home / "log", **environment) as server:
            for size in map(int, args.sizes.split(",")):
                about = {**query, "head": "3.5", "example": str(SIZES.index(size))}
                screen = {"width": 1280, "height": 900}
                tab = visit(browser, server.address, about, screen)
                opened, tab.received = tab.received, 0
                tab.locator("body").press("j")
                tab.locator("h3", has_text="L3·H6").wait_for()
                seconds = clocked(lambda tab=tab: settle(tab)) - 0.5
                print(
                    json.dumps({"tokens": size, "open": opened, "head": tab.received, "seconds": round(seconds, 2)}),
                    flush=True,
                )
                tab.context.close()
                if args.shots:
                    args.shots.mkdir(parents=True, exist_ok=True)
                    for width in (1280, 390):
                        for theme in ("light", "dark"):
                            screen = {"width": width, "height": 2600 if width < 500 else 1900}
                            tab = visit(browser, server.address, about, screen, color_scheme=theme)
                            tab.wait_for_timeout(800)
                            tab.screenshot(path=str(args.shots / f"{size}-{width}-{theme}.png"))
                            tab.context.close()
        browser.close()


if __name__ == "__main__":
    main()
