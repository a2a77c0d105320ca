"""Reports of runs: self-contained, escaped, and the same numbers in every form."""

from __future__ import annotations

import argparse
import csv
import io
import json
import re
import shlex
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from headviz.commands.run import _spec, add_plan, read_plan, show
from headviz.display.table import Column, Table, View
from headviz.errors import RunError, UserError
from headviz.pruning.plan import PruningPlan
from headviz.reports.run_report import (
    keep_runtimes,
    recipe_of,
    run_csv,
    run_html,
    run_json,
    run_table,
    run_tex,
    write_run,
)
from headviz.runs.reading import RunView, WorkerReport
from headviz.runs.record import RunRecord
from headviz.runs.tables import Curve, curve_of, run_curves, sweep_curves

EVIL = '=cmd|"<script>alert(1)</script> & 50 %_{x}'


def step(seed: int, sparsity: float, value: float | None, **more: Any) -> dict[str, Any]:
    return {
        "seed": seed,
        "step": int(sparsity * 10),
        "sparsity": sparsity,
        "heads_off": int(8 * sparsity),
        "mask": "f0",
        "metrics": {"accuracy": value},
        "intervals": {"accuracy": [0.1, 0.9]},
        "seconds": 1.5,
        **more,
    }


@pytest.fixture
def view() -> RunView:
    spec = {"model": "demo", "task": "demo", "algorithm": "iterative", "score": "taylor", "seeds": [0, 1]}
    record = RunRecord(
        id="0123abcd", kind="rehearsal", spec=spec, title=EVIL, version="0.1.0", state="failed", error=EVIL, started=1.0
    )
    return RunView(
        record=record,
        state="failed",
        steps=(step(0, 0.5, 0.75), step(0, 1.0, None), step(1, 0.5, 0.25)),
        baseline=(step(0, 0.0, 0.9, reference=True),),
        progress=WorkerReport(),
        log=("a line", EVIL),
        outcome={},
    )


def test_html_is_one_file_without_network_and_without_a_cloud_button(view):
    page = run_html(view)
    outside = re.sub(r"<script\b.*?</script>", "", page, flags=re.DOTALL)  # plotly itself names its home page
    assert not re.search(r"""(src|href)\s*=\s*["']?(https?:)?//""", outside)
    assert '"showSendToCloud": false' in page
    assert page.count("Plotly.newPlot") == 1
    assert "0.75" in outside


def test_a_text_is_never_markup(view):
    page = run_html(view)
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt; &amp; 50 %" in page
    tex = run_tex(view)
    assert r"\&" in tex
    assert r"50 \%\_\{x\}" in tex
    named = replace(view, steps=(step(0, 0.5, 0.75, mask=EVIL),))
    cell = next(csv.DictReader(io.StringIO(run_csv(named))))
    assert cell["mask"] == "f0"
    assert [r["mask"] for r in csv.DictReader(io.StringIO(run_csv(named)))][1] == "'" + EVIL


def test_every_form_has_the_same_numbers(view):
    rows = list(csv.DictReader(io.StringIO(run_csv(view))))
    result = json.loads(run_json(view))
    steps = [*result["baseline"], *result["steps"]]
    assert [r["accuracy"] for r in rows] == ["0.9", "0.75", "", "0.25"]
    assert [s["metrics"]["accuracy"] for s in steps] == [0.9, 0.75, None, 0.25]
    assert [r["seed"] for r in rows] == ["", "0", "0", "1"]  # the model as given has no seed of ours
    assert [r["accuracy low"] for r in rows] == ["0.1"] * 4
    assert run_tex(view).count(r"\\") == 5
    made = run_table(view)
    assert len(made.titles("report")) == len(made.texts("report")[0])


def pruning(view: RunView) -> RunView:
    """The same run as one that prunes: its step has lost something, which its interval says."""
    spec = {"model": "demo", "task": "mrpc", "algorithm": "iterative", "score": "taylor", "seeds": [0]}
    change = {"accuracy": {"delta": -0.02206, "low": -0.05031, "high": 0.00549, "p": 0.25}}
    lost = step(0, 0.5, 0.7868, change=change, against="given", parameters=1000)
    return replace(view, record=replace(view.record, kind="prune", spec=spec), steps=(lost,))


