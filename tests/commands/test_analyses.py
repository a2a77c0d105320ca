"""``ablate`` and ``analyse NAME``: JSON of the contract, text for people, mistakes answered in one line."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import headviz
from headviz import HeadMask
from headviz.analyses.analysis import Analysis, Option
from headviz.analyses.catalogue import ANALYSES
from headviz.cli import main
from headviz.commands.analyse import named
from headviz.display.table import Table, View
from headviz.results import Result
from support.command import call
from support.custom_files import custom, write_custom
from support.plain import evaluate
from support.tiny import tiny_folder


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("place")
    tiny_folder(folder / "model")
    for number in (1, 2):
        tiny_folder(folder / "run" / f"checkpoint-{number}", seed=number)
    write_custom(folder / "data", dev=40, train=90)
    write_custom(folder / "more", seed=1, dev=40)
    return folder


def common(place: Path, model: bool = True) -> list[str]:
    words = custom(place / "data")
    return (["--model", str(place / "model")] if model else []) + ["--device", "cpu", *words]


def test_ablate_gives_the_fields_of_the_contract(capsys: pytest.CaptureFixture[str], place: Path) -> None:
    found = call(capsys, "ablate", *common(place))
    clf = headviz.load(place / "model", device="cpu")
    data = headviz.load_task("custom", data=place / "data", text_columns=["a", "b"], label_column="y")
    full = evaluate(clf, data).metrics["accuracy"]
    off = evaluate(clf, data, HeadMask.full(3, 4).without([(1, 2)])).metrics["accuracy"]
    assert found["baseline"] == full
    assert found["values"][1][2] == pytest.approx(full - off)
    for name in ("values", "interval_low", "interval_high", "p_value", "q_value"):
        assert np.array(found[name], dtype=float).shape == (3, 4)


def test_limit_mask_and_memory_reach_the_work(capsys: pytest.CaptureFixture[str], place: Path) -> None:
    found = call(capsys, "ablate", *common(place), "--limit", "15", "--off", "0.0", "--memory", "1")
    assert found["subject"]["n"] == 15
    assert found["values"][0][0] is None
    assert found["tested"] == 11


COMMANDS = {
    "ablation": [],
    "by-slice": ["--slice-column", "sort"],
    "all-but-one": ["--samples", "30"],
    "cross-dataset": ["--other-data", "{more}"],
    "pruning-curves": ["--scores", "magnitude,oracle", "--step", "0.5", "--samples", "30"],
    "speed": ["--length", "16", "--repeats", "2", "--batches", "1,2"],
    "runtimes": ["--off", "0.1", "--batch", "2", "--length", "16"],
    "dynamics": ["--checkpoints", "{run}", "--score", "magnitude", "--step", "0.5", "--samples", "30"],
    "correlation": ["--base", "{model}", "--score", "conductance-pearson", "--heads", "2", "--samples", "6"],
    "scatter": ["--text", "a dog sleeps", "--text-pair", "a cat runs", "--head", "1.2"],
    "redundant": ["--seconds", "0.5"],
    "interactions": ["--seconds", "0.2", "--samples", "8"],
}


def words_for(name: str, place: Path) -> list[str]:
    more = [w.format(more=place / "more", run=place / "run", model=place / "model") for w in COMMANDS[name]]
    if name in ("speed", "scatter"):
        return ["--model", str(place / "model"), "--device", "cpu", *more]
    return common(place, model=name != "dynamics") + more


@pytest.mark.parametrize("name", COMMANDS)
def test_every_analysis_has_json_text_and_a_figure(
    name: str, capsys: pytest.CaptureFixture[str], place: Path, tmp_path: Path
) -> None:
    page = tmp_path / "figure.html"
    found = call(capsys, "analyse", name, *words_for(name, place), "--figure", str(page))
    assert found["analysis"] == name
    assert page.stat().st_size > 10_000
    assert f'"text":"{named()[name].title}"' in page.read_text(encoding="utf-8")
    assert main(["analyse", name, *words_for(name, place)]) == 0
    text = capsys.readouterr().out
    assert len(text.splitlines()) >= 3
    assert "None" not in text
    assert "nan" not in text


def test_every_analysis_is_called_above() -> None:
    assert set(COMMANDS) == set(named())


@dataclass(frozen=True)
class Counted(Result):
    heads: int


def test_an_analysis_from_outside_has_a_command_with_its_options(
    capsys: pytest.CaptureFixture[str], place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def shown(found: Counted) -> View:
        return View(f"{found.heads} heads.", (Table("count", ("heads",), [[found.heads]], "All of them."),))

    counting = Analysis(
        "count",
        "Count",
        "How many heads?",
        "the number of heads",
        "nobody",
        lambda given: Counted(given.option("times") * len(given.clf.present.kept)),
        lambda found: None,
        shown,
        needs=("model",),
        options=(Option("times", 1, "how often", least=1, metavar="N"),),
    )
    monkeypatch.setitem(ANALYSES, "count", counting)
    words = ["analyse", "count", "--model", str(place / "model"), "--device", "cpu", "--times", "2"]
    assert call(capsys, *words) == {"analysis": "count", "heads": 24}
    assert main(words) == 0
    assert capsys.readouterr().out.split() == ["24", "heads.", "All", "of", "them.", "heads", "24"]
