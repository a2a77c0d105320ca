"""Every page and every analysis with a model of each further job: none fails, and the words are the job's own."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headviz
from headviz.analyses.catalogue import ANALYSES
from headviz.answers import ANSWERS
from headviz.answers.span import span_text
from headviz.ui.shell.frame import PAGES
from support import job_folders
from support.command import call
from support.marks import some_in_ci
from support.page import texts

OFF = "fb7"  # of 3×4: two heads off
STATES = [{}, {"mask": OFF, "head": "1.2"}, {"a": "the dog sleeps .", "b": "no cat", "mask": OFF, "tokens": "1"}]
JOBS = ["labels", "rank", "tokens", "span", "vector"]
HERE = [(job, name) for job in JOBS for name, a in ANALYSES.items() if a.fits(ANSWERS[job])]


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A model and data of each job."""
    return {job: job_folders.make(job, tmp_path_factory.mktemp(job)) for job in JOBS}


@pytest.fixture
def own(places: dict[str, Path], monkeypatch: pytest.MonkeyPatch, job: str) -> dict[str, str]:
    monkeypatch.setenv("HEADVIZ_ROOTS", str(places[job]))
    return job_folders.address(job, places[job])


SEEN = ["masklab", "compare", "head", "data"]  # these pages show answers


@pytest.mark.slow
@pytest.mark.parametrize(
    ("job", "page", "more"),
    some_in_ci(
        list(product(JOBS, PAGES, STATES)),
        product(JOBS, SEEN, STATES[2:]),
        [*product(JOBS, SEEN, STATES[:1]), *product(["tokens", "vector"], PAGES, STATES[1:2])],
    ),
    ids=str,
)
def test_no_page_fails(
    open_page: Callable[..., Any], own: dict[str, str], job: str, page: str, more: dict[str, str]
) -> None:
    if ANSWERS[job].num_texts == 1 or job == "labels":
        more = {k: v for k, v in more.items() if k != "b"}
    app = open_page(page, **own, **more)
    assert not app.exception
    assert not [str(e.value) for e in app.error]


@pytest.mark.parametrize("job", ["labels"])
def test_the_mask_lab_names_labels_that_changed(open_page: Callable[..., Any], own: dict[str, str]) -> None:
    app = open_page("masklab", **own, mask="000")
    assert not app.exception
    assert any("micro" in metric.label for metric in app.metric)
    assert re.search(r"Examples with changed labels: \d+ now worse, \d+ now better", texts(app))


@pytest.mark.parametrize("job", ["labels"])
def test_the_mask_lab_splits_data_without_slices_by_label(open_page: Callable[..., Any], own: dict[str, str]) -> None:
    app = open_page("masklab", **own | {"groups": ""}, mask="000")
    assert not app.exception
    assert "Each line is one label" in texts(app)
    assert "to_by_slice" not in [button.key for button in app.button]  # an analysis of the data's own slices


@pytest.mark.parametrize(("job", "titles"), [("tokens", ["tag", "words"]), ("labels", ["label", "examples"])])
def test_the_data_page_counts_what_has_a_name(
    open_page: Callable[..., Any], own: dict[str, str], job: str, titles: list[str]
) -> None:
    app = open_page("data", **own)
    (table,) = (frame.value for frame in app.dataframe if "share" in frame.value.columns)
    assert list(table.columns) == [*titles, "share"]
    count, share = (table[name].map(lambda cell: float(str(cell).rstrip(" %"))) for name in (titles[1], "share"))
    assert job == "labels" or share.tolist() == pytest.approx((count / count.sum()).tolist(), abs=0.001)
    assert any(box.label == "Thresholds" for box in app.text_input) == (job == "labels")


@pytest.mark.parametrize("job", ["labels"])
def test_compare_shows_every_label_that_is_predicted(open_page: Callable[..., Any], own: dict[str, str]) -> None:
    clf = headviz.load(own["model"])
    text = "the dog sleeps ."
    values = clf.answer.values(clf.logits(clf.collate(clf.encode([text]))).numpy())[0]
    app = open_page("compare", **own, a=text, mask=OFF)
    for name, share in clf.answer.shares(values, clf.labels):
        assert f"{name} {share:.3f}" in texts(app)


@pytest.mark.parametrize("job", ["tokens"])
def test_explanations_name_a_refusal_once(open_page: Callable[..., Any], own: dict[str, str]) -> None:
    app = open_page("compare", **own, tab="Explanations")
    refused = [str(info.value) for info in app.info if "states of all tokens" in str(info.value)]
    assert len(refused) == 1
    assert refused[0].startswith("attention rollout, value")


