"""What version 0.1 wrote opens unchanged: a pruned model, a mask, a link, a run with its checkpoint.

``v0_1`` was written by version 0.1 itself (commit b6b9780) from a random model of 2×4 heads and random words; it is
never written anew. ``facts.json`` has what that version said about it.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlparse

import numpy as np
import pytest

import headviz
from headviz.cli import main
from headviz.heads import HeadMask
from headviz.pruning.job import make
from headviz.runs.reading import state_of
from headviz.runs.registry import Registry
from headviz.ui.shell.view import from_address, link_path, to_address

HERE = Path(__file__).parent / "v0_1"
FACTS = json.loads((HERE / "facts.json").read_text(encoding="utf-8"))
RUN = FACTS["run"]["id"]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the recorded runs as this user's own."""
    shutil.copytree(HERE / "runs", tmp_path / "home" / "runs")
    monkeypatch.setenv("HEADVIZ_HOME", str(tmp_path / "home"))
    return tmp_path


def test_a_pruned_model_has_the_same_digest_heads_and_logits() -> None:
    clf = headviz.load(str(HERE / "model"), device="cpu")
    data = headviz.load_task("custom", data=str(HERE / "data"), text_columns=["text", "pair"], label_column="label")
    assert clf.digest == FACTS["digest"]
    assert data.digest == FACTS["data_digest"]
    assert clf.present.hex == FACTS["mask"]
    result = headviz.evaluate(clf, data)
    np.testing.assert_allclose(result.logits, FACTS["logits"], atol=2e-6)
    # 0.1 left Matthews' correlation of one class for all undefined; it is 0
    known = {name: np.nan_to_num(value) if name == "matthews" else value for name, value in FACTS["metrics"].items()}
    assert result.metrics == pytest.approx(known)


def test_a_mask_means_the_same_heads() -> None:
    mask = HeadMask.from_hex(FACTS["mask"], 2, 4)
    assert [list(head) for head in mask.off] == FACTS["off"]
    assert HeadMask.full(2, 4).without([tuple(h) for h in FACTS["off"]]).hex == FACTS["mask"]


def test_a_link_shows_the_same() -> None:
    address = urlparse(FACTS["link"])
    view, complaints = from_address(dict(parse_qsl(address.query)))
    assert not complaints
    assert {k: FACTS["address"][k] for k in to_address(view)} == to_address(view)
    assert link_path(address.path.strip("/"), view) == FACTS["link"]


def test_a_run_is_shown_with_the_same_figures(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "show", RUN, "--json"]) == 0
    shown: dict[str, Any] = json.loads(capsys.readouterr().out)
    shown["progress"] = {k: shown["progress"][k] for k in FACTS["run"]["progress"]}  # newer versions tell more
    assert {k: shown.get(k) for k in FACTS["run"]} == FACTS["run"]
    assert main(["run", "report", RUN, "--out", str(home / "report.html")]) == 0
    report = (home / "report.html").read_text(encoding="utf-8")
    assert all(step["mask"] in report for step in FACTS["run"]["steps"])


def test_a_run_goes_on_from_its_checkpoint(home: Path) -> None:
    registry = Registry()
    record = registry.get(RUN)
    state = state_of(record, registry.folder)
    assert state is not None
    steps = FACTS["run"]["steps"]
    assert [step.mask for step in state.steps] == [step["mask"] for step in steps]
    assert [step.metrics for step in state.steps] == [step["metrics"] for step in steps]
    assert all(len(state.logits[step.logits]) == 12 for step in state.steps)
    assert make(record.spec).plan.to_dict()["samples"] == 24
