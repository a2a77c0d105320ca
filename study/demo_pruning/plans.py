"""The pruning study's plans: one for each algorithm and score."""

import argparse
import dataclasses
from itertools import product
from typing import Any

from headviz.pruning import ALGORITHMS, PruningPlan
from headviz.pruning.finetuning import recipe_of

SCORES = ("taylor", "conductance-spearman", "random")
MASKED = ("one-importance", "iterative")
RETRAINED = ("one-shot-isp", "igspp")
# random numbers do not depend on the model, so scoring it anew removes the same heads: one run serves both
SAME = {"igspp-random": "one-shot-isp-random"}


def plans(args: argparse.Namespace) -> dict[str, PruningPlan]:
    """One plan for each algorithm and score; only the first that retrains also trains the full model."""
    result = {}
    trains_full = None
    for algorithm, score in product((*MASKED, *RETRAINED), SCORES):
        retrains = ALGORITHMS[algorithm].retrains
        options: dict[str, Any] = {}
        if retrains:
            trains_full = trains_full or (algorithm, score)
            options["retrain_full"] = trains_full == (algorithm, score)
            if args.examples is not None:
                options["train_limit"] = args.examples
            recipe = recipe_of(args.base)
            if recipe is not None:
                options["finetune"] = dataclasses.replace(recipe, warmup=max(recipe.warmup, args.warmup))
        result[f"{algorithm}-{score}"] = PruningPlan(
            model=args.model,
            base=args.base if retrains else None,
            task=args.task,
            algorithm=algorithm,
            score=score,
            sparsities=tuple(args.sparsities),
            seeds=tuple(args.seeds),
            samples=args.samples,
            device="cpu",
            **options,
        )
    return result
