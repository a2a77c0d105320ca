"""Two experiments over fine-tuned models: E5, masks given to the models of other tasks; B, the board of scores."""

from __future__ import annotations

import argparse
from functools import partial
from typing import Any

import numpy as np

import headviz
from headviz.analyses import grading
from headviz.analyses.analysis import SPLITS
from headviz.heads import HeadMask
from headviz.progress import Cancel
from headviz.pruning import State
from study.models import FOLDERS, Cell, data_of, model_of, size_of
from study.orders import rounded

SHARED = ("mrpc", "rte", "wnli")  # pairs of sentences, so a mask of one can be asked of another
SHARES = (0.3, 0.5)
SCORE = "taylor"  # finds the masks
RANDOM = 20  # masks of each size that they are compared with
GRADED = (
    "attattr-max",
    "conductance-max",
    "fisher",
    "gates",
    "gates-exact",
    "magnitude",
    "gim",
    "gnorm",
    "hies",
    "ranks",
    "ablation",
    "ablation-loss",
    "taylor",
    "conductance-spearman",
    "random",
)
EXAMPLES = 200  # of the dev split, half for each side
DRAWS = 1000  # that are kept


def shared(encoder: str) -> Cell:
    kinds = ("train-{}-0", "prune-{}-0-one-importance-random", f"prune-{{}}-0-one-importance-{SCORE}")
    needs = tuple(kind.format(f"{encoder}-{task}") for task in SHARED for kind in kinds)
    return Cell(f"transfer-{encoder}-all-0", "E5", needs, 0, 200 * size_of(encoder, "mrpc"), partial(give, encoder))


def board(encoder: str, task: str) -> Cell:
    compute = partial(graded, encoder, task)
    price = 3000 * SPLITS * size_of(encoder, task)
    return Cell(f"board-{encoder}-{task}-0", "B", (f"train-{encoder}-{task}-0",), 0, price, compute)


def give(encoder: str, args: argparse.Namespace, cancel: Cancel) -> dict[str, Any]:
    """Masks of each task's model on the models of all, beside random masks of the same size; nothing is retrained."""
    targets = {
        task: {
            "model": str(model_of(args, encoder, task, 0)),
            "task": task,
            "data": str(args.data / FOLDERS[task]),
            "device": args.device,
        }
        for task in SHARED
    }
    orders = {task: _masks(args, encoder, task) for task in SHARED}
    digests = {task: headviz.load(target["model"], device="cpu").digest for task, target in targets.items()}
    rows = []
    for share in SHARES:
        masks = {task: next(m for m in steps if m.sparsity >= share) for task, steps in orders.items()}
        matrix = headviz.transfer(masks, targets, random=RANDOM, cancel=cancel)
        rows.append({"off": share, "entries": [entry.to_dict() for entry in matrix.entries]})
    return {"score": SCORE, "random": RANDOM, "shares": rows, "digests": digests, "digest": digests[SHARED[0]]}


def _masks(args: argparse.Namespace, encoder: str, task: str) -> list[HeadMask]:
    """Fewer and fewer heads on, in the order of the task's own model, from the run that its cell was made of."""
    state = State.load(args.work / "runs" / f"{encoder}-{task}-0-one-importance-{SCORE}")
    return [HeadMask.from_hex(step.mask, state.num_layers, state.num_heads) for step in state.steps]


def graded(encoder: str, task: str, args: argparse.Namespace, cancel: Cancel) -> dict[str, Any]:
    """Which score's order keeps the metric longest: the areas of ``headviz grade``."""
    clf = headviz.load(str(model_of(args, encoder, task, 0)), device=args.device)
    data = data_of(args, task, "dev", EXAMPLES)
    results = grading.measure(clf, data, GRADED, cancel=cancel)  # the cache has what an earlier call measured
    grades = grading.graded(results, GRADED, None, len(data), data.task.title)
    return {
        "n": len(data),
        "grades": grades.to_dict(),
        # of any pair of scores the difference can be judged later: areas under draws of the examples, and by half
        "draws": {name: rounded(one.areas[None, : 1 + DRAWS])[0] for name, one in results.items()},
        "halves": {name: rounded(np.array(one.halves)) for name, one in results.items()},
        "digest": clf.digest,
    }
