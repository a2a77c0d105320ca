"""``headviz run``: what people and scripts see."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3

import pytest

from headviz.cli import main
from headviz.errors import OptionError
from headviz.runs import service
from headviz.runs.sweep import Member, start_sweep
from support.real_runs import folders, options
from support.running import ended, running_steps


def headviz(capsys, *words: str) -> tuple[int, str, str]:
    status = main(["run", *words])
    out = capsys.readouterr()
    return status, out.out, out.err


def as_json(capsys, *words: str) -> dict:
    status, out, err = headviz(capsys, *words, "--json")
    assert status == 0, err
    return json.loads(out)


PLAN = ("--model", "m", "--task", "demo", "--score", "taylor", "--algorithm")
REHEARSAL = ("start", "--kind", "rehearsal", "--spec")


def test_start_and_wait_then_list_and_show(registry, capsys):
    run = as_json(capsys, *REHEARSAL, '{"steps": 3}', "--wait", "--title", "a try")
    assert (run["state"], run["error"], len(run["steps"]), run["title"]) == ("done", None, 3, "a try")
    assert {"sparsity", "mask", "metrics", "seconds"} <= set(run["steps"][0])
    assert [r["id"] for r in as_json(capsys, "list")["runs"]] == [run["id"]]
    assert as_json(capsys, "show", run["id"][:4])["steps"] == run["steps"]
    for words in (("list",), ("show", run["id"])):
        status, out, err = headviz(capsys, *words)
        assert status == 0, err
        assert run["id"] in out
        assert "done" in out


def test_without_wait_it_returns_at_once_and_can_be_cancelled_and_resumed(registry, capsys):
    run = as_json(capsys, *REHEARSAL, '{"steps": 30, "seconds": 0.2}')
    assert run["state"] in ("queued", "running")
    running_steps(run["id"], 1)
    assert as_json(capsys, "cancel", run["id"])["state"] == "cancelled"
    assert as_json(capsys, "resume", run["id"])["state"] in ("queued", "running")
    assert as_json(capsys, "cancel", run["id"])["state"] == "cancelled"


MISTAKES = [
    ((), "WHAT"),
    (("dance",), "invalid choice"),
    (("start",), "--model is needed"),
    (("start", *PLAN, "isp", "--step", "0"), "step of 0"),
    (("start", "--kind", "rehearsal", "--spec", "{"), "not JSON"),
    (("start", "--kind", "rehearsal", "--spec", "nowhere.json"), "cannot be read"),
    (("start", "--kind", "waltz"), "Choose one of"),
    (("start", "--kind", "rehearsal", "--plan"), "--plan is for pruning runs"),
    (("show", "ffffffff"), "no run"),
    (("show", "../../etc"), "not a run's id"),
    (("report", "ffffffff", "--out", "x.html"), "no run"),
    (("sweep", "--model", "m", "--task", "demo"), "--algorithm is needed"),
    (("sweep", *PLAN, "iterative", "--spec", '{"length_filtr": "none"}'), "length_filter"),
    (("start", "--kind", "sweep"), "headviz run sweep"),
    (("start", *PLAN, "isp", "--spec", '{"seeds": 3}'), "seeds is a list, such as [3], not 3"),
    (("start", *PLAN, "isp", "--spec", '{"score_options": 5}'), "values by name"),
    (("start", "--kind", "score", "--spec", '{"model": ["x"], "task": "demo"}'), "['x']' is not a text"),
    (("start", "--kind", "score", "--spec", '{"model": "m", "task": "demo", "samples": "20"}'), "samples"),
    (("start", "--kind", "ablation", "--spec", '{"model": "m", "task": "demo", "limit": 0}'), "limit"),
    (("show", "ffffffff", "--margin", "nan"), "--margin: 'nan' is not a number from 0"),
]


@pytest.mark.slow
def test_mistakes_get_one_clear_line(registry, capsys):
    for words, reason in MISTAKES:
        status, out, err = headviz(capsys, *words)
        assert (status, out) == (2, ""), words
        assert reason in err
        assert err.startswith("headviz: ")
        assert err.count("\n") == 1
    assert registry.records() == []


def test_a_setting_that_cannot_be_read_leaves_no_run_that_starts_later(registry, capsys, monkeypatch):
    monkeypatch.setenv("HEADVIZ_RUNS_AT_ONCE", "two")
    status, _, err = headviz(capsys, *REHEARSAL, '{"steps": 1}')
    assert (status, err.startswith("headviz: HEADVIZ_RUNS_AT_ONCE='two' is not")) == (2, True)
    with pytest.raises(OptionError):
        start_sweep([Member("rehearsal", {"steps": 1}, "one", "cpu")], title="several")
    assert registry.records() == []
    monkeypatch.delenv("HEADVIZ_RUNS_AT_ONCE")
    run = service.cancel(service.start("rehearsal", {"steps": 30, "seconds": 0.2}).id)
    monkeypatch.setenv("HEADVIZ_RUNS_AT_ONCE", "two")
    with pytest.raises(OptionError):
        service.resume(run.id)
    assert registry.get(run.id).state == ended(run.id).state == "cancelled"


def test_paths_are_kept_from_the_root_on_for_every_kind(own_home, tmp_path, monkeypatch):
    """A run is resumed, or taken from the queue, from another folder than it was started in."""
    place = folders(tmp_path / "real")
    monkeypatch.chdir(tmp_path / "real")
    spec = {"model": "model", "data": "data", "task": "custom"}
    kept = service.new_record("ablation", spec).spec
    assert (kept["model"], kept["data"]) == (place["model"], place["data"])
    assert service.new_record("ablation", {**spec, "model": "a/hub-id"}).spec["model"] == "a/hub-id"
    (tmp_path / "real" / "demo").mkdir()  # loading takes the shipped model for this name, too
    assert service.new_record("ablation", {**spec, "model": "demo"}).spec["model"] == "demo"
    distilled = {**spec, "remove": "heads:0.0", "trainings": ["model", "base"]}
    assert service.new_record("distill", distilled).spec["trainings"] == [place["model"], place["base"]]


@pytest.mark.slow
def test_nothing_is_written_for_a_plan_that_cannot_work(registry, capsys, tmp_path):
    place = folders(tmp_path / "real")
    for change, reason in (
        ({"keep_per_layer": 2}, "keeping 2 per layer allows"),
        ({"algorithm": "igspp", "base": None}, "name them (--base"),
        ({"score": "tailor"}, "Did you mean 'taylor'"),
        ({"model": place["model"] + "x"}, "There is no folder"),
        ({"label_column": "labels"}, "label"),
    ):
        spec = tmp_path / "plan.json"
        spec.write_text(json.dumps({**options(place, "one-importance"), **change}))
        status, _, err = headviz(capsys, "start", "--spec", str(spec))
        assert status == 2, change
        assert reason in err
    assert not (registry.folder / "registry.sqlite").exists() or registry.records() == []


def test_flags_and_a_spec_make_one_plan(capsys, tmp_path):
    import argparse

    from headviz.commands.run import add_plan, read_plan

    parser = argparse.ArgumentParser()
    add_plan(parser)
    words = "--model m --task demo --algorithm iterative --score taylor".split()
    words += "--seeds 0,3 --step 0.2 --score-option x=1".split()
    plan = read_plan(parser.parse_args(words), {"until": 0.5, "step": 0.3})
    assert (plan.seeds, plan.step, plan.until, dict(plan.score_options)) == ((0, 3), 0.2, 0.5, {"x": 1})
    search = read_plan(parser.parse_args("--model m --task demo --algorithm mask-search".split()))
    assert search.score == "fisher"
    trained = read_plan(parser.parse_args([*words, "--epochs", "2"]))
    assert trained.finetune.epochs == 2


@pytest.mark.slow
def test_a_real_plan_is_shown_and_run_and_saved(registry, capsys, tmp_path, real_spawn):
    place = folders(tmp_path / "real")
    spec = tmp_path / "plan.json"
    spec.write_text(json.dumps(options(place, "one-importance", step=0.5, until=0.5)))
    plan = as_json(capsys, "start", "--spec", str(spec), "--plan")["plan"]
    assert (plan["algorithm"], plan["score"], plan["task"]) == ("one-importance", "taylor", "custom")
    assert (plan["finetunings"], plan["scorings"], plan["evaluations"], plan["heads_off"]) == (0, 1, 2, [4])
    assert plan["total_seconds"] > 0
    assert plan["drawn"] == [plan["samples"]]
    assert not registry.path.exists()
    run = as_json(capsys, "start", "--spec", str(spec), "--wait")
    assert (run["state"], run["algorithm"], run["score"]) == ("done", "one-importance", "taylor")
    assert [s["sparsity"] for s in run["steps"]] == [0.5]
    assert run["spec"]["digests"]["model"]
    told = as_json(capsys, "save", run["id"], "--out", str(tmp_path / "small"))
    saved = told["saved"]
    step = {"seed": 0, "step": 1, "sparsity": 0.5, "metrics": run["steps"][0]["metrics"]}
    assert told["step"] == step
    from headviz.commands.run import show

    assert "seed 0, step 1: 50.0 % of the heads off, accuracy " in show(told).splitlines()[0]

    import headviz as library

    assert library.load(saved["pruned"], device="cpu").present.hex == run["steps"][0]["mask"]


def test_a_change_stands_with_its_interval():
    from headviz.runs.tables import step_table

    def written(change: dict) -> str:
        step = {"seed": 0, "step": 1, "sparsity": 0.5, "metrics": {"accuracy": 0.7}, "change": change, "seconds": 1.0}
        table = step_table("prune", {"algorithm": "iterative"}, [], [step])
        at = [title.startswith("change of accuracy") for title in table.titles("terminal")].index(True)
        return table.texts("terminal")[0][at]

    known = {"accuracy": {"delta": -0.048, "low": -0.0612, "high": -0.031, "p": 0.001}}
    assert written(known) == "−4.8 [−6.2, −3.1]"  # outwards, so that it still covers
    assert written({"accuracy": {"delta": 0.0001, "low": None, "high": None}}) == "0.0"
    assert written({}) == "–"


@pytest.mark.parametrize(
    ("metric", "title", "text"),
    [
        ("micro_f1", "same answers", "50.0 %"),
        ("pearson", "r with its answers", "0.5"),
        ("ndcg@10", "τ with its order", "0.5"),
    ],
)
def test_only_equal_answers_are_a_share_of_answers(metric, title, text):
    from headviz.runs.tables import step_table

    step = {"seed": 0, "step": 1, "sparsity": 0.5, "metrics": {metric: 0.7}, "agreement": 0.5, "seconds": 1.0}
    table = step_table("prune", {"algorithm": "iterative"}, [], [step])
    (at,) = [i for i, column in enumerate(table.columns) if column.name == "agreement"]
    assert (table.columns[at].title, table.columns[at].text(step["agreement"])) == (title, text)


DEEP = "[" * 100_000 + "]" * 100_000
DAMAGE = {
    "id": "UPDATE runs SET id = '../x' WHERE id = :id",
    "spec": "UPDATE runs SET spec = '{' WHERE id = :id",
    "deep spec": f"UPDATE runs SET spec = '{DEEP}' WHERE id = :id",
    "list of spec": "UPDATE runs SET spec = '[]' WHERE id = :id",
    "bytes": "UPDATE runs SET title = CAST(x'ff80' AS TEXT), spec = x'00' WHERE id = :id",
    "threads": "UPDATE runs SET threads = 'two' WHERE id = :id",
    "no threads": "UPDATE runs SET threads = 0 WHERE id = :id",
    "started": "UPDATE runs SET started = 'x' WHERE id = :id",
    "ended": "UPDATE runs SET ended = 1e300 WHERE id = :id",
    "state": "UPDATE runs SET state = 'none' WHERE id = :id",
    "a step": "UPDATE steps SET body = '{' WHERE run = :id",
    "a step without metrics": "UPDATE steps SET body = '{}' WHERE run = :id",
    "a metric of words": """UPDATE steps SET body = '{"metrics": {"accuracy": "x"}}' WHERE run = :id""",
    "a step that is none": """UPDATE steps SET body = '{"metrics": {}, "step": {}}' WHERE run = :id""",
}


@pytest.mark.slow
def test_a_damaged_record_does_not_hide_the_others(registry, capsys, tmp_path, monkeypatch):
    bad, good = (as_json(capsys, *REHEARSAL, '{"steps": 1}', "--wait")["id"] for _ in range(2))
    for what, statement in DAMAGE.items():
        home = tmp_path / what
        shutil.copytree(registry.folder, home / registry.folder.name)
        monkeypatch.setenv("HEADVIZ_HOME", str(home))
        with sqlite3.connect(home / registry.folder.name / registry.path.name) as db:
            db.execute(statement, {"id": bad})
        listed = {r["id"]: r["state"] for r in as_json(capsys, "list")["runs"]}
        assert listed == {"../x" if what == "id" else bad: "broken", good: "done"}, what
        if what == "id":
            continue
        for action in ("show", "cancel", "resume"):
            status, out, err = headviz(capsys, action, bad)
            assert (status, out, err.count("\n")) == (2, "", 1), what
            assert bad in err
        assert headviz(capsys, "delete", bad)[0] == 0
        assert [r["id"] for r in as_json(capsys, "list")["runs"]] == [good]


def test_a_pipe_in_the_folder_of_a_run_is_not_waited_for_and_a_deep_outcome_is_as_none(registry, capsys):
    run = as_json(capsys, *REHEARSAL, '{"steps": 1}', "--wait")["id"]
    (registry.folder / run / "outcome.json").write_text(DEEP)
    assert as_json(capsys, "show", run)["outcome"] is None
    for file in ("log.txt", "outcome.json"):
        (registry.folder / run / file).unlink(missing_ok=True)
        os.mkfifo(registry.folder / run / file)
    assert as_json(capsys, "show", run)["state"] == "done"
