"""A real worker killed in the middle of a learning: it goes on, to the same bits."""

from __future__ import annotations

import os
import signal
import time
from typing import Any

import pytest

import headviz
from headviz.runs import service
from headviz.runs.files import RunFiles
from headviz.runs.queue import look
from headviz.runs.record import DONE
from headviz.runs.registry import Registry
from headviz.scores.scoring import score_heads
from headviz.scores.whole import KEEP_SECONDS
from headviz.storage.store import unpack
from support.real_runs import folders, options
from support.running import done, ended, essence, until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
COLUMNS: dict[str, Any] = {"text_columns": ("text", "pair"), "label_column": "label"}


def kill(run_id: str) -> None:
    """SIGKILL to the worker, which must be at work."""
    record = look(Registry(), run_id)
    assert record.state == "running"
    assert record.worker is not None
    os.kill(record.worker.pid, signal.SIGKILL)
    ended(run_id)


def updates(run_id: str) -> int:
    """How far the learning is that is kept; 0 before it was kept."""
    result = list(RunFiles(run_id).results.glob("training/*/score.safetensors"))
    return int(unpack(result[0].read_bytes())[0]["updates"]) if result else 0


def test_a_learning_goes_on_from_what_is_kept(registry, tmp_path):
    place = folders(tmp_path / "x")
    clf = headviz.load(place["model"], device="cpu")
    data = headviz.load_task("custom", split="train", data=place["data"], **COLUMNS)
    begun = time.monotonic()
    score_heads(clf, data, "gates", steps=100, cache=False)
    steps = round(2.5 * KEEP_SECONDS / (time.monotonic() - begun) * 100)  # a learning that is kept more than once
    spec = options(place, "gates", score_options={"steps": steps}, step=0.5, until=0.5)
    run = service.start("prune", spec)
    until(lambda: updates(run.id), 120, "the first state of the learning")
    kill(run.id)
    before = updates(run.id)
    assert 0 < before < steps
    service.resume(run.id)
    until(lambda: updates(run.id) != before or look(registry, run.id).state == DONE, 120, "the next state")
    if look(registry, run.id).state != DONE:
        assert updates(run.id) > before  # not begun anew
    done(run.id, 280)
    undisturbed = service.start("prune", spec)
    done(undisturbed.id, 280)
    assert essence(run.id) == essence(undisturbed.id)
