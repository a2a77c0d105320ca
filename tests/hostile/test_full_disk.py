"""A file-size limit in the middle of what each command writes: one line that names the place, and nothing half-written.

The limit is of one process, so each command runs in a child that is forked from this one.
"""

from __future__ import annotations

import contextlib
import io
import os
import resource
import shlex
import sys
import traceback
from pathlib import Path

import pytest

from headviz.cli import main
from hostile.place import Place

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs fork and RLIMIT_FSIZE")
TASK = "--task custom --text-columns text --label-column label --data {p}/data"
# command line -> bytes that still fit into one file
COMMANDS = {
    "conductance": ("conductance --model {p}/model --text 'a dog sleeps' --out {p}/out/maps.npz", 500),
    "prune, at the settings": ("prune --model {p}/model --off 0.0 --out {p}/out/small", 100),
    "prune, at the weights": ("prune --model {p}/model --off 0.0 --out {p}/out/small", 4000),
    "prune, at the masked weights": ("prune --model {p}/model --off 0.0 --masked --out {p}/out/small", 4000),
    "distill": (f"distill --model {{p}}/model {TASK} --remove heads:0.0 --steps 2 --out {{p}}/out/students", 4000),
    "a figure": (f"ablate --model {{p}}/model {TASK} --figure {{p}}/out/figure.html", 4000),
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return Place(tmp_path_factory.mktemp("full"))


def limited(line: str, place: Place, size: int = 10**9) -> tuple[int, str]:
    """Exit status and stderr of a command that may write no file larger than this."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        said, status = io.StringIO(), 99
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
            with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
                status = main(shlex.split(line.replace("{p}", str(place.folder))))
        except BaseException:
            said.write(traceback.format_exc())
        os.write(writing, said.getvalue()[-4000:].encode())
        os._exit(status)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        text = pipe.read()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), text


def check_told(status: int, said: str, place: Place) -> None:
    told = [t for t in said.replace("\r", "\n").splitlines() if t.startswith("headviz: ") and "note:" not in t]
    assert (status, len(told)) == (2, 1), said
    assert "a limit on the size of files is reached" in told[0]
    assert str(place.out)[:40] in told[0]


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_a_full_disk_is_one_line_and_leaves_nothing(name: str, place: Place) -> None:
    line, size = COMMANDS[name]
    status, said = limited(line, place, size)
    check_told(status, said, place)
    assert not list(place.out.iterdir())
    assert not place.untouched()


@pytest.mark.slow
def test_a_disk_that_fills_within_a_checkpoint_of_a_training_costs_time_but_not_the_result(tmp_path: Path) -> None:
    place = Place(tmp_path)
    line = f"finetune --model {{p}}/model {TASK} --epochs 3 --batch 4 --seed 4 --out {{p}}/out/"
    check_told(*limited(f"{line}tuned", place, 4000), place)
    assert [p.name for p in place.out.iterdir()] == [".tuned-training"]  # from here the same command goes on
    for name in ("tuned", "whole"):
        status, said = limited(line + name, place)
        assert status == 0, said
        assert ("goes on from the checkpoints" in said) == (name == "tuned")
    weights = [(place.out / name / "model.safetensors").read_bytes() for name in ("tuned", "whole")]
    assert weights[0] == weights[1]
    assert {p.name for p in place.out.iterdir()} == {"tuned", "whole"}
