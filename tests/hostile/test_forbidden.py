"""What an ordinary user may not read or write: one line that names the place, from every command.

Root may do everything, so where the tests run as root these run once more without its rights, in a folder of its own.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from headviz.cli import main
from headviz.storage.store import Store, StoreWarning
from hostile.place import Place

ROOT = Path(__file__).resolve().parents[2]


def allowed_all() -> bool:
    """Whether the system lets this process open what is closed to everybody."""
    with tempfile.NamedTemporaryFile() as file:
        os.fchmod(file.fileno(), 0)
        return os.access(file.name, os.R_OK)


ALLOWED_ALL = allowed_all()
ordinary = pytest.mark.skipif(ALLOWED_ALL, reason="root may do everything; the last test runs this as an ordinary user")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    made = Place(tmp_path_factory.mktemp("forbidden"))
    closed = made.folder / "closed"
    shutil.copytree(made.model, closed / "model")
    shutil.copytree(made.data, closed / "data")
    for name in ("config.json", "model.safetensors", "tokenizer.json"):
        shutil.copytree(made.model, made.folder / f"no {name}")
        (made.folder / f"no {name}" / name).chmod(0)
    shutil.copytree(made.data, made.folder / "no dev")
    (made.folder / "no dev" / "dev.csv").chmod(0)
    (made.folder / "read-only").mkdir(mode=0o500)
    (made.folder / "kept.npz").write_text("somebody's own")
    (made.folder / "kept.npz").chmod(0o400)
    closed.chmod(0)
    yield made
    closed.chmod(0o700)
    (made.folder / "read-only").chmod(0o700)


TASK = "--task custom --text-columns text --label-column label"
COMMANDS = {
    "a closed folder as model": "info --model {p}/closed/model",
    "a closed folder as data": f"evaluate --model {{p}}/model --data {{p}}/closed/data {TASK}",
    "config": "info --model '{p}/no config.json'",
    "weights": "info --model '{p}/no model.safetensors'",
    "tokenizer": "conductance --model '{p}/no tokenizer.json' --text 'a dog' --out {p}/out/x.npz",
    "data file": f"evaluate --model {{p}}/model --data '{{p}}/no dev' {TASK}",
    "plugin": "info --model {p}/model --plugin '{p}/no dev/dev.csv'",
    "maps into a closed folder": "conductance --model {p}/model --text 'a dog' --out {p}/closed/x.npz",
    "maps into a read-only folder": "conductance --model {p}/model --text 'a dog' --out {p}/read-only/x.npz",
    "model into a read-only folder": "prune --model {p}/model --off 0.0 --out {p}/read-only/new",
    "model into a closed folder": "prune --model {p}/model --off 0.0 --out {p}/closed/new",
    "a training": f"finetune --model {{p}}/model --data {{p}}/data --out {{p}}/read-only/t {TASK}",
}


@ordinary
@pytest.mark.parametrize("name", COMMANDS)
def test_a_forbidden_place_is_one_line(name: str, place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    import shlex

    status = main([word.replace("{p}", str(place.folder)) for word in shlex.split(COMMANDS[name])])
    said = [line for line in capsys.readouterr().err.splitlines() if not line.startswith("headviz: note:")]
    assert (status, len(said)) == (2, 1), said
    assert "ermission denied" in said[0] or "may not" in said[0], said
    assert str(place.folder)[:40] in said[0] or "dev.csv" in said[0]  # a long path is shortened
    assert not list((place.folder / "out").iterdir())
    assert not list((place.folder / "read-only").iterdir())


@ordinary
@pytest.mark.parametrize("command", ["run list", "cache show", "info --model {p}/model"])
@pytest.mark.parametrize("home", ["closed", "read-only"])
def test_a_forbidden_home_is_one_line_or_does_not_matter(
    home: str, command: str, place: Place, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HEADVIZ_HOME", str(place.folder / home))
    status = main(command.replace("{p}", str(place.folder)).split())
    said = [line for line in capsys.readouterr().err.splitlines() if not line.startswith("headviz: note:")]
    assert status in (0, 2)
    assert len(said) == (1 if status else 0), said


@ordinary
def test_a_forbidden_cache_is_told_and_does_without(place: Place) -> None:
    import numpy as np

    for home in ("closed", "read-only"):
        with pytest.warns(StoreWarning, match="cannot be used"):
            assert not Store(place.folder / home / "store").put("maps:1", {"a": np.zeros(3)})


@pytest.mark.slow
@pytest.mark.skipif(not ALLOWED_ALL, reason="the tests run as an ordinary user already")
def test_as_an_ordinary_user(tmp_path: Path) -> None:
    if shutil.which("setpriv") is None:
        pytest.skip("this machine has no setpriv")
    tests = ["tests/hostile/test_forbidden.py", "tests/hostile/test_hostile.py::test_a_small_draw"]
    pytest_ = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--basetemp", str(tmp_path / "own")]
    command = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", "--", *pytest_, *tests]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=280)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert f"{len(COMMANDS) + 6 + 1 + 1} passed, 1 skipped" in done.stdout, done.stdout[-2000:]
