"""The options of a pruning plan on the command line, and the plan read back from them."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import fields
from typing import Any

from ..errors import OptionError
from ..pruning.algorithms import ALGORITHMS, REPAIRS
from ..pruning.options import FinetuneOptions
from ..pruning.plan import (
    BESIDE_THE_PLAN,
    INITIALISATIONS,
    KEEP_MODELS,
    LAST_STEPS,
    LENGTH_FILTERS,
    SCORE_SOURCES,
    PruningPlan,
)
from ..scores.catalogue import TO_PRUNE_BY
from .common import column
from .finetune import add_training, training_options
from .number_types import positive_int, short


def numbers(kind: Callable[[str], Any], what: str) -> Callable[[str], tuple[Any, ...]]:
    """A reader of ``a,b,c`` for argparse."""

    def read(text: str) -> tuple[Any, ...]:
        try:
            return tuple(kind(part.strip()) for part in text.split(",") if part.strip())
        except ValueError:
            raise OptionError(
                f"'{short(text)}' is not a list of {what}, such as {'0,1,2' if kind is int else '0.3,0.5'}."
            ) from None

    return read


def names(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise OptionError(f"'{short(text)}' is not a number.") from None


def _natural(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise OptionError(f"'{short(text)}' is not a whole number.") from None


def _pair(text: str) -> tuple[str, Any]:
    name, _, value = text.partition("=")
    if not name or not value:
        raise OptionError(f"'{short(text)}' is not an option of a score. Write NAME=VALUE, such as steps=16.")
    try:
        return name, json.loads(value)
    except (ValueError, RecursionError):
        return name, value


# flag -> (field of the plan, how to read it, help); the plan's own default applies where a flag is not given
PLAN: dict[str, tuple[str, Callable[[str], Any], str]] = {
    "--base": ("base", str, "pre-trained model θ0, for algorithms that retrain"),
    "--revision": ("revision", str, "branch, tag or commit of a hub model"),
    "--job": ("job", str, "what the model answers with, where its configuration or your file does not tell"),
    "--base-revision": ("base_revision", str, "the same for the base model"),
    "--data": ("data", str, "folder with local files instead of the hub's"),
    "--text-columns": ("text_columns", names, "text columns of your own file, A[,B]"),
    "--label-column": ("label_column", column, "label column of your own file"),
    "--label-order": ("label_order", names, "the task's classes in the order of the model's outputs, A,B,…"),
    "--train-limit": ("train_limit", positive_int, "examples to fine-tune on (all)"),
    "--dev-limit": ("dev_limit", positive_int, "examples to evaluate on (all)"),
    "--step": ("step", _number, "share of the heads that each step removes (0.1)"),
    "--until": ("until", _number, "sparsity to stop at (0.9)"),
    "--last-step": ("last_step", str, f"{', '.join(LAST_STEPS)}: end at --until, or after a whole step"),
    "--sparsities": ("sparsities", numbers(float, "shares"), "a list of sparsities instead of step and until"),
    "--keep-per-layer": ("keep_per_layer", _natural, "heads that every layer keeps (0)"),
    "--seeds": ("seeds", numbers(int, "whole numbers"), "one run over several seeds (0)"),
    "--samples": ("samples", positive_int, f"examples to score on, balanced over the classes ({PruningPlan.samples})"),
    "--length-filter": ("length_filter", str, f"of those examples: {', '.join(LENGTH_FILTERS)}"),
    "--repair": ("repair", str, f"mend the kept weights after removal: {', '.join(REPAIRS)}"),
    "--repair-samples": ("repair_samples", positive_int, "examples to repair on (512)"),
    "--ablation": ("ablation", str, "what stands in the place of removed heads: zero (default), mean, constant"),
    "--reference": ("reference", positive_int, "training examples on which that is measured (256)"),
    "--score-source": ("score_source", str, f"{', '.join(SCORE_SOURCES)}: score θ0 at its own task instead"),
    "--initialisation": ("initialisation", str, f"of retrained networks: {', '.join(INITIALISATIONS)}"),
    "--keep-models": ("keep_models", str, f"which trained models stay on disk: {', '.join(KEEP_MODELS)}"),
    "--stack": ("stack", str, "of a translation model: remove heads of encoder, cross or decoder only"),
    "--prefix": ("prefix", str, "of a translation model: put before every source, as T5 wants it"),
    "--languages": ("languages", names, "of a translation model that knows several: SOURCE,TARGET"),
    "--device": ("device", str, "auto (default), cpu, cuda, mps"),
}


def add_plan(parser: argparse.ArgumentParser, several: bool = False) -> None:
    """The flags of one plan; with ``several`` tasks, algorithms and scores take lists."""
    many = " (several with commas)" if several else ""
    parser.add_argument("--model", metavar="M", help="'demo', a hub id, or a folder with the fine-tuned model")
    parser.add_argument("--task", metavar="T", help=f"demo, mnli, mrpc, sst2, …, or custom{many}")
    parser.add_argument("--algorithm", metavar="NAME", help=f"{', '.join(ALGORITHMS)}{many}")
    usual = "" if several else f" (default: {TO_PRUNE_BY})"
    parser.add_argument("--score", metavar="NAME", help=f"the heads' score, such as taylor{usual}{many}")
    for flag, (field, read, text) in PLAN.items():
        parser.add_argument(flag, dest=field, type=read, metavar=flag[2:].upper(), help=text)
    parser.add_argument(
        "--score-option", type=_pair, action="append", metavar="NAME=VALUE", help="a further option of the score"
    )
    add_training(parser)
    parser.add_argument("--no-full", action="store_true", help="do not fine-tune the unpruned model as well")


def read_plan(args: argparse.Namespace, spec: dict[str, Any] | None = None, **chosen: str) -> PruningPlan:
    """The plan of these flags; ``spec`` is a plan as JSON that flags given beside it override."""
    options: dict[str, Any] = dict(spec or {})
    for name in BESIDE_THE_PLAN:
        options.pop(name, None)
    for name in ("model", "task", "algorithm", "score", *(f for f, _, _ in PLAN.values())):
        value = chosen.get(name, getattr(args, name))
        if value is not None:
            options[name] = value
    for name in ("model", "task", "algorithm"):
        if not options.get(name):
            raise OptionError(f"--{name} is needed. See: headviz run start --help")
    for name in ("task", "algorithm", "score"):
        if "," in str(options.get(name, "")):
            raise OptionError(
                f"A run has one {name}. For several, such as --{name} {options[name]}, use headviz run sweep."
            )
    if any(getattr(args, f.name, None) is not None for f in fields(FinetuneOptions)):
        found = options.get("finetune")
        recipe = _recipe(options) if found is None else FinetuneOptions.from_dict(found)
        options["finetune"] = training_options(args, recipe).to_dict()
    if args.score_option:
        options["score_options"] = dict(args.score_option)
    if args.no_full:
        options["retrain_full"] = False
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
