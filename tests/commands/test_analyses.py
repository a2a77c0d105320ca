"""``ablate`` by the contract, an analysis from outside; every analysis is called in docs/test_command_schema."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import headviz
from headviz import HeadMask
from headviz.analyses.analysis import Analysis, Option
from headviz.analyses.catalogue import ANALYSES
from headviz.cli import main
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
    write_custom(folder / "data", dev=40)
    return folder


def common(place: Path) -> list[str]:
    return ["--model", str(place / "model"), "--device", "cpu", *custom(place / "data")]


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
