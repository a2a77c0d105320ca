"""The options of a pruning plan on the command line, and the plan read back from them."""

from __future__ import annotations

import argparse
from typing import Any

from ..errors import OptionError
from ..options import add_flags, from_flags
from ..pruning.algorithms import ALGORITHMS
from ..pruning.options import FinetuneOptions
from ..pruning.plan import BESIDE_THE_PLAN, PruningPlan
from .finetune import add_training, training_options

AXES = ("task", "algorithm", "score")  # of which a sweep has several


def add_plan(parser: argparse.ArgumentParser) -> None:
    """The flags of a plan. One that is not given keeps the plan's own default."""
    add_flags(parser, PruningPlan)
    add_training(parser)


def read_plan(args: argparse.Namespace, spec: dict[str, Any] | None = None, **chosen: str) -> PruningPlan:
    """The plan of these flags; ``spec`` is a plan as JSON that flags given beside it override."""
    options: dict[str, Any] = {k: v for k, v in (spec or {}).items() if k not in BESIDE_THE_PLAN}
    options |= from_flags(args, PruningPlan) | chosen
    for name in ("model", "task", "algorithm"):
        if not options.get(name):
            raise OptionError(f"--{name} is needed. See: headviz run start --help")
    for name in AXES:
        if "," in str(options.get(name, "")):
            raise OptionError(
                f"A run has one {name}. For several, such as --{name} {options[name]}, use headviz run sweep."
            )
    if from_flags(args, FinetuneOptions):
        found = options.get("finetune")
        recipe = _recipe(options) if found is None else FinetuneOptions.from_dict(found)
        options["finetune"] = training_options(args, recipe)
    only = ALGORITHMS[options["algorithm"]].only_score if options["algorithm"] in ALGORITHMS else None
    if only and "score" not in options:
        options["score"] = only
    return PruningPlan.from_options(options)


def _recipe(options: dict[str, Any]) -> FinetuneOptions | None:
    """The base model's own recipe: a flag changes one number of it, not all."""
    from ..pruning.context import base_of
    from ..pruning.finetuning import recipe_of

    base = base_of(PruningPlan.from_dict({k: v for k, v in options.items() if k != "finetune"}))
    return None if base is None else recipe_of(base)
