"""Two experiments on fine-tuned models as they are: E1, agreement before and after, and E2, heads removed in orders."""

from __future__ import annotations

import argparse
import zlib
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import headviz
from headviz.answers.metrics import metrics
from headviz.errors import RunError
from headviz.evaluation.plain import class_order, gold_for
from headviz.heads import draws, grid_values, ordered
from headviz.progress import Cancel
from headviz.pruning import PruningPlan, State
from headviz.pruning.context import Context
from headviz.pruning.outcome import summary
from study.demo_pruning.cells import interval, right_answers
from study.models import FOLDERS, LIMITS, SAMPLES, STEP, UNTIL, Cell, data_of, during, followed, model_of, size_of

# processor seconds of a cell of MiniLM on MRPC with each score: scored once, and anew at each of 10 steps
PRICES = {
    "random": (110.0, 110.0),
    "taylor": (50.0, 130.0),
    "ablation": (130.0, 530.0),
    "gates": (200.0, 1700.0),
    "shapley": (970.0, 5000.0),
    "thesis-2024": (420.0, 3400.0),
    "thesis-2024-code": (510.0, 4500.0),
}
ORDERS = {"minilm": 3, "mpnet": 10}  # random orders of a model: of MPNet there is one model
MORE_HEADS = {"ablation": 3.6, "shapley": 2.0}  # MPNet has 144 heads to try, not 72: measured; and by their number
CHEAP = 600.0  # seconds up to which scoring anew comes before the rest
AHEAD_IN = "balanced accuracy"
AGAINST = "thesis-2024"  # the score that the others are compared with besides
KEPT = ("sparsity", "heads_off", "mask", "metrics", "intervals", "deltas", "predicted", "constant", "tied")


def agreement(encoder: str, task: str, seed: int, tier: int = 0) -> Cell:
    compute = partial(agree, encoder=encoder, task=task, seed=seed)
    where = f"{encoder}-{task}-{seed}"
    return Cell(f"agree-{where}", "E1", (f"train-{where}",), tier, 800 * size_of(encoder, task), compute)


def orders(encoder: str, task: str, seed: int) -> list[Cell]:
    """Every score without and with scoring anew after each step; the others are compared with the random one."""
    where, result = f"{encoder}-{task}-{seed}", []
    for at, algorithm in enumerate(("one-importance", "iterative")):
        for choice, prices in PRICES.items():
            tier = 0 if at == 0 else 1 if prices[at] <= CHEAP else 2
            compute = partial(prune, encoder=encoder, task=task, seed=seed, algorithm=algorithm, choice=choice)
            needs = [f"train-{where}"] + ([] if choice == "random" else [f"prune-{where}-{algorithm}-random"])
            more = ORDERS[encoder] / 3 if choice == "random" else 1.0
            more *= MORE_HEADS.get(choice, 1.0) if encoder == "mpnet" else 1.0
            price = prices[at] * size_of(encoder, task) * more
            result.append(Cell(f"prune-{where}-{algorithm}-{choice}", "E2", tuple(needs), tier, price, compute))
    return result


def own_draws(encoder: str, task: str, seed: int) -> tuple[int, ...]:
    """Seeds of a model's random orders. Cells of before November 30, 2026 had 0, 1, … for every model."""
    first = 100 * (zlib.crc32(f"{encoder} {task} {seed}".encode()) % 100_000)
    return tuple(range(first, first + ORDERS[encoder]))


def broken_off(args: argparse.Namespace, cell: Cell) -> bool:
    """Whether a cell's run has some of its steps. Of random orders only all together are of use."""
    if cell.experiment != "E2" or cell.name.endswith("-random"):
        return False
    try:
        return len(State.load(args.work / "runs" / cell.name.removeprefix("prune-")).records) > 1
    except RunError:  # not begun
        return False


def agree(args: argparse.Namespace, cancel: Cancel, encoder: str, task: str, seed: int) -> dict[str, Any]:
    """Spearman of attention and attribution, head by head, before, during and after fine-tuning, on the same texts."""
    data = data_of(args, task, "train", LIMITS.get(task))
    sample = headviz.sample(data, SAMPLES, seed=seed, length_filter="quantile")
    after = headviz.load(str(model_of(args, encoder, task, seed)), device=args.device)
    before = headviz.load(str(args.encoder[encoder]), fresh_labels=data.label_names, seed=seed, device=args.device)
    grids = {
        name: headviz.score_heads(clf, sample, score="conductance-spearman", cancel=cancel).values
        for name, clf in (("before", before), ("after", after))
    }
    means = {
        name: {"signed": float(np.nanmean(g)), "absolute": float(np.nanmean(np.abs(g)))} for name, g in grids.items()
    }
    course = []
    for updates, one in during(args, after, encoder, task, seed):
        grid = headviz.score_heads(one, sample, cancel=cancel, score="conductance-spearman").values
        signed, absolute = float(np.nanmean(grid)), float(np.nanmean(np.abs(grid)))
        course.append({"updates": updates, "signed": signed, "absolute": absolute})
    return {
        "samples": len(sample),
        "source": "fresh head of the same seed",
        **means,
        "course": course,
        "grids": {name: rounded(g) for name, g in grids.items()},
        "digest": after.digest,
    }


