"""A model and data on disk for the pages, and AppTest with the whole app around a page."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]

pytest.importorskip("streamlit")


@pytest.fixture(scope="session", autouse=True)
def scanned(scanned_once: None) -> None:
    """Every test of this folder opens pages."""


@pytest.fixture(scope="session")
def studio_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with ``model`` (12×12) and ``data``."""
    from support import studio

    folder = tmp_path_factory.mktemp("studio")
    studio.make_model(folder / "model")
    studio.make_data(folder / "data")
    return folder


@pytest.fixture(scope="session")
def small_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with a model of 3×4 heads, two checkpoints of it in ``steps``, and a translation model."""
    from support import studio

    folder = tmp_path_factory.mktemp("small")
    for place, seed in (("model", 0), ("steps/step-1", 1), ("steps/step-2", 2)):
        studio.make_model(folder / place, layers=3, heads=4, seed=seed)
    studio.make_data(folder / "data", rows=60)
    return studio.make_translation(folder)


@pytest.fixture
def address(studio_folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The query parameters that lead to the studio's model and data."""
    from support import studio

    monkeypatch.setenv("HEADVIZ_ROOTS", str(studio_folder))
    monkeypatch.setenv("HEADVIZ_WARM", "0")
    return studio.address(studio_folder)


@pytest.fixture
def small(small_folder: Path, address: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The address of the small model and its data."""
    monkeypatch.setenv("HEADVIZ_ROOTS", f"{small_folder}:{os.environ['HEADVIZ_ROOTS']}")
    return {"model": str(small_folder / "model"), "data": str(small_folder / "data"), "device": "cpu"}


@pytest.fixture
def translator(small: dict[str, str], small_folder: Path) -> dict[str, str]:
    """The address of the translation model and its data."""
    nothing = dict.fromkeys(("columns", "label", "groups"), "")
    place = {"model": str(small_folder / "translator"), "data": str(small_folder / "pairs")}
    return {**place, "task": "custom-translation", "device": "cpu", **nothing}


@pytest.fixture
def open_page(address: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Open a page by its file name, cold, at an address; computations are waited for."""
    from streamlit.testing.v1 import AppTest

    from headviz.ui.shell import jobs
    from support.page import switch

    monkeypatch.setattr(jobs, "PATIENCE", 60)
    monkeypatch.setattr(jobs, "PARTIAL_AFTER", 60)

    def run(page: str, **more: str) -> Any:
        app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=240)
        for name, value in {**address, **more}.items():
            app.query_params[name] = value
        app.session_state["recipe"] = True  # the folded code is drawn when it is opened
        return switch(app, page).run()

    return run


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> dict[str, dict[str, Any]]:
    """The grids that a page draws, by key."""
    from headviz.ui.shell import show

    grids: dict[str, dict[str, Any]] = {}
    real = show.head_grid

    def noted(key: str, present: Any, values: Any = None, **more: Any) -> None:
        grids[key] = {"values": values, **more}
        real(key, present, values, **more)

    monkeypatch.setattr(show, "head_grid", noted)
    return grids


@pytest.fixture(autouse=True)
def nothing_recorded(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """A dashboard without the recorded runs, unless a test is about them."""
    if "recorded_runs" not in request.fixturenames:
        monkeypatch.setattr("headviz.ui.shell.recorded._all", lambda: ())
        monkeypatch.setattr("headviz.ui.shell.recorded._analyses", dict)


@pytest.fixture(autouse=True)
def nothing_in_the_background(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """The first page measures no costs by itself, unless a test is about that; a thread would outlive the tests."""
    if "costs_measured" not in request.fixturenames:
        monkeypatch.setattr("headviz.ui.parts.scoring.compute_costs", lambda view: None)
    if "computed_ahead" not in request.fixturenames:
        monkeypatch.setattr("headviz.ui.parts.measure.ahead", lambda *given: None)


@pytest.fixture
def costs_measured() -> None:
    """The test is about costs that are measured in the background, and waits for them."""


@pytest.fixture
def computed_ahead() -> None:
    """The test is about what is computed ahead, and waits for it."""


@pytest.fixture
def recorded_runs() -> None:
    """The test is about recorded runs."""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of its own, and nothing that would start a worker: runs stay in the state they are put in."""
    from support.recorded_runs import ME

    monkeypatch.setenv("HEADVIZ_HOME", str(tmp_path / "home"))
    monkeypatch.setattr("headviz.runs.queue.dispatch", lambda *_, **__: None)
    monkeypatch.setattr("headviz.runs.service.dispatch", lambda *_, **__: None)
    monkeypatch.setattr("headviz.ui.shell.kept.user", lambda: ME)  # AppTest has a login of its own
    return tmp_path / "home"


@pytest.fixture
def runs(home: Path) -> Any:
    """Puts runs into any state, see ``support.recorded_runs.Runs``."""
    from support.recorded_runs import Runs

    return Runs()
