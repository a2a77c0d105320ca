"""The papers' other experiments: E3, networks pruned and retrained; M, Michel et al.'s tables."""

from __future__ import annotations

import argparse
from functools import partial
from typing import Any

import numpy as np

import headviz
from findings_models import (
    AGREED,
    FOLDERS,
    LIMITS,
    SAMPLES,
    STEP,
    Cell,
    data_of,
    during,
    followed,
    model_of,
    size_of,
    training,
)
from findings_orders import KEPT, rounded
from headviz.progress import Cancel
from headviz.pruning import PruningPlan
from headviz.pruning.options import FinetuneOptions
from headviz.pruning.outcome import summary
from headviz.pruning.tickets.winning import tickets

RETRAINED = ("one-shot-isp", "igspf", "igspp", "isp")
RETRAINED_SCORES = ("taylor", "random", "thesis-2024")
SPARSITIES = (0.2, 0.3, 0.5, 0.7, 0.8, 0.9)
SEEDS = (0, 1, 2)
KEPT_SHARE = 0.95  # of what the unpruned checkpoint has above one class for all


def retraining(encoder: str, task: str) -> list[Cell]:
    """Every algorithm with every score; a cell has all seeds and sparsities, and the full model of every seed."""
    where = f"{encoder}-{task}-0"
    found = []
    for algorithm in RETRAINED:
        for choice in RETRAINED_SCORES:
            trainings = len(SEEDS) * (len(SPARSITIES) + 1)
            price = 0.8 * training(encoder, task, 0).price * trainings
            compute = partial(retrain, encoder=encoder, task=task, algorithm=algorithm, choice=choice)
            found.append(Cell(f"retrain-{where}-{algorithm}-{choice}", "E3", (f"train-{where}",), 1, price, compute))
    return found


def heads_one_by_one(encoder: str, task: str, seed: int) -> Cell:
    compute = partial(michel, encoder=encoder, task=task, seed=seed)
    where = f"{encoder}-{task}-{seed}"
    return Cell(f"michel-{where}", "M", (f"train-{where}",), 0, 400 * size_of(encoder, task), compute)


def retrain(
    args: argparse.Namespace, cancel: Cancel, encoder: str, task: str, algorithm: str, choice: str
) -> dict[str, Any]:
    """The pre-trained encoder without heads, fine-tuned: at every sparsity, with every seed."""
    plan = PruningPlan(
        model=str(model_of(args, encoder, task, 0)),
        base=str(args.encoder[encoder]),
        task=task,
        data=str(args.data / FOLDERS[task]),
        algorithm=algorithm,
        score=choice,
        sparsities=SPARSITIES,
        samples=SAMPLES,
        seeds=SEEDS,
        train_limit=LIMITS.get(task),
        finetune=FinetuneOptions(epochs=3, batch=32, learning_rate=5e-5, warmup=0.1),
        device="cpu",
    )
    folder = args.work / "runs" / f"{encoder}-{task}-0-{algorithm}-{choice}"
    context, state = followed(plan, folder, cancel)
    return {
        "algorithm": algorithm,
        "score": choice,
        "samples": SAMPLES,
        "n": len(context.dev),
        "metric": context.dev.task.primary_metric,
        "steps": [{"seed": s["seed"], **{k: s[k] for k in KEPT}} for s in summary(state)["steps"]],
        "tickets": [t.to_dict() for t in tickets(state)],
        "digest": state.model_digest,
    }


def michel(args: argparse.Namespace, cancel: Cancel, encoder: str, task: str, seed: int) -> dict[str, Any]:
    """One head off at a time, one head on at a time in a layer, and how many heads each checkpoint can spare."""
    clf, dev = headviz.load(str(model_of(args, encoder, task, seed)), device="cpu"), data_of(args, task, "dev")
    evaluator = headviz.evaluator_of(clf, dev)
    single = headviz.ablate(evaluator, cancel=cancel)
    sample = headviz.sample(data_of(args, task, "train", LIMITS.get(task)), SAMPLES, seed=seed)
    alone = headviz.all_but_one(evaluator, "other", headviz.evaluator_of(clf, sample), cancel=cancel)
    return {
        "n": len(dev),
        "metric": dev.task.primary_metric,
        "full": single.baseline,
        "heads": int(np.isfinite(single.values).sum()),
        "cost": rounded(single.values),  # positive: worse without the head
        "p_value": rounded(single.p_value),
        "one head is left": [
            {"layer": r.layer, "head": r.head} | dict(zip(("delta", "low", "high"), ends, strict=True))
            for r in alone.rows
            for ends in rounded(np.array([[r.delta, r.interval_low, r.interval_high]]))
        ],
        "spared": _spared(args, cancel, clf, evaluator, sample, encoder, task, seed) if task in AGREED else [],
        "digest": clf.digest,
    }


def _spared(
    args: argparse.Namespace, cancel: Cancel, clf: Any, whole: Any, sample: Any, encoder: str, task: str, seed: int
) -> list[dict[str, float | None]]:
    """By checkpoint, the end last: the largest share off, in its own Taylor order, that leaves ``KEPT_SHARE``."""
    found: list[dict[str, float | None]] = []
    for updates, one in (*during(args, clf, encoder, task, seed), (None, clf)):
        evaluator = whole if one is clf else headviz.evaluator_of(one, whole.data)
        table = headviz.score_heads(one, sample, "taylor", cancel=cancel).values
        curves = headviz.pruning_curves(evaluator, {"taylor": table}, step=STEP, cancel=cancel)
        base, floor = curves.baseline, curves.constant
        kept = [
            p.sparsity
            for p in curves.curves[0].points
            if floor is not None and base > floor and (p.value - floor) / (base - floor) >= KEPT_SHARE
        ]
        found.append(
            {"updates": updates, "metric": rounded(np.array([[base]]))[0][0], "spared": max(kept, default=None)}
        )
    return found
