"""The model card of a pruned model, and its way to the hub."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from huggingface_hub import HfApi, ModelCard

import headviz
from headviz.errors import UserError
from headviz.models.saving import Measured
from support.tiny import tiny_classifier

OFF = {0: [1], 2: [0, 3]}
CHANGE = headviz.paired([0, 1] * 50, [0, 1] * 50, [0, 1] * 48 + [1, 1, 1, 1])


def small() -> Any:
    return headviz.prune(tiny_classifier(), OFF)


@pytest.mark.slow
def test_a_card_says_what_was_removed_what_it_costs_and_how_to_load_it(tmp_path: Path) -> None:
    measured = Measured("sst2", {"accuracy": 0.98}, CHANGE.to_dict(), (2.0, 1.9, 2.1), "batches of 32, this processor")
    folder = small().save(tmp_path / "m", portable=True, measured=measured)
    card = ModelCard.load(folder / "README.md")
    assert card.data.to_dict()["pipeline_tag"] == "text-classification"
    (result,) = card.data.eval_results
    assert (result.dataset_name, result.metric_type, result.metric_value) == ("sst2", "accuracy", 0.98)
    for text in ("3 of 12", "| L2 | 1 2 |", "-0.0200", "2.00 times", "this processor", "trust_remote_code"):
        assert text in card.text


def test_a_saved_folder_keeps_what_was_measured_and_where_it_comes_from(tmp_path: Path) -> None:
    measured = Measured("sst2", {"accuracy": 0.98}, CHANGE.to_dict(), (2.0, 1.9, 2.1), "this processor")
    before = dataclasses.replace(small(), name="someone/bert-sst2")
    first = before.save(tmp_path / "first", measured=measured)
    again = headviz.load(first, device="cpu")
    card = ModelCard.load(again.save(tmp_path / "again") / "README.md")
    assert card.content == (first / "README.md").read_text(encoding="utf-8")
    assert card.data.base_model == "someone/bert-sst2"
    assert card.data.to_dict()["base_model_relation"] == "finetune"
    less = headviz.prune(again, {1: [1]})  # another model: nothing of that holds
    less_card = ModelCard.load(less.save(tmp_path / "less") / "README.md")
    assert less_card.data.eval_results is None
    assert "Not measured" in less_card.text
    assert "trust_remote_code" not in less_card.text


def test_what_has_no_value_is_left_out_of_a_card(tmp_path: Path) -> None:
    """Matthews' correlation of one gold class has none, nor has a difference of such."""
    undefined = CHANGE.to_dict() | {"low": None, "high": None}
    lines = Measured("sst2", {"matthews": None, "accuracy": 0.98}, undefined).lines()
    assert "no interval" in lines[0]
    assert not any("matthews" in line for line in lines)
    assert len(Measured("sst2", {}, undefined | {"difference": None}).lines()) == 0
    folder = small().save(tmp_path / "small", measured=Measured("sst2", {"matthews": None, "accuracy": 0.98}))
    assert [result.metric_type for result in ModelCard.load(folder / "README.md").data.eval_results] == ["accuracy"]


def test_results_of_headviz_become_a_card() -> None:
    assert Measured.of(CHANGE, "sst2").lines()
    with pytest.raises(UserError, match="prune_faster"):
        Measured.of(small().cost())


def test_a_pushed_model_is_the_saved_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clf, created = small(), []

    def uploaded(_: HfApi, repo_id: str, folder_path: Path, **__: Any) -> SimpleNamespace:
        shutil.copytree(folder_path, tmp_path / repo_id)
        return SimpleNamespace(commit_url="commit/1")

    monkeypatch.setattr(HfApi, "create_repo", lambda _, repo, **options: created.append((repo, options["private"])))
    monkeypatch.setattr(HfApi, "upload_folder", uploaded)
    assert clf.push_to_hub("someone/small", private=True) == "commit/1"
    assert created == [("someone/small", True)]
    assert headviz.load(tmp_path / "someone/small", device="cpu").digest == clf.digest


def test_a_hub_that_refuses_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise ConnectionError("no")

    monkeypatch.setattr(HfApi, "create_repo", refuse)
    with pytest.raises(UserError, match="HF_TOKEN"):
        small().push_to_hub("someone/small")
    with pytest.raises(UserError, match="name of a repository"):
        small().push_to_hub("small")
