"""Options are declared once: what is valid, and that one line gives an option its six places."""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest

from headviz.errors import OptionError
from headviz.options import Options, add_flags, from_flags, option, read_options, seed_option

ROOT = Path(__file__).resolve().parents[1]
RECIPE = re.compile(r"# src/headviz/pruning/plan\.py, in PruningPlan\n(.*?)```", re.DOTALL)

# runs in the copy, where the plan has one line more, and prints what it finds as JSON
PLACES = """
import argparse, contextlib, io, json, runpy
from streamlit.testing.v1 import AppTest
from headviz.cli import main
from headviz.commands.run import add_plan, read_plan
from headviz.errors import OptionError
from headviz.pruning import PruningPlan

def refused(make):
    try:
        make()
    except OptionError as error:
        return str(error)

def form():
    from headviz.pruning.algorithms import ALGORITHMS
    from headviz.ui.pages.runs import plans
    from headviz.ui.shell.view import View
    import streamlit as st
    st.session_state["read"] = plans.further(View(), "new", [ALGORITHMS["isp"]], ["magnitude"])["patience"]

runpy.run_path("docs/readme_tables.py")["main"]()
parser = argparse.ArgumentParser()
add_plan(parser)
flags = ["--model", "m", "--task", "demo", "--algorithm", "isp", "--score", "magnitude", "--patience", "5"]
plan = read_plan(parser.parse_args(flags))
help = io.StringIO()
with contextlib.redirect_stdout(help), contextlib.suppress(SystemExit):
    main(["run", "start", "--help"])
app = AppTest.from_function(form, default_timeout=200).run()
(field,) = [n for n in app.number_input if n.key == "new_patience"]
field.set_value(7).run()
seven = app.session_state["read"]()
app.number_input(key="new_patience").set_value(0).run()
default = PruningPlan("m", "demo", "isp", score="magnitude")
print(json.dumps({
    "flag": plan.patience,
    "form": [field.label, field.help, seven, refused(app.session_state["read"])],
    "check": [refused(lambda: PruningPlan("m", "demo", "isp", patience=value)) for value in (0, "3")],
    "json": [plan.to_dict()["patience"], PruningPlan.from_dict(plan.to_dict()) == plan, default.digest],
    "help": " ".join(help.getvalue().split()),
}))
"""


@dataclass(frozen=True)
class Training(Options):
    called: ClassVar[str] = "training option"

    rate: float = option(0.1, "learning rate", least=0, above=True, most=1)
    schedule: str = option("linear", "of the rate", ("linear", "constant"))
    seeds: tuple[int, ...] = option((0,), "one training each", each="seed")
    limit: int | None = option(None, "examples", least=1, usual="all")
    full: bool = option(True, "train the full model as well", flag="no-full")


@dataclass(frozen=True)
class Plan(Options):
    name: str = option(help="what it is called")
    training: Training = option(Training)
    more: tuple[tuple[str, Any], ...] = ()
    seed: int = seed_option()
    ties: str = option("random", "of heads", before="place")


def test_json_gives_an_equal_record_and_leaves_out_what_was_meant_before() -> None:
    plan = Plan("a", {"rate": 0.5, "seeds": [1, 2]}, {"steps": 8})  # type: ignore[arg-type]
    assert (plan.training.rate, plan.training.seeds, plan.more) == (0.5, (1, 2), (("steps", 8),))
    written = json.loads(json.dumps(plan.to_dict()))
    assert (written["more"], written["ties"]) == ({"steps": 8}, "random")
    assert Plan.from_dict(written) == plan
    older = {name: value for name, value in written.items() if name != "ties"}
    assert Plan.from_dict(older).ties == "place"
    assert Plan.from_options(older).ties == "random"
    assert "ties" not in Plan.from_dict(older).to_dict()


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({}, "The option 'name' is missing"),
        ({"name": "a", "trainig": {}}, "Did you mean 'training'"),
        ({"name": "a", "training": {"rat": 1}}, "Unknown training option 'rat'"),
        ({"name": "a", "training": {"rate": 0}}, "rate is a number above 0, at most 1, not 0"),
        ({"name": "a", "training": {"rate": float("nan")}}, "not nan"),
        ({"name": "a", "training": {"rate": True}}, "not True"),
        ({"name": "a", "training": {"schedule": "linar"}}, "Did you mean 'linear'"),
        ({"name": "a", "training": {"schedule": ["linear"]}}, "Unknown schedule"),
        ({"name": "a", "training": {"seeds": 3}}, r"seeds is a list, such as \[3\], not 3"),
        ({"name": "a", "training": {"seeds": []}}, "at least one seed"),
        ({"name": "a", "training": {"seeds": [1, 1]}}, "repeats one"),
        ({"name": "a", "training": {"seeds": [0.5]}}, "A seed is a whole number"),
        ({"name": "a", "training": {"limit": 0}}, "limit is a whole number of at least 1"),
        ({"name": "a", "training": {"full": "no"}}, "full is true or false"),
        ({"name": "a", "training": 5}, "as a JSON object"),
        ({"name": "a", "more": 5}, "values by name"),
        ({"name": "a", "seed": 2**32}, "seed is a whole number from 0 to 4,294,967,295"),
        ({"name": 3}, "name is a text"),
        ([], "as a JSON object"),
    ],
)
def test_a_wrong_value_is_refused_with_what_is_valid(given: dict[str, object], says: str) -> None:
    with pytest.raises(OptionError, match=says):
        Plan.from_options(given)


