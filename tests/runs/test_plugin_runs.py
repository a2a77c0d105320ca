"""A run whose score and algorithm come from plugin files."""

import json
from pathlib import Path

import pytest

from headviz import plugins
from headviz.cli import main
from headviz.errors import OptionError
from headviz.heads import HeadMask
from headviz.pruning.algorithms import ALGORITHMS
from headviz.runs.kinds import make_job
from headviz.runs.registry import Registry
from headviz.scores import SCORES
from support.plugin_files import EXAMPLES, SCORE, nothing_stays, written
from support.real_runs import folders, options

__all__ = ["nothing_stays"]


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
    plugins._loaded.clear()
    for table, name in ((SCORES, "loss-spread"), (ALGORITHMS, "top-down")):
        del table[name]
    report = tmp_path / "run.html"
    assert main(["run", "report", run["id"], "--out", str(report)]) == 0  # what was found stays readable
    assert f"--plugin {file}" in report.read_text(encoding="utf-8")
    capsys.readouterr()
    record = registry.get(run["id"])
    with pytest.raises(OptionError, match=r"mine\.py has changed since this run was written down"):
        make_job(record.kind, record.spec)
