"""Models for the pages."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("streamlit")

from headviz.errors import ModelError, UserError
from headviz.pruning.plan import PruningPlan
from headviz.runs import reading
from headviz.runs.files import runs_home
from headviz.runs.prepare import title_of
from headviz.runs.record import RunRecord
from headviz.runs.registry import Registry
from headviz.ui.pages.compare import sides
from headviz.ui.shell import loaders
from headviz.ui.shell.view import View

TRANSLATOR = replace(View(), model="demo-translation", task="demo-translation", device="cpu")


def test_where_classes_are_needed_a_translation_model_is_refused_in_words() -> None:
    assert loaders.model(TRANSLATOR).classes is None
    with pytest.raises(ModelError, match="is a translation model and has no classes"):
        loaders.classifier(TRANSLATOR)
    demo = replace(View(), device="cpu")
    with pytest.raises(ModelError, match="has no classes"):  # beside a classifier
        sides.other_model(demo, loaders.classifier(demo), "demo-translation")


def test_a_link_in_an_allowed_folder_does_not_lead_out_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "dev.csv").write_text("text,label\nsecret,1\n")
    root = tmp_path / "root"
    (root / "data" / "deeper").mkdir(parents=True)
    monkeypatch.setenv("HEADVIZ_ROOTS", str(root))
    monkeypatch.chdir(root)
    (root / "own.csv").write_text("text,label\nown,1\n")
    (root / "data" / "train.csv").symlink_to(root / "own.csv")
    assert loaders.confined(str(root / "data")) == root / "data"
    for link in (root / "data" / "dev.csv", root / "data" / "deeper" / "dev.csv"):
        link.symlink_to(tmp_path / "outside" / "dev.csv")
        with pytest.raises(UserError, match=r"outside the allowed folders, 'dev\.csv'"):
            loaders.confined(str(root / "data"))
        with pytest.raises(UserError, match="outside the allowed folders"):
            loaders.confined(str(link))
        link.unlink()


def test_a_refusal_does_not_name_the_servers_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADVIZ_ROOTS", str(tmp_path / "root"))
    with pytest.raises(UserError) as refused:
        loaders.confined("/etc")
    assert str(tmp_path) not in str(refused.value)
    assert str(Path.cwd()) not in str(refused.value)


def test_the_command_that_a_refusal_names_allows_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other, root = tmp_path / "a folder's", tmp_path / "root"
    other.mkdir()
    monkeypatch.setenv("HEADVIZ_ROOTS", str(root))
    with pytest.raises(UserError) as refused:
        loaders.confined(str(other))
    setting = str(refused.value).rpartition("start it with: ")[2].removesuffix(" headviz serve")
    shell = ["sh", "-c", f'{setting}; printf %s "$HEADVIZ_ROOTS"']
    roots = subprocess.run(shell, capture_output=True, check=True, text=True)
    monkeypatch.setenv("HEADVIZ_ROOTS", roots.stdout)
    assert loaders.confined(str(other)) == other.resolve()
    assert root.resolve() in loaders.allowed_roots()


def test_a_model_is_called_by_the_title_of_the_run_that_made_it() -> None:
    record = RunRecord("0123abcd", "finetune", {}, "minilm on mrpc, seed 0")
    Registry().add([record])
    folder = runs_home() / record.id / "results" / "model"
    assert reading.model_title(str(folder)) == "minilm on mrpc, seed 0"
    titles = {
        str(runs_home() / "ffffffff" / "model"): "ffffffff",  # of a run that is gone
        "/models/minilm-mrpc/model": "minilm-mrpc",
        "/models/minilm-mrpc/checkpoint-500": "minilm-mrpc, checkpoint-500",
        "./minilm-mrpc/": "minilm-mrpc",
        "textattack/bert-base-uncased-MNLI": "textattack/bert-base-uncased-MNLI",
    }
    assert {name: reading.model_title(name) for name in titles} == titles


def test_a_run_is_listed_with_its_models_title_and_names_the_task_once() -> None:
    made = RunRecord("0123abcd", "finetune", {}, "minilm on mrpc, seed 0")
    Registry().add([made])
    folder = str(runs_home() / made.id / "results" / "model")
    assert title_of(PruningPlan(folder, "mrpc", "one-importance")).endswith(", minilm on mrpc, seed 0")
    assert title_of(PruningPlan("/models/minilm/model", "rte", "one-importance")).endswith(", minilm on rte")
    assert title_of(PruningPlan("demo", "demo", "one-importance")).endswith(", demo")
