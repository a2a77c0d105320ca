"""Module paths of version 0.1 still work, and say what they are called now."""

from __future__ import annotations

import importlib
import sys
import warnings
from operator import attrgetter

import pytest

import headviz
from headviz.compat.old_names import MOVED, NAMES
from support.loaded import loaded_by

# packages of today that have the name of a module of then -> a name that users took from it, and where it is
NOW_PACKAGES = {
    "charts": ("safe", "style"),
    "evaluation": ("Evaluation", "plain"),
    "pruning.finetune": ("fine_tune", "training"),
    "pruning.repair": ("REPAIRS", "kinds"),
    "pruning.tickets": ("Ticket", "winning"),
}


def test_every_old_path_is_the_new_module_and_is_named_in_a_warning() -> None:
    for old, new in MOVED.items():
        sys.modules.pop(f"headviz.{old}", None)
        now = importlib.import_module(f"headviz.{new}")
        with pytest.warns(DeprecationWarning, match=f"headviz.{old} is now headviz.{new};") as said:
            then = importlib.import_module(f"headviz.{old}")
        assert then is now
        assert now.__spec__ is not None
        assert now.__spec__.name == now.__name__ == f"headviz.{new}"
        assert len(said) == 1


def test_no_old_path_goes_before_its_version() -> None:
    assert headviz.__version__ < "0.3"
    assert len(MOVED) == 93


def test_every_old_name_is_found_where_it_is_now_and_is_named_in_a_warning() -> None:
    for old, place in NAMES.items():
        path, _, name = old.rpartition(".")
        where, _, there = place.partition(":")
        sys.modules.pop(f"headviz.{path}", None) if path in MOVED else None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module = importlib.import_module(f"headviz.{path}")
        with pytest.warns(DeprecationWarning, match=f"headviz.{old} is now headviz.{where}.{there};"):
            found = getattr(module, name)
        assert found is attrgetter(there)(importlib.import_module(f"headviz.{where}"))


def test_lines_of_recipes_of_then_still_run() -> None:
    """Compare and the analyses began with the first, a sweep's recipe with the second."""
    with pytest.warns(DeprecationWarning, match="evaluator_of is now headviz.evaluation.dispatch.evaluator_of"):
        from headviz.translating import evaluator_of
    assert evaluator_of is headviz.evaluator_of
    from headviz.runs import reading, sweep
    from headviz.runs.sweep_table import results

    with pytest.warns(DeprecationWarning, match="results is now headviz.runs.reading.RunView.results"):
        table = sweep.results
    assert table is reading.RunView.results
    assert callable(results)


@pytest.mark.parametrize("package", NOW_PACKAGES)
def test_names_of_a_module_that_is_a_package_now(package: str) -> None:
    name, module = NOW_PACKAGES[package]
    held = importlib.import_module(f"headviz.{package}.{module}")
    with pytest.warns(DeprecationWarning, match=f"{name} is now headviz.{package}.{module}.{name};"):
        assert getattr(importlib.import_module(f"headviz.{package}"), name) is getattr(held, name)


def test_from_import_of_an_old_name() -> None:
    with pytest.warns(DeprecationWarning, match=r"evaluate is now headviz.evaluation.dispatch.evaluate"):
        from headviz.evaluation import evaluate
    assert evaluate is headviz.evaluate


def test_what_never_was_is_not_found() -> None:
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("headviz.never_was")
    with pytest.raises(AttributeError, match="no attribute 'never_was'"):
        _ = headviz.evaluation.never_was


def test_new_names_do_not_warn() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        from headviz.charts import style
        from headviz.evaluation import plain
    assert (style.__name__, plain.__name__) == ("headviz.charts.style", "headviz.evaluation.plain")


def test_old_names_cost_nothing_until_they_are_used() -> None:
    assert loaded_by("import headviz, headviz.evaluation", "numpy", "torch") == []
