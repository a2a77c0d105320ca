"""Transfer of masks in a real browser: two runs, their matrix, and a file that the command wrote."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.slow]
Open = Callable[..., Any]


@pytest.fixture(scope="module")
def two(server: str, server_home: Path, studio_folder: Path) -> Iterator[list[str]]:
    """Finished runs of two models of one grid, each on data with its own answers as labels."""
    from headviz.runs.service import this_user
    from support import studio
    from support.recorded_runs import Runs, pruning

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HEADVIZ_HOME", str(server_home))
        made = []
        for name, seed in (("near", 0), ("far", 3)):
            model = studio.make_model(studio_folder / name, seed=seed)
            data = studio.answered(model, studio_folder / "data", f"answers-of-{name}")
            spec = pruning(studio_folder, model=str(model), data=str(data), dev_limit=None)
            made.append(Runs().put("done", "prune", spec, owner=this_user(), title=f"the run on {name}"))
        yield made


def test_masks_are_given_to_each_other_s_models(
    visit: Open, query: dict[str, str], two: list[str], tmp_path: Path
) -> None:
    v = visit()
    page = v.go("runs", **query, run=two[0])
    page.get_by_role("tab", name="Transfer").click()
    page.get_by_text("Choose a second run").wait_for()
    v.settle()
    v.choose(re.compile("Masks, models"), re.compile("the run on far"), typed="the run on far")
    page.keyboard.press("Escape")  # its list stays open for a third
    v.choose(re.compile("Share of heads"), "25 %")
    figure = page.locator(".st-key-transfer_matrix")
    measure = page.get_by_role("button", name="Measure", exact=True)
    measure.or_(figure).first.wait_for()
    if measure.count():  # at a second try it is measured already
        measure.click()
    figure.locator(".js-plotly-plot").wait_for()
    v.settle()
    assert page.get_by_text("Of 2 pairs of a mask and another model").count() == 1
    assert figure.locator(".ytick text").all_text_contents() == [
        "every head on",
        "custom, near",
        "custom, far",
        "random masks, 25 % off",
    ]
    shares = [t for t in figure.locator(".textpoint").all_text_contents() if "%" in t]
    assert len(shares) == 8
    assert shares[0].startswith("100 %")
    assert figure.locator(".shapelayer path").count() == 2  # each mask's own target is outlined
    # what the command has written is shown in the same way
    page.get_by_text("With retraining", exact=True).click()
    page.get_by_text("headviz transfer transfer.json").first.wait_for()
    v.settle()
    about = {"sparsity": 0.25, "name": "accuracy", "constant": 0.4}
    cells = [
        {"source": source, "target": target, "seed": seed, "metric": value + seed / 100, **about}
        for target in ("a", "b")
        for source, value in (("", 0.9), ("a", 0.8 if target == "a" else 0.5))
        for seed in (0, 1)
    ]
    for cell in cells:
        if not cell["source"]:
            cell["sparsity"] = 0.0
    file = tmp_path / "cells.jsonl"
    file.write_text("\n".join(map(json.dumps, cells)))
    page.locator("[data-testid=stFileUploader] input[type=file]").last.set_input_files(str(file))
    figure.get_by_text("80 %").wait_for()
    v.settle()
    assert figure.locator(".ytick text").all_text_contents() == ["every head on", "a"]
