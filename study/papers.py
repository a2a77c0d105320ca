"""The papers' other experiments: E3, networks pruned and retrained; M and X, Michel et al.'s tables."""

from __future__ import annotations

import argparse
from functools import partial
from typing import Any

import numpy as np

import headviz
from headviz.progress import Cancel
from headviz.pruning import PruningPlan
from headviz.pruning.outcome import summary
from headviz.pruning.plan import FULL, remaining
from study.models import (
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
    recipe,
    size_of,
    training,
)
from study.orders import AHEAD_IN, KEPT, PRICES, ahead, rounded

# random numbers do not depend on the model, and at the sizes of ISP's own rounds IGSPP is ISP: one cell serves all
RETRAINED = {"one-shot-isp": ("taylor", "random", "thesis-2024"), "igspf": ("taylor", "thesis-2024")}
RETRAINED |= {"isp": RETRAINED["igspf"]}
SCORED_ANEW = ("igspf", "isp")
GATES_ON = ("minilm", "mrpc")  # retrained by gates, too: without retraining they are ahead there
ROUND, LAST = 0.3, 0.88  # the share of the remaining heads that a round of ISP removes: six rounds
THREE = (0.3, 0.5, 0.7)  # of the large encoder
SEEDS, MORE_SEEDS = range(3), range(3, 5)  # more: where three seeds are within one sd
HALVES = 2_000  # dev examples on which costs are compared, half against half
KEPT_SHARE = 0.95  # of what the unpruned checkpoint has above one class for all


def retraining(encoder: str, task: str, seed: int) -> list[Cell]:
    """Every algorithm with every score, on one seed: its own θ*, sample, order of heads, and trainings."""
    where, result = f"{encoder}-{task}-{seed}", []
    ways = RETRAINED if encoder == "minilm" else {"one-shot-isp": RETRAINED["one-shot-isp"]}
    for algorithm, choices in ways.items():
        gates = algorithm == "one-shot-isp" and (encoder, task) == GATES_ON and seed in SEEDS
        for choice in (*choices, "gates") if gates else choices:
            count = len(shares(encoder))
            scorings = count if algorithm in SCORED_ANEW else 1
            price = 0.8 * training(encoder, task, seed).price * count
            price += scorings * PRICES[choice][0] * size_of(encoder, task)
            compute = partial(retrain, encoder=encoder, task=task, seed=seed, algorithm=algorithm, choice=choice)
            needs = [f"train-{where}"] + ([] if choice == "random" else [f"retrain-{where}-one-shot-isp-random"])
            tier = 1 if algorithm == "one-shot-isp" and seed in SEEDS else 2
            result.append(Cell(f"retrain-{where}-{algorithm}-{choice}", "E3", tuple(needs), tier, price, compute))
    return sorted(result, key=lambda cell: len(cell.needs))  # what the others are compared with comes first


def shares(encoder: str) -> tuple[float, ...]:
    """The sparsities: of a small encoder those that the rounds of ISP reach."""
    if encoder != "minilm":
        return THREE
    heads = 72
    return tuple(size / heads for size in remaining(heads, ROUND, LAST, last=FULL))


def heads_one_by_one(encoder: str, task: str, seed: int) -> Cell:
    compute = partial(michel, encoder=encoder, task=task, seed=seed)
    where = f"{encoder}-{task}-{seed}"
    return Cell(f"michel-{where}", "M", (f"train-{where}",), 0, 400 * size_of(encoder, task), compute)


def crossed(encoder: str, task: str) -> list[Cell]:
    where, compute = f"{encoder}-{task}-0", partial(cross, encoder=encoder, task=task)
    price = HALVES / 408 * 130 * size_of(encoder, task)
    return [training(encoder, task, 0, 1), Cell(f"cross-{where}", "X", (f"train-{where}",), 1, price, compute)]


def cross(args: argparse.Namespace, cancel: Cancel, encoder: str, task: str) -> dict[str, Any]:
    """One head off at a time on two halves of the dev split. A second data set of this size can hardly agree better."""
    clf, dev = (
        headviz.load(str(model_of(args, encoder, task, 0)), device=args.device),
        data_of(args, task, "dev", HALVES),
    )
    halves = [headviz.evaluator_of(clf, dev.subset(range(at, len(dev), 2))) for at in (0, 1)]
    result = headviz.cross_dataset(*halves, cancel=cancel)
    return {
        "n": len(dev),
        "metric": dev.task.primary_metric,
        "full": [half.baseline for half in (result.first, result.second)],
        "heads": result.heads,
        "costs": [rounded(half.values) for half in (result.first, result.second)],
        "digest": clf.digest,
    }


def retrain(
    args: argparse.Namespace, cancel: Cancel, encoder: str, task: str, seed: int, algorithm: str, choice: str
) -> dict[str, Any]:
    """The pre-trained encoder without heads, fine-tuned, at every sparsity; θ* is the same training with all heads."""
    sizes = {"step": ROUND, "until": LAST, "last_step": FULL} if algorithm == "isp" else {"sparsities": shares(encoder)}
    plan = PruningPlan(
        model=str(model_of(args, encoder, task, seed)),
        base=str(args.encoder[encoder]),
        task=task,
        data=str(args.data / FOLDERS[task]),
        algorithm=algorithm,
        score=choice,
        samples=SAMPLES,
        seeds=(seed,),
        train_limit=LIMITS.get(task),
        finetune=recipe(),
        retrain_full=False,
        device=args.device,
        **sizes,
    )
    folder = args.work / "runs" / f"{encoder}-{task}-{seed}-{algorithm}-{choice}"
    context, state = followed(plan, folder, cancel)
    random = folder.with_name(f"{encoder}-{task}-{seed}-one-shot-isp-random")
    return {
        "algorithm": algorithm,
        "score": choice,
        "seed": seed,
        "samples": SAMPLES,
        "n": len(context.dev),
        "metric": context.dev.task.primary_metric,
        "full": state.reference.metrics,
        "steps": [{"seed": s["seed"], **{k: s[k] for k in KEPT}} for s in summary(state)["steps"]],
        "ahead_in": AHEAD_IN,
        "ahead": ahead(context, state, random),
        "digest": state.model_digest,
    }


def michel(args: argparse.Namespace, cancel: Cancel, encoder: str, task: str, seed: int) -> dict[str, Any]:
    """One head off at a time, one head on at a time in a layer, and how many heads each checkpoint can spare."""
    clf, dev = headviz.load(str(model_of(args, encoder, task, seed)), device=args.device), data_of(args, task, "dev")
    evaluator = headviz.evaluator_of(clf, dev)
    single = headviz.ablate(evaluator, cancel=cancel)
    sample = headviz.sample(
        data_of(args, task, "train", LIMITS.get(task)), SAMPLES, seed=seed, length_filter="quantile"
    )
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
    rows: list[dict[str, float | None]] = []
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
        rows.append(
            {"updates": updates, "metric": rounded(np.array([[base]]))[0][0], "spared": max(kept, default=None)}
        )
    return rows