def test_every_form_has_the_interval_of_a_change(view, monkeypatch):
    monkeypatch.setattr("headviz.reports.run_report._summary", lambda view: {})
    full, lost = csv.DictReader(io.StringIO(run_csv(pruning(view))))
    ends = [f"change of accuracy{end}" for end in ("", " low", " high")]
    assert [lost[name] for name in ends] == ["-0.02206", "-0.05031", "0.00549"]
    assert [full[name] for name in ends] == ["", "", ""]
    assert list(lost)[-4:] == ["accuracy low", "accuracy high", *ends[1:]]
    assert "<td>−2.2 [−5.1, +0.6]</td>" in run_html(pruning(view))
    tex = run_tex(pruning(view))
    assert r"0.787 {[}0.100, 0.900{]} & $-$2.2 {[}$-$5.1, +0.6{]} & 1,000" in tex
    assert r"compared with $\theta$*" in tex
    assert EVIL not in tex
    assert "low" not in tex  # an interval follows its value


@pytest.mark.slow
def test_a_column_is_declared_once_and_shown_everywhere(view, monkeypatch):
    """In the terminal, on the page, in the report, in the notebook and in the CSV."""
    import headviz.ui.shell.show as page
    from headviz.notebook.display import html
    from headviz.runs import tables
    from headviz.ui.pages.runs import steps

    declared = tables.step_columns
    added = Column("laps", "{:.1f} laps".format, lambda s: 7.25 * (s["sparsity"] + 1), "how often", name="laps_run")
    monkeypatch.setattr(tables, "step_columns", lambda *a: [*declared(*a), added])
    monkeypatch.setattr("headviz.reports.run_report._summary", lambda view: {})
    run = pruning(view)
    assert "10.9 laps" in show(run.to_dict())
    assert "10.9 laps" in run_html(run)
    assert "10.9 laps" in html(run)
    assert [row["laps_run"] for row in csv.DictReader(io.StringIO(run_csv(run)))] == ["7.25", "10.875"]
    drawn: dict[str, object] = {}
    monkeypatch.setattr(page.st, "dataframe", lambda styled, **more: drawn.update(styled=styled, **more))
    monkeypatch.setattr(page, "downloads", lambda made, record: drawn.update(files=made.for_files()[0]))
    steps.models_table(run)
    assert list(drawn["styled"].data["laps"]) == [7.25, 10.875]
    assert "10.9 laps" in drawn["styled"].to_html()
    assert drawn["column_config"]["laps"]["help"] == "how often"
    assert "laps_run" in drawn["files"]


def test_writing_makes_a_new_file_and_never_overwrites(view, tmp_path):
    for name in ("r.html", "r.json", "r.csv", "r.tex"):
        assert write_run(view, tmp_path / name).read_text(encoding="utf-8")
        with pytest.raises(RunError, match="exists"):
            write_run(view, tmp_path / name)
    with pytest.raises(RunError, match=r"Choose one of: \.html"):
        write_run(view, tmp_path / "r.pdf")
    with pytest.raises(UserError, match="no folder"):
        write_run(view, tmp_path / "x" / "r.csv")
    assert len(list(tmp_path.iterdir())) == 4


def test_the_command_gives_the_same_plan_back():
    plan = PruningPlan(
        model="a model",
        base="b",
        task="mrpc",
        algorithm="igspp",
        score="taylor",
        seeds=(1, 2),
        step=0.2,
        keep_per_layer=1,
        label_order=("it's", "b"),
        text_columns=("a, or b", "c"),
        dev_limit=60,
        score_options=(("abs_level", "batch"),),
    )
    recipe = recipe_of({"kind": "prune", "spec": {**plan.to_dict(), "digests": {"model": "x"}}})
    assert recipe is not None
    line = recipe[1]
    words = shlex.split(line.replace("\\\n", " "))
    assert words[:3] == ["headviz", "run", "start"]
    assert words[words.index("--dev-limit") + 1] == "60"
    parser = argparse.ArgumentParser()
    add_plan(parser)
    parser.add_argument("--spec")
    args = parser.parse_args(words[3:])
    assert read_plan(args, _spec(args.spec)) == plan


