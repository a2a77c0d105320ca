"""What a pruning study found, read from its states alone: accuracies with intervals, by algorithm, score and step."""

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import t as student

from headviz.errors import RunError
from headviz.pruning import ALGORITHMS, PruningPlan, State
from headviz.pruning.job import works
from headviz.pruning.outcome import seconds
from headviz.pruning.state import BUILD
from study.demo_pruning.plans import RETRAINED, SAME, SCORES, plans

RESAMPLES = 4000


def right_answers(state: State, gold: np.ndarray, step: int) -> dict[int, np.ndarray]:
    """By seed: [n] whether each dev answer is right. Seeds that were not run are left out."""
    result = {seed: state.record(seed, step) for seed in state.plan["seeds"]}
    return {k: state.logits[r.logits].argmax(axis=1) == gold for k, r in result.items() if r is not None}


def interval(right: np.ndarray, draw: np.random.Generator) -> tuple[float, float]:
    """95 % of the mean over seeds and examples [seeds, n]: both are resampled."""
    seeds, n = right.shape
    means = np.empty(RESAMPLES)
    for i in range(RESAMPLES):
        chosen = right[draw.integers(0, seeds, seeds)]
        means[i] = chosen[:, draw.integers(0, n, n)].mean()
    low, high = np.quantile(means, [0.025, 0.975])
    return float(low), float(high)


def over_seeds_and_examples(values: np.ndarray, level: float = 0.95) -> tuple[float, float, float]:
    """Mean and interval of a table [seeds, examples] in which both are drawn from many.

    The spread of the mean is that of two crossed random effects, its degrees of freedom Satterthwaite's. With few
    seeds it is wider than resampling them says, which with three seeds covers too little.
    """
    seeds, n = values.shape
    mean = float(values.mean())
    by_seed, by_example = values.mean(axis=1), values.mean(axis=0)
    rest = values - by_seed[:, None] - by_example[None, :] + mean
    parts = [
        (n * float(by_seed.var(ddof=1)), seeds - 1),
        (seeds * float(by_example.var(ddof=1)), n - 1),
        (-float((rest**2).sum()) / ((seeds - 1) * (n - 1)), (seeds - 1) * (n - 1)),
    ]
    # a negative estimate of an effect counts as none
    total = max(sum(square for square, _ in parts), parts[0][0], parts[1][0])
    if total == 0:  # nothing differs: the rule of three over the examples
        return mean, mean - 3 / n, mean + 3 / n
    freedom = max(1.0, total**2 / sum(square**2 / df for square, df in parts))
    half = float(student.ppf((1 + level) / 2, freedom)) * (total / (seeds * n)) ** 0.5
    return mean, mean - half, mean + half


def collect(args: argparse.Namespace) -> dict[str, Any]:
    """Everything the report shows, from the states alone."""
    from headviz.evaluation.plain import class_order, gold_for
    from headviz.models.loading import load
    from headviz.tasks import load_task

    clf, dev = load(args.model, device="cpu"), load_task(args.task)
    gold = gold_for(dev, class_order(clf, dev))
    assert gold is not None
    draw = np.random.default_rng(0)
    result: dict[str, Any] = {"cells": {}, "missing": [], "seconds": {}, "full": {}, "right": {}, "n": len(dev)}
    all_plans = plans(args)
    for name, plan in all_plans.items():
        if name in SAME:
            continue
        try:
            state = State.load(args.out / name)
        except RunError:
            result["missing"].append(f"{name}: not started")
            continue
        if state.plan_digest != plan.digest:
            raise SystemExit(f"{args.out / name} holds a study with other options. Give those that it was run with.")
        if state.model_digest != clf.digest:
            raise SystemExit(
                f"{args.out / name} holds a study of other weights than '{args.model}' has now. Run it anew."
            )
        reference = state.reference.metrics["accuracy"]
        result["reference"] = reference
        result["threads"] = state.versions["threads"]
        result["finetune"] = state.finetune or result.get("finetune")
        if state.steps:
            result["seconds"][name] = seconds(state)
        lacking = missing(plan, state)
        if lacking:
            result["missing"].append(f"{name}: {lacking}")
        if plan.retrain_full and ALGORITHMS[plan.algorithm].retrains:
            result["full"] = {
                seed: r.metrics["accuracy"] for seed in plan.seeds if (r := state.record(seed, 0)) is not None
            }
        result["sparsities"] = [size / (state.num_layers * state.num_heads) for size in state.sizes]
        for step, size in enumerate(state.sizes, 1):
            answers = right_answers(state, gold, step)
            if not answers:
                continue
            result["right"][plan.algorithm, plan.score, step] = answers
            right = np.array(list(answers.values()))
            low, high = interval(right, draw)
            values = right.mean(axis=1)
            result["cells"][plan.algorithm, plan.score, step] = {
                "sparsity": size / (state.num_layers * state.num_heads),
                "mean": float(values.mean()),
                "sd": float(values.std(ddof=1)) if len(values) > 1 else None,
                "low": low,
                "high": high,
                "seeds": len(values),
            }
    for name, other in SAME.items():
        own, there = all_plans[name], all_plans[other]
        for (algorithm, score, step), cell in list(result["cells"].items()):
            if (algorithm, score) == (there.algorithm, there.score):
                result["cells"][own.algorithm, own.score, step] = cell
                result["right"][own.algorithm, own.score, step] = result["right"][algorithm, score, step]
    return result


def study_of(out: Path) -> argparse.Namespace:
    """The options that the study in this folder was run with, from the plan of one of its retraining runs."""
    for name in (f"{RETRAINED[0]}-{score}" for score in SCORES):
        try:
            plan = State.load(out / name).plan
        except RunError:
            continue
        return argparse.Namespace(
            out=out,
            model=plan["model"],
            base=plan["base"],
            task=plan["task"],
            sparsities=plan["sparsities"],
            seeds=plan["seeds"],
            samples=plan["samples"],
            examples=plan["train_limit"],
            warmup=plan["finetune"]["warmup"],
        )
    raise SystemExit(f"{out} holds no study with retraining.")


def missing(plan: PruningPlan, state: State) -> str:
    """What of a plan was not run, by sparsity and seed; full models only where they are trained."""
    full = ALGORITHMS[plan.algorithm].retrains and plan.retrain_full
    by_step: dict[int, list[int]] = {}
    for work in works(plan, state):
        wanted = work.kind == BUILD and (work.step > 0 or full)
        if wanted and state.record(work.seed, work.step) is None:
            by_step.setdefault(work.step, []).append(work.seed)
    if len(by_step) == len(state.sizes) + full and all(len(s) == len(plan.seeds) for s in by_step.values()):
        return "nothing of it was run"
    heads = state.num_layers * state.num_heads
    return "; ".join(
        f"{'all heads' if step == 0 else f'{state.sizes[step - 1] / heads:.1%} off'}, seed"
        f"{'s' if len(seeds) > 1 else ''} {', '.join(map(str, seeds))}"
        for step, seeds in sorted(by_step.items())
    )
