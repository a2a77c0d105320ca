"""Which full model a step is compared with: one rule for the page, the command line, reports and saved curves."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from typing import Any

import pytest

from headviz.cli import main
from headviz.pruning import baselines
from headviz.reports.run_report import run_csv, run_html
from headviz.runs import reading, service
from support.real_runs import folders, options

RETRAINING = {"algorithm": "igspp", "retrain_full": True}


def full(seed: int, value: float | None, **more: Any) -> dict[str, Any]:
    return {"seed": seed, "step": 0, "sparsity": 0.0, "metrics": {"accuracy": value}, **more}


def pruned(seed: int, value: float | None, delta: float = -0.5) -> dict[str, Any]:
    change = {"delta": delta, "low": delta - 0.1, "high": delta + 0.1, "p": 0.01}
    return {"seed": seed, "step": 1, "sparsity": 0.5, "metrics": {"accuracy": value}, "deltas": {"accuracy": change}}


GIVEN = full(0, 0.99, reference=True)
OWN = [full(0, 0.4, phases={"train": 1.0}), full(1, 0.6, phases={"train": 1.0})]
REPEATED = [full(0, 0.99, phases={"evaluate": 1.0}), full(1, 0.99, phases={"evaluate": 1.0})]


def test_networks_trained_anew_stand_against_the_full_one_of_their_seed():
    _, steps = baselines.named(RETRAINING, [GIVEN, *OWN], [pruned(0, 0.45), pruned(1, 0.5), pruned(0, None)])
    assert {s["against"] for s in steps} == {baselines.RETRAINED}
    deltas = [s["change"]["accuracy"]["delta"] for s in steps]
    assert deltas == [pytest.approx(0.05), pytest.approx(-0.1), None]
    assert all(s["change"]["accuracy"]["low"] is None for s in steps)  # that of the record is against θ*


def test_before_its_full_model_is_trained_a_step_has_no_change_rather_than_one_from_another_model():
    (step,) = baselines.named(RETRAINING, [GIVEN], [pruned(0, 0.45)])[1]
    assert (step["against"], step["change"]["accuracy"]["delta"]) == (baselines.RETRAINED, None)


@pytest.mark.parametrize("spec", [{"algorithm": "iterative"}, {"algorithm": "igspp", "retrain_full": False}])
def test_all_others_stand_against_the_model_as_given_with_its_paired_interval(spec):
    first = pruned(0, 0.45)
    (step,) = baselines.named(spec, [GIVEN, *REPEATED], [first])[1]
    assert step["against"] == baselines.GIVEN
    assert step["change"] == first["deltas"]


def test_an_undefined_change_has_neither_interval_nor_p():
    broken = pruned(0, None)
    broken["deltas"]["accuracy"] |= {"delta": None, "low": 0.0, "high": 0.0, "p": 1.0}  # as older versions wrote it
    (step,) = baselines.named({"algorithm": "iterative"}, [GIVEN], [broken])[1]
    assert set(step["change"]["accuracy"].values()) == {None}


@pytest.fixture(scope="module")
def retrained(tmp_path_factory: pytest.TempPathFactory) -> tuple[reading.RunView, Any]:
    """A real run of two seeds that trains anew, and the folder it was made in."""
    place = tmp_path_factory.mktemp("retrained")
    patch = pytest.MonkeyPatch()
    patch.setenv("HEADVIZ_HOME", str(place / "home"))
    patch.setenv("OMP_NUM_THREADS", "1")
    spec = options(folders(place / "real"), "one-shot-isp", step=0.5, until=0.5, seeds=[0, 1])
    run = service.start("prune", spec)
    service.wait_for(run.id, timeout=280)
    yield reading.show(run.id), place
    patch.undo()


@pytest.mark.slow
def test_every_form_of_a_real_run_names_the_same_baselines(retrained, capsys, monkeypatch):
    view, place = retrained
    monkeypatch.setenv("HEADVIZ_HOME", str(place / "home"))
    assert (view.state, view.record.error) == ("done", "")
    assert view.count == (2, 2)  # two seeds of one step; full models are no steps
    begun = replace(view, steps=())
    assert (begun.count, begun.share_done) == ((0, 2), 0.0)  # the bar says what its label says
    result = view.to_dict()
    assert [s["role"] for s in result["baseline"]] == ["given", "retrained", "retrained"]
    full_of = {s["seed"]: s["metrics"]["accuracy"] for s in result["baseline"] if s["role"] == "retrained"}
    for step in result["steps"]:
        expected = step["metrics"]["accuracy"] - full_of[step["seed"]]
        assert step["change"]["accuracy"]["delta"] == pytest.approx(expected)

    rows = list(csv.DictReader(run_csv(view).splitlines()))
    models = [baselines.NAMES[s["role"]] for s in (*result["baseline"], *result["steps"])]
    assert [r["model"] for r in rows] == models
    page = run_html(view)
    assert [page.count(f">{name}</td>") for name in dict.fromkeys(models)] == [1, 2, 2]
    assert main(["run", "save", view.record.id, "--out", str(place / "small")]) == 0
    saved = list(csv.DictReader((place / "small" / "curve.csv").open(newline="", encoding="utf-8")))
    assert sorted(r["model"] for r in saved) == sorted(models)
    assert {r["model"]: r["accuracy"] for r in saved}["unpruned model"] == rows[0]["accuracy"]
    capsys.readouterr()
    assert main(["run", "show", view.record.id]) == 0
    shown = capsys.readouterr().out
    assert shown.count("full θ0, retrained the same way  ") == 2
    assert "changes are against the full θ0 retrained the same way" in shown
    assert json.dumps(result, allow_nan=False)
