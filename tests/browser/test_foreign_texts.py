"""Names that would be pictures, links and markup, in every field of a page: they are read, never drawn or fetched."""

from __future__ import annotations

import csv
import json
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from support import studio
from support.tiny import WORDS

pytestmark = [pytest.mark.browser, pytest.mark.slow]

HOST = "host.example"
PICTURE = f"![x](http://{HOST}/x.png)"
LABELS = (f"[yes](http://{HOST}/a)", f"<img src=http://{HOST}/b.png>", f"www.{HOST} :red[c]")
SLICES = (f"http://{HOST}/d", f"me@{HOST}", PICTURE)
ATTACK = f"[x](http://{HOST}) <img src=x onerror=alert(1)><script>alert(2)</script> [x](javascript:alert(3)) the dog"
PAGES = ("workbench", "scores", "head", "masklab", "compare", "data")


@pytest.fixture(scope="module")
def hostile(studio_folder: Path) -> dict[str, str]:
    """A model and data whose classes, columns and slices have such names."""
    model = studio.make_model(studio_folder / "foreign-model")
    config = json.loads((model / "config.json").read_text())
    config["id2label"] = {str(i): name for i, name in enumerate(LABELS)}
    config["label2id"] = {name: i for i, name in enumerate(LABELS)}
    (model / "config.json").write_text(json.dumps(config))
    data = studio_folder / "foreign-data"
    data.mkdir(exist_ok=True)  # a worker may set a module up twice
    draw = random.Random(0)
    for split in ("train", "dev"):
        with (data / f"{split}.csv").open("w", newline="", encoding="utf-8") as file:
            out = csv.writer(file)
            out.writerow(["premise", "hypothesis", "label", PICTURE])
            for i in range(24):
                texts = [" ".join(draw.choices(WORDS, k=5)) + f" {PICTURE} http://{HOST}" for _ in range(2)]
                out.writerow([*texts, LABELS[i % 3], SLICES[i // 3 % 3]])
    return {
        "model": str(model),
        "task": "custom",
        "data": str(data),
        "columns": "premise,hypothesis",
        "label": "label",
        "groups": PICTURE,
    }


@pytest.mark.parametrize("page", PAGES)
def test_foreign_names_are_read_and_not_drawn(page: str, hostile: dict[str, str], visit: Callable[..., Any]) -> None:
    tab = visit()
    more = {"a": f"a dog {PICTURE} http://{HOST}", "b": ATTACK, "other": PICTURE}
    shown = tab.go(page, **hostile, **more)
    assert shown.locator(f'[src*="{HOST}"], [href*="{HOST}"], [srcset*="{HOST}"]').count() == 0
    assert shown.locator('button[aria-label*="Download as CSV"]:visible').count() == 0
    assert shown.locator("img[src=x]").count() == 0
    assert shown.locator(".stMain a[href^=javascript]").count() == 0
    assert not tab.dialogs


def test_a_wrong_link_with_such_names_is_read_and_not_drawn(visit: Callable[..., Any]) -> None:
    tab = visit()
    shown = tab.go("scores", model=PICTURE, task=PICTURE, data=PICTURE, score=PICTURE, mask=PICTURE, head=PICTURE)
    assert HOST in shown.content()
    assert shown.locator(f'[src*="{HOST}"], [href*="{HOST}"]').count() == 0


def test_a_saved_picture_carries_no_link_and_no_script(hostile: dict[str, str], visit: Callable[..., Any]) -> None:
    tab = visit()
    shown = tab.go("masklab", **hostile, mask="7" + "f" * 35)
    figure = shown.locator(".st-key-mask_slices").first
    figure.get_by_role("button", name="↓ Save").wait_for()
    tab.settle()
    figure.get_by_role("button", name="↓ Save").click()
    with shown.expect_download() as caught:
        figure.get_by_role("button", name="SVG", exact=True).click()
    picture = ElementTree.parse(caught.value.path())
    names = {e.tag.rpartition("}")[2].lower() for e in picture.iter() if isinstance(e.tag, str)}
    assert "text" in names
    assert not names & {"a", "script", "foreignobject", "iframe", "use"}
    said = [(k.rpartition("}")[2].lower(), v) for e in picture.iter() for k, v in e.attrib.items()]
    assert not [v for k, v in said if k == "href" and not v.startswith("data:image/png;base64,")]  # plotly's own cells
    assert not [k for k, v in said if k.startswith("on") or "url(http" in v]
    styles = [e.text or "" for e in picture.iter() if isinstance(e.tag, str) and e.tag.endswith("}style")]
    assert all(re.search(r"url\(data:[^)]*\)", text) and "http" not in text for text in styles)  # the font alone
    assert HOST in "".join(t for e in picture.iter() for t in e.itertext())  # the names are in it, as texts
