"""Every page and every analysis with a model of each further job: none fails, and the words are the job's own."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import headviz
from headviz.analyses.catalogue import ANALYSES
from headviz.answers import ANSWERS
from headviz.ui.shell.frame import PAGES
from support.command import call
from support.marks import all_in_ci
from support.tiny import WORDS, tiny_folder

NAMES = ("red", "cold", "wet")
OFF = "fb7"  # of 3×4: two heads off
STATES = [{}, {"mask": OFF, "head": "1.2", "target": "cold"}, {"a": "the dog sleeps .", "mask": OFF, "tokens": "1"}]
HERE = [name for name, a in ANALYSES.items() if a.fits(ANSWERS["labels"])]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model and data of the job labels; most gold labels are the model's own answers."""
    folder, rng = tmp_path_factory.mktemp("labels"), random.Random(0)
    tiny_folder(folder / "model", labels=NAMES, problem_type="multi_label_classification")
    clf = headviz.load(folder / "model", device="cpu")
    (folder / "data").mkdir()
    for split in ("train", "dev"):
        rows, texts = ["text\tred\tcold\twet\tkind"], [" ".join(rng.choices(WORDS, k=6)) for _ in range(60)]
        own = clf.answer.plain(clf.logits(clf.collate(clf.encode(texts))).numpy())
        for i, (text, labels) in enumerate(zip(texts, own.tolist(), strict=True)):
            labels[i % 3] = i % 2 if i % 5 == 0 else labels[i % 3]
            rows.append("\t".join([text, *map(str, labels), "ab"[i % 3 == 0]]))
        (folder / "data" / f"{split}.tsv").write_text("\n".join(rows) + "\n")
    return folder


@pytest.fixture
def own(place: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    monkeypatch.setenv("HEADVIZ_ROOTS", str(place))
    more = {"columns": "text", "label": "red,cold,wet", "groups": "kind", "samples": "8"}
    return {"model": str(place / "model"), "task": "custom", "data": str(place / "data"), **more}


def texts(app: Any) -> str:
    kinds = ("title", "markdown", "caption", "error", "warning", "info", "success", "subheader")
    return "\n".join(str(e.value) for kind in kinds for e in app.get(kind))


@pytest.mark.parametrize("page", all_in_ci(PAGES, ["masklab", "compare", "head", "data"]))
@pytest.mark.parametrize("more", STATES, ids=lambda s: "-".join(s) or "plain")
def test_no_page_fails(open_page: Callable[..., Any], own: dict[str, str], page: str, more: dict[str, str]) -> None:
    app = open_page(page, **own, **more)
    assert not app.exception
    assert not [str(e.value) for e in app.error]


def test_the_mask_lab_names_labels_that_changed(open_page: Callable[..., Any], own: dict[str, str]) -> None:
    app = open_page("masklab", **own, mask="000")
    assert not app.exception
    assert any("micro" in metric.label for metric in app.metric)
    assert re.search(r"Examples with changed labels: \d+ now worse, \d+ now better", texts(app).replace("\\", ""))


def test_compare_shows_every_label_that_is_predicted(open_page: Callable[..., Any], own: dict[str, str]) -> None:
    clf = headviz.load(own["model"])
    text = "the dog sleeps ."
    values = clf.answer.values(clf.logits(clf.collate(clf.encode([text]))).numpy())[0]
    app = open_page("compare", **own, a=text, mask=OFF)
    for name, share in clf.answer.told(values, clf.labels):
        assert f"{name} {share:.3f}" in texts(app).replace("\\", "")


@pytest.mark.parametrize("name", all_in_ci(HERE, ["interactions", "redundant", "by-slice", "all-but-one"]))
def test_every_analysis_runs(own: dict[str, str], name: str, capsys: pytest.CaptureFixture[str]) -> None:
    analysis = ANALYSES[name]
    source = ["--model", own["model"]]
    if "data" in analysis.needs:
        source += ["--task", "custom", "--data", own["data"], "--text-columns", "text", "--label-column", own["label"]]
        source += ["--slice-column", "kind"] if "slices" in analysis.needs or name == "by-slice" else []
    if name != "cross-dataset" and not {"checkpoints", "base", "other", "text"} & {o.name for o in analysis.options}:
        assert call(capsys, *analysis.line.split()[1:], *source)