def test_a_curve_has_means_over_seeds_and_leaves_out_what_is_not_known(view):
    curve = curve_of(view.to_dict())
    assert curve is not None
    assert curve.baseline == 0.9
    assert curve.by_seed == {0: [(0.0, 0.9), (0.5, 0.75)], 1: [(0.0, 0.9), (0.5, 0.25)]}
    assert curve.means == [(0.0, 0.9, 0.0), (0.5, 0.5, pytest.approx(0.35355339))]
    figure = run_curves([curve, Curve("<b>other</b>", "accuracy", None, {0: [(0.1, 0.5)]})])
    assert "<b>" not in (figure.data[-1].name or "")
    assert curve_of({**view.to_dict(), "steps": [], "baseline": []}) is None


def table_of_heads(kind: str) -> dict[str, Any]:
    """The outcome of a score or an ablation of four heads, one of which is not there."""
    values = [[0.25, None], [-0.5, 1.0]]
    table = {"values": values, "interval_low": values, "interval_high": values}
    if kind == "score":
        return {**table, "score": EVIL, "samples": 7}
    about = {
        "model": EVIL,
        "digest": "d",
        "task": "demo",
        "split": "dev",
        "data_digest": "e",
        "n": 9,
        "metric": "accuracy",
        "precision": "float32",
        "rows": [],
    }
    probable = [[0.5, None], [0.01, 0.001]]
    return {
        **table,
        "p_value": probable,
        "q_value": probable,
        "subject": about,
        "base": "b",
        "baseline": 0.9,
        "seconds": 1.0,
    }


@pytest.mark.parametrize("kind", ["score", "ablation"])
def test_a_table_of_heads_is_drawn_and_listed(view: RunView, kind: str) -> None:
    view = replace(view, record=replace(view.record, kind=kind), outcome=table_of_heads(kind))
    header, rows = run_table(view).for_files()
    assert [row[:2] for row in rows] == [["L1·H1", 1.0], ["L0·H0", 0.25], ["L1·H0", -0.5]]
    assert header[:2] == ["head", {"score": "value", "ablation": "cost"}[kind]]
    assert len(list(csv.reader(io.StringIO(run_csv(view))))) == 4
    page = run_html(view)
    assert "of every head" in page
    assert "against heads pruned" not in page
    assert "<script>alert" not in page
    assert "alert(1)" in run_tex(view) or kind == "ablation"


@pytest.mark.parametrize("kind", ["score", "ablation", "finetune", "prune"])
def test_a_run_without_steps_or_an_outcome_is_written_down_all_the_same(view: RunView, kind: str) -> None:
    view = replace(view, record=replace(view.record, kind=kind), steps=(), baseline=(), outcome={})
    assert view.record.id in run_html(view)
    assert run_csv(view)


def test_runtimes_that_were_compared_stand_in_the_report(view, own_home):
    assert "Runtimes" not in run_html(view)
    columns = (Column("runtime"), Column("times as fast", "%.2f"))
    table = Table("runtimes_table", columns, [["ONNX int8", 2.5], [EVIL, None]], caption="36 examples of demo")
    keep_runtimes(view.record.id, "heads-1.2", View("The fastest is ONNX int8.", (table,)))
    page = run_html(view)
    for text in ("Runtimes: heads-1.2", "The fastest is ONNX int8.", "<td>2.50</td>", "36 examples of demo"):
        assert text in page
    assert "<script>alert" not in page


def test_a_sweep_has_one_line_for_each_way_of_pruning_over_its_seeds(view: RunView) -> None:
    """Fifteen runs were fifteen lines in six colours, named by hashes."""

    def child(score: str, seed: int) -> RunView:
        spec = {**view.record.spec, "score": score, "seeds": [seed]}
        record = replace(view.record, id=f"{score}{seed}", kind="prune", spec=spec, title=f"{score} ({seed})")
        return replace(view, record=record, steps=(step(seed, 0.5, 0.7 + 0.1 * seed),))

    children = [child(score, seed) for seed in (0, 1, 2) for score in ("taylor", "gates", "magnitude")]
    drawn = sweep_curves(children)
    assert [c.name for c in drawn] == ["iterative by taylor", "iterative by gates", "iterative by magnitude"]
    assert all(sorted(c.by_seed) == [0, 1, 2] for c in drawn)
    assert np.isclose(drawn[0].means[-1][1], 0.8)