def test_a_plain_dataclass_is_checked_by_its_annotations() -> None:
    @dataclass(frozen=True)
    class Plain:
        steps: int
        share: float = 0.5

    assert read_options(Plain, {"steps": 3}, "option") == Plain(3)
    with pytest.raises(OptionError, match="steps is a whole number"):
        read_options(Plain, {"steps": "3"}, "option")


def test_flags_say_what_is_set_and_nothing_else() -> None:
    parser = argparse.ArgumentParser()
    add_flags(parser, Training)
    assert from_flags(parser.parse_args([]), Training) == {}
    words = ["--rate", "0.5", "--seeds", "1,2", "--limit", "7", "--no-full"]
    assert from_flags(parser.parse_args(words), Training) == {
        "rate": 0.5, "seeds": (1, 2), "limit": 7, "full": False
    }  # fmt: skip
    text = " ".join(parser.format_help().split())
    assert "of the rate: linear, constant (linear)" in text
    assert "examples (all)" in text
    assert "do not train the full model as well" in text


@pytest.mark.parametrize("words", [["--rate", "0"], ["--limit", "1.5"], ["--seeds", ","], ["--rate", "1" * 5000]])
def test_a_flag_with_a_wrong_value_is_refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    parser = argparse.ArgumentParser()
    add_flags(parser, Training)
    with pytest.raises(SystemExit):
        parser.parse_args(words)
    assert words[0] in capsys.readouterr().err


@pytest.mark.slow
def test_the_line_of_contributing_is_an_option_in_all_six_places(tmp_path: Path) -> None:
    """Flag, form, check, JSON, help and reference; the digest of a plan without it stays as it is."""
    from headviz.pruning import PruningPlan

    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__", "data"))
    data = Path("src", "headviz", "demo", "data")
    (tmp_path / data).symlink_to(ROOT / data)
    (tmp_path / "docs").mkdir()
    for name in ("readme_tables.py", "tables.md", "options.md", "families.md", "ways.json"):
        shutil.copy(ROOT / "docs" / name, tmp_path / "docs")
    file = tmp_path / "src/headviz/pruning/plan.py"
    text = file.read_text(encoding="utf-8")
    line = RECIPE.search((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    assert line, "CONTRIBUTING has the line"
    at = text.index("    ablation: str = ")
    file.write_text(f"{text[:at]}    {line[1]}{text[at:]}", encoding="utf-8")

    (tmp_path / "places.py").write_text(PLACES, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "src"), "HEADVIZ_HOME": str(tmp_path / "home")}
    command = [sys.executable, "places.py"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    result = json.loads(done.stdout.splitlines()[-1])
    assert result["flag"] == 5
    label, text, seven, refusal = result["form"]
    assert (label, text, seven) == ("Patience, steps", "Steps without a gain", 7)
    assert refusal == "“Patience, steps” is 0: give a whole number from 1 to 9."
    assert result["check"] == [f"patience is a whole number from 1 to 9, not {value}." for value in ("0", "'3'")]
    assert result["json"] == [5, True, PruningPlan("m", "demo", "isp", score="magnitude").digest]
    assert "--patience PATIENCE steps without a gain (3)" in result["help"]
    row = "| `patience` | `--patience` | a whole number from 1 to 9 | 3 | steps without a gain |"
    assert row in (tmp_path / "docs/options.md").read_text(encoding="utf-8")
