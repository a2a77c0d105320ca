"""Plugins: what a file adds works everywhere, what is wrong with it is said in one line, and nothing else breaks."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import headviz
from headviz import plugins
from headviz.answers import ANSWERS, comparison
from headviz.cli import main
from headviz.errors import OptionError, TaskError
from headviz.scores import SCORES
from headviz.scores.scoring import score_heads
from headviz.storage.store import Store, default_store
from headviz.tasks import get_task, metric
from support.plugin_files import ANALYSIS, EXAMPLES, FAMILY, ROOT, SCORE, TASK, forget, nothing_stays, written
from support.real_runs import folders
from support.scored_data import made
from support.tiny import tiny_classifier, tiny_folder

__all__ = ["nothing_stays"]
pytestmark = pytest.mark.usefixtures("nothing_stays")


def test_the_documents_code_is_that_of_the_examples() -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "plugins.md").read_text(encoding="utf-8"), re.S)
    assert blocks == [
        (EXAMPLES / f"my_{name}.py").read_text(encoding="utf-8") for name in ("score", "algorithm", "metric", "run")
    ]


def test_the_example_score_is_what_it_says() -> None:
    plugins.load([EXAMPLES / "my_score.py"])
    clf, data = tiny_classifier("bert"), made(6)
    result = score_heads(clf, data, "loss-spread", cache=False)
    each = [
        score_heads(clf, data.subset([i]), "taylor", abs_level="signed", layer_norm=False, cache=False).values
        for i in range(6)
    ]
    np.testing.assert_allclose(result.values, np.abs(each - np.mean(each, axis=0)).mean(axis=0), rtol=1e-3)
    assert (result.stderr > 0).all()


def test_the_example_metric_judges_any_task_and_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparison, "FUNCTION_SWAPS", 99)
    monkeypatch.setattr(comparison, "RESAMPLES", 200)
    plugins.load([EXAMPLES / "my_metric.py"])
    clf = tiny_classifier("bert")
    data = headviz.load_task("demo", limit=20, metrics="weighted")
    result = headviz.evaluate(clf, data, {1: [2]})
    wrong = result.predictions != result.gold
    assert result.metrics == {"weighted": pytest.approx(1 - np.mean(wrong) - np.mean(wrong & (result.gold == 0)))}
    change = headviz.evaluator_of(clf, data).compare({1: [2]}).primary
    assert change.interval_low <= change.delta <= change.interval_high
    assert get_task("reviews").metrics == ("weighted",)


def test_a_table_is_taken_as_exact_and_options_reach_the_function(tmp_path: Path) -> None:
    file = written(
        tmp_path,
        "from dataclasses import dataclass\nimport numpy as np\nfrom headviz.scores import Score\n"
        "@dataclass(frozen=True)\nclass Options:\n    factor: int = 2\n"
        "def level(given, options):\n"
        "    return options.factor * np.ones((given.clf.num_layers, given.clf.num_heads))\n"
        "SCORES = [Score('level', 'Level', 'all alike', '1', 'none', level, options=Options)]\n",
    )
    plugins.load([file])
    result = score_heads(tiny_classifier("bert"), made(3), "level", factor=5)
    assert (result.values == 5).all()
    assert np.isnan(result.stderr).all()


ANSWER = """
import json
from pathlib import Path

import numpy as np

from headviz.answers.metrics import Metric
from headviz.answers.number import Number
from headviz.plugins import ModelFolder
from headviz.tasks import Dataset, Task
from headviz.tasks.catalogue import Source


class Rating(Number):
    job, after = "rating", "number"
    metrics = {"closeness": Metric(lambda said, gold: -float(abs(said - gold).mean()))}
    usual = ("closeness",)
    own = {"reader": f"{__name__}:read"}


def read(task, split, path, columns, label, slices):
    rows = [line.split(",") for line in path.read_text().splitlines()]
    return Dataset(task, split, tuple(text for text, _ in rows), labels=np.array([float(n) for _, n in rows]))


class Constant:
    name, answer, device = "constant", None, None


def load(folder, name, device, dtype, job):
    made = Constant()
    made.number = json.loads((Path(folder) / "constant.json").read_text())
    return made


