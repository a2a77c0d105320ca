"""A run whose score and algorithm come from plugin files."""

import json
from pathlib import Path

import pytest

from headviz import plugins
from headviz.cli import main
from headviz.errors import OptionError
from headviz.heads import HeadMask
from headviz.runs.kinds import make_job
from headviz.runs.registry import Registry
from headviz.scores import SCORES
from support.plugin_files import EXAMPLES, FAMILY, SCORE, TASK, forget, nothing_stays, written
from support.real_runs import folders, options
from support.tiny import tiny_folder

__all__ = ["nothing_stays"]


@pytest.mark.slow
def test_a_run_with_both_plugins_is_carried_by_a_worker_and_not_resumed_with_another_file(
    nothing_stays: None, registry: Registry, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written(tmp_path, SCORE)
    place = folders(tmp_path / "real")
    plan = {**options(place, "top-down", step=0.5, until=0.5), "score": "loss-spread"}
    spec = written(tmp_path, json.dumps(plan), "plan.json")
    words = ["--plugin", str(file), "--plugin", str(EXAMPLES / "my_algorithm.py"), "--spec", str(spec)]
    assert main(["run", "start", *words, "--wait", "--json"]) == 0
    run = json.loads(capsys.readouterr().out)
    assert (run["state"], run["algorithm"], run["score"]) == ("done", "top-down", "loss-spread")
    assert [p["source"] for p in run["spec"]["plugins"]] == [str(file), str(EXAMPLES / "my_algorithm.py")]
    assert HeadMask.from_hex(run["steps"][0]["mask"], 2, 4).off == tuple((1, h) for h in range(4))

    written(tmp_path, SCORE + "# another\n")
    forget()
    report = tmp_path / "run.html"
    assert main(["run", "report", run["id"], "--out", str(report)]) == 0  # what was found stays readable
    assert f"--plugin {file}" in report.read_text(encoding="utf-8")
    capsys.readouterr()
    record = registry.get(run["id"])
    with pytest.raises(OptionError, match=r"mine\.py has changed since this run was written down"):
        make_job(record.kind, record.spec)


@pytest.mark.slow
def test_a_run_on_a_plugins_task_with_a_model_of_a_plugins_family(
    nothing_stays: None, registry: Registry, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [written(tmp_path, TASK, "task.py"), written(tmp_path, FAMILY, "family.py")]
    plugins.load(files)
    place = folders(tmp_path / "real")
    model = tiny_folder(tmp_path / "model", "markuplm", layers=2)
    plan = {
        **options(place, "one-importance", step=0.5, until=0.5),
        **{"model": str(model), "task": "follows", "text_columns": None, "label_column": None},
    }
    plan.pop("base")
    spec = written(tmp_path, json.dumps(plan), "plan.json")
    words = [w for file in files for w in ("--plugin", str(file))]
    assert main(["run", "start", *words, "--spec", str(spec), "--wait", "--json"]) == 0
    run = json.loads(capsys.readouterr().out)
    assert (run["state"], run["error"]) == ("done", None)
    assert [p["source"] for p in run["spec"]["plugins"]] == [str(file) for file in files]
    assert len(HeadMask.from_hex(run["steps"][-1]["mask"], 2, 4).off) == 4


def test_a_sent_file_is_loaded_without_the_file_and_replaces_its_older_version(
    nothing_stays: None, tmp_path: Path
) -> None:
    file = written(tmp_path, SCORE)
    plugins.load([file])
    old = plugins.used_by({"score": "loss-spread"})
    forget()
    written(tmp_path, SCORE.replace("Spread of the loss's reaction", "New"))
    plugins.load([file])
    new = plugins.used_by({"score": "loss-spread"})
    codes = plugins.codes_of(new)
    forget()
    file.unlink()
    with pytest.raises(OptionError, match=r"mine\.py cannot be read"):
        plugins.require(new["plugins"])
    plugins.require(old["plugins"], {str(file): SCORE.encode()})
    assert SCORES["loss-spread"].title != "New"
    plugins.require(new["plugins"], codes)
    assert SCORES["loss-spread"].title == "New"
    assert len(plugins.loaded()) == 1
    with pytest.raises(OptionError, match="has changed since this run was written down"):
        plugins.require(old["plugins"], codes)