def prune(
    args: argparse.Namespace, cancel: Cancel, encoder: str, task: str, seed: int, algorithm: str, choice: str
) -> dict[str, Any]:
    """Mask heads step by step without retraining. ``choice`` is a score or a preset of one."""
    plan = PruningPlan(
        model=str(model_of(args, encoder, task, seed)),
        task=task,
        data=str(args.data / FOLDERS[task]),
        algorithm=algorithm,
        score=choice,  # a preset is a score, too
        step=STEP,
        until=UNTIL,
        samples=SAMPLES,
        seeds=own_draws(encoder, task, seed) if choice == "random" else (seed,),
        train_limit=LIMITS.get(task),
        device=args.device,
    )
    folder = args.work / "runs" / f"{encoder}-{task}-{seed}-{algorithm}-{choice}"
    context, state = followed(plan, folder, cancel, args.as_is)
    result = summary(state)
    left = len(plan.seeds) * len(state.sizes) - len(result["steps"])
    steps = [{"seed": s["seed"], **{k: s[k] for k in KEPT}} for s in result["steps"]]
    drawn = over_ties(context, state)
    return {
        "algorithm": algorithm,
        "score": choice,
        "seed": seed,
        "samples": SAMPLES,
        "n": len(context.dev),
        "metric": context.dev.task.primary_metric,
        "full": state.reference.metrics,
        "steps": [mean_step(context.dev, *of) for of in zip(steps, drawn, strict=False)] if drawn else steps,
        "ahead_in": AHEAD_IN,
        "orders": ORDERS[encoder],
        "draws": list(own_draws(encoder, task, seed)),
        "ahead": ahead(context, state, folder.with_name(f"{folder.name[: -len(choice)]}random"), drawn),
        "digest": state.model_digest,
        **({"left": left} if left else {}),
    }


def ahead(context: Context, state: State, random: Path, drawn: Sequence[np.ndarray] = ()) -> list[dict[str, float]]:
    """By step: how far ahead of the random orders; their masks and answers come from the random run's state.

    ``drawn`` is what ``over_ties`` gives.
    """
    chance, gold, result = State.load(random), gold_for(context.dev, class_order(context.clf, context.dev)), []
    assert gold is not None
    draw = np.random.default_rng(0)
    for step, size in enumerate(state.sizes, 1):
        own = next(iter(right_answers(state, gold, step).values()), None)
        if own is None:
            break
        own = drawn[step - 1] == context.dev.gold if drawn else own
        others = np.array(list(right_answers(chance, gold, step).values()))
        result.append({"sparsity": size / (state.num_layers * state.num_heads), **lead(own, others, gold, draw)})
    return result


def over_ties(context: Context, state: State) -> list[np.ndarray]:
    """By step [orders, n]: the dev answers under ten drawn orders of the heads that tie.

    Empty where none does, and for what is scored again at each step: there each order would be a run of its own.
    """
    tables = [choice.scores for choice in state.choices if choice.scores is not None]
    if state.plan["algorithm"] != "one-importance" or not tables:
        return []
    values = np.array(tables[0], dtype=float)
    full = context.clf.full_mask
    seeds = draws(grid_values(values, full.kept), state.plan["seeds"][0])
    if len(seeds) == 1:
        return []
    evaluator = headviz.evaluator_of(context.clf, context.dev)
    orders = [ordered(values, full.kept, seed) for seed in seeds]
    return [
        np.array([evaluator.predictions(full.without(order[:size]), keep=False) for order in orders])
        for size in state.sizes
    ]


def mean_step(dev: Any, step: dict[str, Any], answers: np.ndarray) -> dict[str, Any]:
    """A step with the means over drawn orders of the heads that tie, and their range; its mask is that of one order.

    ``answers`` [orders, n]. Matthews of one class for all answers counts as 0, as in the tables.
    """
    every = [metrics(dev.task, one, dev.gold) for one in answers]
    each = [{name: 0.0 if np.isnan(value) else value for name, value in one.items()} for one in every]
    values = {name: [one[name] for one in each] for name in step["metrics"]}
    counts = {name: float((answers == at).sum(axis=1).mean()) for at, name in enumerate(dev.label_names)}
    return {
        **{key: value for key, value in step.items() if key not in ("intervals", "deltas")},
        "metrics": {name: float(np.mean(of)) for name, of in values.items()},
        "predicted": counts,
        "over_ties": {name: {"orders": len(of), "low": min(of), "high": max(of)} for name, of in values.items()},
    }


def rounded(grid: np.ndarray) -> list[list[float | None]]:
    """A table of heads as a file holds it; None where there is none."""
    return [[None if np.isnan(v) else round(float(v), 6) for v in row] for row in grid]


def lead(own: np.ndarray, others: np.ndarray, gold: np.ndarray, draw: np.random.Generator) -> dict[str, float]:
    """Balanced accuracy ahead of others [seeds, n], with its interval over their seeds and over examples.

    ``own`` is [n], or [orders, n] of heads that tie: then it is their mean, and ``ties_low`` and ``ties_high`` are the
    lowest and the highest of them.

    Balanced: the mean over the classes. In plain accuracy an order that leaves one class for all answers would be ahead
    of one under which the model still tells the classes apart.
    """
    _, which, counts = np.unique(gold, return_inverse=True, return_counts=True)
    weights = len(gold) / (len(counts) * counts[which])
    mine = np.atleast_2d(own).astype(float)
    ahead = weights * (mine.mean(axis=0) - others)
    low, high = interval(ahead, draw)
    result = {"mean": float(ahead.mean()), "low": low, "high": high}
    if len(mine) > 1:
        each = (weights * mine).mean(axis=1) - (weights * mine).mean() + ahead.mean()
        result |= {"ties_low": float(each.min()), "ties_high": float(each.max())}
    return result