rating = Rating()
ANSWERS = [rating]
MODELS = [ModelFolder("constant.json", load)]
TASKS = [Task("rating", "Rating", (), ("closeness",), Source(splits={"dev": ("", "dev")}, own=True), job="rating")]
"""


def test_a_kind_of_answer_and_a_format_of_models_come_from_a_file(tmp_path: Path) -> None:
    plugins.load([written(tmp_path, ANSWER)])
    assert list(ANSWERS)[list(ANSWERS).index("number") + 1] == "rating"
    (tmp_path / "dev.csv").write_text("good,4\nbad,1\n")
    data = headviz.load_task("rating", data=tmp_path)
    assert (data.texts, data.gold.tolist()) == (("good", "bad"), [4, 1])
    assert metric("closeness", [3.0, 1.0], data.gold) == -0.5
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "constant.json").write_text("3")
    assert headviz.load(tmp_path / "model").number == 3
    forget()
    assert "rating" not in ANSWERS
    with pytest.raises(TaskError, match="Unknown task 'rating'"):
        headviz.load_task("rating", data=tmp_path)


@pytest.mark.slow
def test_a_task_and_a_family_of_files_work_at_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    task, family = written(tmp_path, TASK, "task.py"), written(tmp_path, FAMILY, "family.py")
    plugins.load([family])
    model = str(tiny_folder(tmp_path / "model", "markuplm"))
    forget()
    data = folders(tmp_path / "real")["data"]
    assert main(["info", "--model", model]) == 2
    assert "Models of type 'markuplm' are not supported" in capsys.readouterr().err
    assert main(["info", "--plugin", str(family), "--model", model, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["heads_per_layer"] == [4, 4, 4]
    words = ["--plugin", str(task), "--plugin", str(family), "--model", model, "--task", "follows", "--data", data]
    assert main(["evaluate", *words, "--off", "1.2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["n"] == 30


def test_every_cache_key_holds_the_plugins_that_run_a_family(tmp_path: Path) -> None:
    plugins.load([written(tmp_path, SCORE)])
    assert plugins.salt() == ""
    plugins.load([written(tmp_path, FAMILY, "family.py")])
    assert plugins.salt() == plugins.loaded()[-1].digest


def test_a_cached_measurement_belongs_to_one_version_of_the_plugin(tmp_path: Path) -> None:
    clf, data, store = tiny_classifier("bert"), made(6), default_store()
    entries = []
    for text in (SCORE, SCORE + "# another\n", SCORE):
        plugins.load([written(tmp_path, text)])
        score_heads(clf, data, "loss-spread")
        entries.append(store.usage().entries)
        forget()
    assert entries == [6, 12, 12]


def test_ranks_belong_to_one_version_of_a_members_plugin(tmp_path: Path) -> None:
    clf, data = tiny_classifier(), made(4)
    asked = {"members": "loss-spread,magnitude", "cache": Store(tmp_path / "store")}
    plugins.load([written(tmp_path, SCORE)])
    first = score_heads(clf, data, "ranks", **asked).values
    forget()
    plugins.load([written(tmp_path, SCORE.replace("return np.abs", "return -np.abs"))])
    second = score_heads(clf, data, "ranks", **asked).values
    assert not np.array_equal(first, second)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import numpy\nx = 1 / 0\n", r"mine\.py, line 2 is broken: ZeroDivisionError"),
        ("import sys\nsys.exit('bye')\n", r"mine\.py, line 2 is broken: SystemExit: bye"),
        ("x = (\n", r"mine\.py, line 1 is broken: SyntaxError"),
        ("import nowhere_to_be_found\n", r"mine\.py, line 1 is broken: ModuleNotFoundError"),
        ("x = 1\n", r"declares nothing.*SCORES"),
        ("SCORES = ['taylor']\n", r"lists in SCORES a str, not a Score"),
        (SCORE.replace('"loss-spread"', '"taylor"'), r"the score 'taylor', and there is one of that name already"),
        (SCORE + "SCORES = SCORES * 2\n", r"'loss-spread', and there is one of that name already"),
    ],
)
def test_a_broken_plugin_is_named(tmp_path: Path, text: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    file, before = written(tmp_path, text), dict(SCORES)
    with pytest.raises(OptionError, match=said):
        plugins.load([file])
    assert before == SCORES
    assert main(["score", "--plugin", str(file), "--model", "demo", "--task", "demo"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_broken_plugin_of_the_environment_leaves_the_rest_working(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = written(tmp_path, "x = 1 / 0\n")
    monkeypatch.setenv(plugins.FILES, os.pathsep.join([str(broken), str(EXAMPLES / "my_score.py")]))
    with pytest.warns(plugins.PluginWarning, match="line 1 is broken"):
        plugins.load_environment()
    assert "loss-spread" in SCORES
    assert len(plugins.refused()) == 1
    plugins.load_environment()  # said once


@pytest.mark.slow
def test_an_installed_package_brings_entries_of_every_kind(tmp_path: Path) -> None:
    """As an attribute, a list, or a module that declares them; and the command line knows them."""
    algorithm = (EXAMPLES / "my_algorithm.py").read_text(encoding="utf-8")
    run = (EXAMPLES / "my_run.py").read_text(encoding="utf-8")
    written(tmp_path, SCORE + TASK + FAMILY + algorithm + run, "my_package.py")
    written(tmp_path, ANALYSIS, "my_analysis.py")
    folder = tmp_path / "my_package-1.0.dist-info"
    folder.mkdir()
    written(folder, "Metadata-Version: 2.1\nName: my-package\nVersion: 1.0\n", "METADATA")
    points = "".join(
        f"[headviz.{group}]\nmine = my_package:{group.upper()}\n"
        for group in ("scores", "algorithms", "tasks", "families", "runs")
    )
    written(folder, points + "[headviz.analyses]\nmine = my_analysis\n", "entry_points.txt")
    model = tiny_folder(tmp_path / "model")
    code = (
        "from headviz import plugins; from headviz.cli import main; "
        f"assert main(['analyse', 'counting', '--model', {str(model)!r}, '--task', 'demo', '--times', '3']) == 0; "
        "names = [p.names for p in plugins.loaded()]; plugins.require([p.to_dict() for p in plugins.loaded()]); "
        "print(sorted(n for found in names for some in found.values() for n in some))"
    )
    path = os.pathsep.join([str(tmp_path), str(ROOT / "src")])
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=290,
    )
    assert "It has 12 heads." in done.stdout, done.stderr
    assert done.stdout.splitlines()[-1] == "['counting', 'dice', 'follows', 'loss-spread', 'markuplm', 'top-down']"


def test_a_runs_spec_names_the_plugins_it_uses_and_a_changed_one_is_refused(tmp_path: Path) -> None:
    file = written(tmp_path, SCORE)
    plugins.load([file, EXAMPLES / "my_algorithm.py"])
    assert plugins.used_by({"score": "taylor", "algorithm": "isp"}) == {}
    spec = {"score": "loss-spread", **plugins.used_by({"score": "loss-spread"})}
    ranks = {"score": "ranks", "score_options": {"members": "magnitude, loss-spread"}}
    assert plugins.used_by(ranks) == {"plugins": spec["plugins"]}
    assert [p["source"] for p in spec["plugins"]] == [str(file)]
    assert plugins.without(spec) == {"score": "loss-spread"}
    forget()
    written(tmp_path, SCORE + "# another\n")
    with pytest.raises(OptionError, match=r"mine\.py has changed since this run was written down"):
        plugins.require(spec["plugins"])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::headviz.plugins.PluginWarning")
def test_the_dashboard_offers_a_plugins_task_and_runs_its_analysis_on_a_model_of_its_family(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    testing = pytest.importorskip("streamlit.testing.v1")
    file = written(tmp_path, TASK + FAMILY + ANALYSIS)
    plugins.load([file])
    model = tiny_folder(tmp_path / "model", "markuplm")
    data = folders(tmp_path / "real")["data"]
    forget()
    files = os.pathsep.join([str(file), str(written(tmp_path, "x = 1 / 0\n", "broken.py"))])
    for name, value in ((plugins.FILES, files), ("HEADVIZ_WARM", "0"), ("HEADVIZ_ROOTS", str(tmp_path))):
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(ROOT)
    app = testing.AppTest.from_file(str(ROOT / "app.py"), default_timeout=120)
    address = {"model": str(model), "task": "follows", "data": data, "analysis": "counting", "device": "cpu"}
    for name, value in address.items():
        app.query_params[name] = value
    app.switch_page("pages/data.py").run()
    assert not app.exception
    assert [w.value for w in app.warning if "broken.py, line 1 is broken" in w.value.replace("\\", "")]
    assert "Does it follow? (follows)" in next(box for box in app.selectbox if box.label == "Task").options
    app.switch_page("pages/analyses.py").run()
    next(b for b in app.button if b.key == "run_counting").click().run()
    assert not app.exception
    assert not app.error
    assert any("It has 12 heads." in str(m.value).replace("\\", "") for m in app.markdown)


DOOR = """
import sys
from headviz.plugins import Command, Page, Section

