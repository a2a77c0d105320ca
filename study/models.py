"""The study's cells, the fine-tuned models that they are about, and the training of these."""

from __future__ import annotations

import argparse
import copy
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from safetensors.torch import load_file

import headviz
from headviz.errors import RunError
from headviz.models.classifier import Classifier
from headviz.progress import Cancel
from headviz.pruning import PruningPlan, State
from headviz.pruning.check import start
from headviz.pruning.context import Context, open_context
from headviz.pruning.finetuning import fine_tune
from headviz.pruning.job import run_plan
from headviz.pruning.options import FinetuneOptions
from headviz.storage.writing import replace_file

FOLDERS = {"mrpc": "MRPC", "sst2": "SST-2", "rte": "RTE", "cola": "CoLA", "wnli": "WNLI", "mnli": "MNLI"}
LIMITS = {"sst2": 16_000}  # training examples; the others are used whole
EPOCHS, BATCH = 3, 32
STEP, UNTIL, SAMPLES = 7 / 72, 0.98, 300  # 14 heads a step of 144, 7 of 72
AGREED = ("mrpc", "sst2", "cola")  # the tasks of the agreement before and after
CHECKPOINTS = 5
RESULTS = Path(__file__).resolve().parent / "results"


@dataclass(frozen=True)
class Cell:
    """One result: its name, the experiment, what it needs first, and rough processor seconds on a common machine."""

    name: str
    experiment: str
    needs: tuple[str, ...]
    tier: int  # lower ones of all models come first
    price: float
    compute: Callable[[argparse.Namespace, Cancel], dict[str, Any]]


def size_of(encoder: str, task: str) -> float:
    """How long its texts and its encoder take, against MiniLM on MRPC; measured on two of the cells."""
    return (7.0 if encoder == "mpnet" else 1.0) * {
        "sst2": 0.35,
        "cola": 0.27,
        "wnli": 0.5,
        "rte": 1.3,
        "mnli": 0.7,
    }.get(task, 1.0)


def training(encoder: str, task: str, seed: int, tier: int = 0) -> Cell:
    seconds = {"sst2": 660.0, "cola": 330.0, "rte": 610.0, "wnli": 60.0, "mnli": 800.0}.get(task, 430.0)
    price = seconds * (6.3 if encoder == "mpnet" else 1.0)
    learn = partial(train, encoder=encoder, task=task, seed=seed)
    return Cell(f"train-{encoder}-{task}-{seed}", "training", (), tier, price, learn)


def recipe(checkpoint_steps: int | None = None) -> FinetuneOptions:
    """How every network of the study is trained; where checkpoints are written changes no weight."""
    return FinetuneOptions(
        epochs=EPOCHS, batch=BATCH, learning_rate=5e-5, warmup=0.1, checkpoint_steps=checkpoint_steps
    )


def train(args: argparse.Namespace, cancel: Cancel, encoder: str, task: str, seed: int) -> dict[str, Any]:
    """Fine-tune a whole encoder; save it, and for the agreement its checkpoints."""
    data, dev = data_of(args, task, "train", LIMITS.get(task)), data_of(args, task, "dev")
    every = max(1, EPOCHS * -(-len(data) // BATCH) // CHECKPOINTS)
    options = recipe(every)
    fresh = headviz.load(str(args.encoder[encoder]), fresh_labels=data.label_names, seed=seed, device=args.device)
    folder = args.work / "training" / f"{encoder}-{task}-{seed}"
    kept = checkpoints_of(args, encoder, task, seed)

    def keep(done: int, total: int) -> None:
        """Training keeps its last two checkpoints; the agreement needs the weights of all."""
        if task in AGREED and done > every and done % every == 1:
            kept.mkdir(parents=True, exist_ok=True)
            replace_file(kept / f"{done - 1}", (folder / f"checkpoint-{done - 1}" / "model.safetensors").read_bytes())

    done = fine_tune(fresh, data, options, seed, dev=dev, folder=folder, progress=keep, cancel=cancel)
    shutil.rmtree(model_of(args, encoder, task, seed), ignore_errors=True)  # of a call that was broken off after saving
    done.classifier.save(model_of(args, encoder, task, seed))
    shutil.rmtree(folder)
    result = headviz.evaluate(done.classifier, dev)
    return {
        "metrics": result.metrics,
        "n": len(dev),
        "examples": len(data),
        "updates": done.updates,
        "options": options.to_dict(),
        "digest": done.classifier.digest,
    }


def data_of(args: argparse.Namespace, task: str, split: str, limit: int | None = None) -> Any:
    return headviz.load_task(task, split=split, data=str(args.data / FOLDERS[task]), limit=limit)


def checkpoints_of(args: argparse.Namespace, encoder: str, task: str, seed: int) -> Path:
    """Weights during training, each file named by its updates."""
    return Path(args.work / "checkpoints" / f"{encoder}-{task}-{seed}")


def model_of(args: argparse.Namespace, encoder: str, task: str, seed: int) -> Path:
    return Path(args.work / "models" / f"{encoder}-{task}-{seed}")


def during(
    args: argparse.Namespace, clf: Classifier, encoder: str, task: str, seed: int
) -> Iterator[tuple[int, Classifier]]:
    """The fine-tuned model as it was after so many updates, earliest first."""
    for path in sorted(checkpoints_of(args, encoder, task, seed).iterdir(), key=lambda p: int(p.name)):
        model = copy.deepcopy(clf.model)
        model.load_state_dict(load_file(path))
        yield int(path.name), replace(clf, model=model)


def followed(plan: PruningPlan, folder: Path, cancel: Cancel, as_is: bool = False) -> tuple[Context, State]:
    """A pruning run to its end, from where it stands; ``as_is``: only so far as it is."""
    context = open_context(plan, folder)
    if as_is:
        return context, State.load(folder)
    try:
        state = State.load(folder)
    except RunError:
        state = start(context, plan, cancel=cancel)
    for state in run_plan(plan, context, state, cancel=cancel):  # noqa: B020 - each state is the next one
        print(f"  {len(state.records)} networks, the full one too; {len(state.sizes)} sparsities", flush=True)
    return context, state
