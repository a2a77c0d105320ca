"""G: gates learned on all heads at once, against the best order of one head after the other, iterative Taylor."""

from __future__ import annotations

import argparse
from functools import partial
from typing import Any

import numpy as np

import headviz
from headviz.evaluation.plain import class_order, gold_for
from headviz.progress import Cancel
from headviz.pruning import PruningPlan, State
from headviz.pruning.outcome import summary
from study.models import FOLDERS, LIMITS, STEP, UNTIL, Cell, followed, model_of, size_of
from study.orders import AHEAD_IN, KEPT, lead

EXAMPLES = 2000  # training examples for gates and for the Taylor score alike
AGAINST = ("iterative", "taylor")
LEARNED = (("gates", "gates"), ("gates-exact", "gates-exact"))
SHIPPED = "demo"  # a model and its task, which need no folder


def gated(encoder: str, task: str) -> Cell:
    needs = () if encoder == SHIPPED else (f"train-{encoder}-{task}-0",)
    price = 5000 * size_of(encoder, task)
    compute = partial(compare, encoder=encoder, task=task)
    return Cell(f"gates-{encoder}-{task}-0", "G", needs, 0, price, compute)


def compare(args: argparse.Namespace, cancel: Cancel, encoder: str, task: str) -> dict[str, Any]:
    """The same heads off at each step, by what was learned and by iterative Taylor, on the whole dev split."""
    runs, gold = {}, None
    shipped = encoder == SHIPPED
    for algorithm, score in (AGAINST, *LEARNED):
        plan = PruningPlan(
            model=SHIPPED if shipped else str(model_of(args, encoder, task, 0)),
            task=task,
            data=None if shipped else str(args.data / FOLDERS[task]),
            algorithm=algorithm,
            score=score,
            step=STEP,
            until=UNTIL,
            samples=EXAMPLES,
            seeds=(0,),
            train_limit=LIMITS.get(task),
            device=args.device,
        )
        folder = args.work / "runs" / f"{encoder}-{task}-0-{algorithm}-{score}-{EXAMPLES}"
        context, runs[algorithm] = followed(plan, folder, cancel)
        gold = gold_for(context.dev, class_order(context.clf, context.dev))
    assert gold is not None
    against, draw = runs.pop(AGAINST[0]), np.random.default_rng(0)
    return {
        "examples": EXAMPLES,
        "against": " ".join(AGAINST),
        "n": len(gold),
        "metric": context.dev.task.primary_metric,
        "full": against.reference.metrics,
        "orders": {name: [{k: s[k] for k in KEPT} for s in summary(state)["steps"]] for name, state in runs.items()},
        "base": [{k: s[k] for k in KEPT} for s in summary(against)["steps"]],
        "ahead_in": AHEAD_IN,
        "ahead": {
            name: [_lead(state, against, step, gold, draw) for step in _steps(state)] for name, state in runs.items()
        },
        "digest": against.model_digest,
    }


def _steps(state: State) -> range:
    return range(1, len(state.sizes) + 1)


def _lead(state: State, against: State, step: int, gold: np.ndarray, draw: np.random.Generator) -> dict[str, Any]:
    """How far ahead in balanced accuracy, and beside it in plain accuracy with the interval for paired answers."""
    own, other = (_answers(s, step) for s in (state, against))
    plain = headviz.paired(gold, other, own)
    return {
        "sparsity": state.sizes[step - 1] / (state.num_layers * state.num_heads),
        **lead(own == gold, (other == gold)[None], gold, draw),
        "accuracy": {"mean": plain.difference, "low": plain.low, "high": plain.high},
    }


def _answers(state: State, step: int) -> np.ndarray:
    record = state.record(0, step)
    assert record is not None
    return np.asarray(state.logits[record.logits].argmax(axis=1))
