"""Runs in any state without a process: records, pieces done here, outcomes; and what AppTest shows of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from headviz.engine import Workplace
from headviz.runs.carrier import Carrier
from headviz.runs.files import RunFiles
from headviz.runs.registry import Registry
from headviz.runs.service import new_record

ME = "somebody"


def source(studio_folder: Path) -> dict[str, Any]:
    return {
        "model": str(studio_folder / "model"),
        "task": "custom",
        "data": str(studio_folder / "data"),
        "text_columns": ["premise", "hypothesis"],
        "label_column": "label",
        "device": "cpu",
    }


def pruning(studio_folder: Path, **changes: Any) -> dict[str, Any]:
    made = {
        **source(studio_folder),
        "algorithm": "one-importance",
        "score": "magnitude",
        "samples": 12,
        "step": 0.25,
        "until": 0.75,
        "length_filter": "none",
        "dev_limit": 24,
    }
    return {**made, **changes}


class Runs:
    """Records put into a state without a process: pieces are done here, and the outcome is written down."""

    def __init__(self) -> None:
        self.registry = Registry()

    def add(self, kind: str, spec: dict[str, Any], **about: Any) -> Any:
        record = new_record(kind, spec, **{"owner": ME, "title": f"a {kind} run", **about})
        self.registry.add([record])
        RunFiles(record.id, self.registry.folder).create()
        return record

    def claimed(self, record: Any, pieces: int | None = None, alive: bool = False) -> Carrier:
        """A run that has been at work and has done so many pieces; its worker is gone unless it shall be alive."""
        from dataclasses import replace

        from headviz.runs.process import Identity

        worker = Identity.own() if alive else replace(Identity.own(), pid=2**22 + 1, start="0")
        self.registry.take_one(record.id, "t")
        taken = self.registry.apply(record.id, "claim", claim="t", worker=worker, started=record.created)
        carrier = Carrier(self.registry, taken)
        workplace = Workplace(carrier.job, carrier.files.results)
        while (ready := carrier.ready()) and pieces != 0:
            carrier.absorb(ready[0], workplace.do(carrier.order(ready[0])))
            pieces = None if pieces is None else pieces - 1
        return carrier

    def put(self, state: str, kind: str, spec: dict[str, Any], pieces: int | None = None, **about: Any) -> str:
        record = self.add(kind, spec, **about)
        if state == "queued":
            return record.id
        carrier = self.claimed(record, pieces, state == "running")
        if state == "done":
            carrier.end()
        elif state != "running":
            event = {"cancelled": "stop", "failed": "fail", "lost": "vanish"}[state]
            error = "The disk is full. Free some space, then resume the run." if state == "failed" else ""
            self.registry.apply(record.id, event, claim="t", error=error, ended=record.created + 5)
        return record.id


def tuning(studio_folder: Path) -> dict[str, Any]:
    return {
        **source(studio_folder),
        "train_limit": 24,
        "dev_limit": 12,
        "finetune": {"epochs": 2.0, "batch": 8, "evaluate_epochs": True},
    }


def said(app: Any) -> str:
    kinds = ("title", "subheader", "markdown", "caption", "error", "warning", "info", "success")
    return "\n".join(str(e.value) for kind in kinds for e in app.get(kind)).replace("\\", "")


def button(app: Any, key: str) -> Any:
    return next((b for b in app.button if b.key == key), None)


def press(app: Any, key: str, **kept: str | bool) -> Any:
    """Click a button. AppTest sends back no open tab and no open box, so ``kept`` opens them anew."""
    for name, value in kept.items():
        app.session_state[name] = value
    return button(app, key).click().run()


def tab(app: Any, name: str, key: str = "run_tabs") -> Any:
    app.session_state[key] = name
    return app.run()


def kinds(studio_folder: Path) -> dict[str, tuple[str, dict[str, Any]]]:
    """A small run of every kind that ends in something to look at: name -> kind and spec."""
    place = source(studio_folder)
    return {
        "pruning": ("prune", pruning(studio_folder)),
        "score": ("score", {**place, "score": "fisher", "samples": 12}),
        "ablation": ("ablation", {**place, "limit": 12}),
        "fine-tuning": ("finetune", tuning(studio_folder)),
    }


def put_sweep(runs: Runs, studio_folder: Path, **about: Any) -> tuple[str, list[str]]:
    """A sweep of three finished runs: its id and theirs."""
    from headviz.runs.record import CARRIED, SWEEP

    parent = new_record(SWEEP, {}, **{"title": "a sweep", "owner": ME, "executor": CARRIED, **about})
    runs.registry.add([parent])
    ids = [
        runs.put("done", "prune", pruning(studio_folder, score=score, seeds=[seed]), parent=parent.id)
        for score, seed in (("magnitude", 0), ("random", 0), ("random", 1))
    ]
    return parent.id, ids