def add_arguments(parser):
    parser.add_argument("--times", type=int, default=2)

def run(args):
    return {"said": "hello " * args.times}

def show(result):
    return result["said"]

def draw():
    import streamlit as st
    st.markdown("drawn by a plugin")

def summary(state):
    return {"greeting": len(state.records)}

def report(summary):
    return ("greeting",), [(summary["greeting"],)], "A greeting."

COMMANDS = [Command("greet", "says hello", __name__, after="run")]
PAGES = [Page("greeting", "Greeting", draw, after="runs", without_data=True)]
SECTIONS = [Section("greeting", "Greeting", summary, report)]
"""


@pytest.mark.slow
def test_commands_pages_and_sections_come_through_the_door(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from headviz.cli import COMMANDS
    from headviz.pruning.baselines import SECTIONS
    from headviz.ui.shell.view import PAGES
    from support.page import switch

    file = written(tmp_path, DOOR)
    assert main(["greet", "--plugin", str(file), "--times", "3", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"said": "hello hello hello "}
    names = list(COMMANDS)
    assert names[names.index("run") + 1] == "greet"
    assert list(PAGES)[list(PAGES).index("runs") + 1] == "greeting"
    assert "greeting" in SECTIONS
    testing = pytest.importorskip("streamlit.testing.v1")
    monkeypatch.setenv("HEADVIZ_WARM", "0")
    monkeypatch.chdir(ROOT)
    app = switch(testing.AppTest.from_file(str(ROOT / "app.py"), default_timeout=120), "greeting").run()
    assert not app.exception
    assert "drawn by a plugin" in [m.value for m in app.markdown]