OTHERS = sorted({name for _, name in HERE} - {"ablation", "by-slice", "runtimes", "speed"})
ONE_EACH = [next((j, n) for j in (JOBS * 2)[i % len(JOBS) :] if (j, n) in HERE) for i, n in enumerate(OTHERS)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("job", "name"), some_in_ci(HERE, [], ONE_EACH + [(j, n) for j, n in HERE if n in ("ablation", "by-slice")])
)
def test_every_analysis_runs(own: dict[str, str], name: str, capsys: pytest.CaptureFixture[str]) -> None:
    analysis = ANALYSES[name]
    source = ["--model", own["model"]]
    if "data" in analysis.needs:
        source += ["--task", "custom", "--data", own["data"]]
        source += ["--text-columns", own["columns"], "--label-column", own["label"]] if own["columns"] else []
        source += ["--scores", "taylor"] if name == "grade" else []
        source += ["--slice-column", "kind"] if "slices" in analysis.needs or name == "by-slice" else []
    if name != "cross-dataset" and not {"checkpoints", "base", "other", "text"} & {o.name for o in analysis.options}:
        assert call(capsys, *analysis.line.split()[1:], *source)


@pytest.mark.parametrize("job", ["span"])
def test_pages_say_that_texts_are_cut_before_the_answer(
    open_page: Callable[..., Any], own: dict[str, str], places: dict[str, Path], tmp_path: Path
) -> None:
    passages = ["the dog sleeps and " * 30 + "the red cat sees"] * 40 + ["the red cat"] * 9
    rows = [{"question": f"who {i}", "context": t, "answers": [answer_in(t)]} for i, t in enumerate(passages)]
    data = places["span"] / "cut"
    data.mkdir()
    for split in ("train", "dev"):
        (data / f"{split}.jsonl").write_text("\n".join(map(json.dumps, rows)))
    own |= {"data": str(data), "groups": ""}
    for page, more, button in (
        ("masklab", {}, ""),
        ("workbench", {}, ""),
        ("scores", {"score": "taylor"}, "compute_fine-tuned_taylor"),
        ("analyses", {"analysis": "ablation"}, "run_ablation"),
    ):
        app = open_page(page, **own, **more)
        if button:
            app.button(key=button).click().run()
        assert "of them before the answer" in texts(app.run()), page


def answer_in(text: str) -> dict[str, Any]:
    return {"text": "red cat", "answer_start": text.index("red cat")}


@pytest.mark.parametrize("job", ["rank"])
def test_pages_show_passages_that_moved(open_page: Callable[..., Any], own: dict[str, str]) -> None:
    app = open_page("masklab", **own, mask="000")
    labels = [metric.label.replace("\\", "").replace("\u200b", "") for metric in app.metric]
    assert {"nDCG@10", "a random order"} <= set(labels)
    assert re.search(r"Relevant passages that moved: \d+ down, \d+ up", texts(app))
    app = open_page("compare", **own, mask="f00")
    assert any("passage" in frame.value.columns and "relevance" in frame.value.columns for frame in app.dataframe)
    assert any(box.label == "Passage of this query" and len(box.options) == 4 for box in app.selectbox)
    app = open_page("workbench", **own, mask="f00").run()
    shown = " ".join(str(e.proto.body) for e in app.get("html"))
    assert re.search(r"nDCG@10 [\d.]+ → [\d.]+ on \d+ queries", shown)


@pytest.mark.parametrize("job", ["span"])
def test_pages_show_answers_that_moved(open_page: Callable[..., Any], own: dict[str, str]) -> None:
    app = open_page("masklab", **own, mask="000")
    assert any(metric.label == "exact match" for metric in app.metric)
    clf = headviz.load(own["model"])
    data = headviz.load_task("custom", split="dev", data=own["data"], slice_column="kind")
    off = clf.full_mask.without(clf.full_mask.kept)
    before, after = (headviz.evaluate(clf, data, mask=mask) for mask in (None, off))
    worse, better = map(int, re.findall(r"Changed answers: (\d+) now worse, (\d+) now better", texts(app))[0])
    moved = (np.array(before.predictions) != np.array(after.predictions)).any(axis=1).sum()
    assert 0 < worse + better <= moved
    assert (worse > better) == (before.metrics["token_f1"] > after.metrics["token_f1"])
    app = open_page("compare", **own, mask="000")
    marked = [re.findall(r":blue-background\[\*\*(.*?)\*\*\]", line) for line in texts(app).splitlines()]
    shown = [" ".join(words) for words in marked if words]  # with all heads, then with the words that changed marked
    assert shown == [span_text(data[0].pair, result.predictions[0]) for result in (before, after)]


@pytest.mark.parametrize("job", ["vector"])
def test_a_number_is_compared_with_what_stands_first(open_page: Callable[..., Any], own: dict[str, str]) -> None:
    app = open_page("compare", **own, mask=OFF, first="mask", other="all")
    assert not app.exception
    (said,) = re.findall(r"against (.*)", texts(app))
    assert said == "current mask (2 off)"


@pytest.mark.parametrize("job", ["rank"])
def test_one_click_reads_one_output_in_another_way(open_page: Callable[..., Any], own: dict[str, str]) -> None:
    app = open_page("data", **own)
    assert "Job: rank" in texts(app)
    app = app.button(key="other_job").click().run()
    assert not app.exception
    assert "You named the job: number" in texts(app)
