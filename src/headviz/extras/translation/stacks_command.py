"""``headviz stacks``: the published analyses of translation models, stack by stack."""

from __future__ import annotations

import argparse

import headviz

from ... import reference
from ...analyses.catalogue import ANALYSES
from ...commands.common import (
    FIGURE,
    Shown,
    add_model,
    add_task,
    add_translation,
    check_figure,
    load_data,
    load_model,
    progress_bar,
    published_text,
    reading,
    save_figure,
    text_of,
    training_sample,
)
from ...errors import ModelError
from .stacks import stack_report, view


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    add_task(parser)
    add_translation(parser)
    for option in ANALYSES["stacks"].options:
        option.add_to(parser, 500 if option.name == "samples" else option.default)
    FIGURE.add_to(parser)


def run(args: argparse.Namespace) -> Shown:
    check_figure(args)
    clf = reading(args, load_model(args))
    if len(clf.stacks) == 1:
        raise ModelError(
            f"'{clf.name}' has one stack of heads. Use ablate, analyse all-but-one and analyse curves for it."
        )
    data = load_data(args)
    sample = training_sample(args, clf)
    evaluator = headviz.evaluator_of(clf, data, beams=args.beams)
    with progress_bar("scoring heads") as progress:
        scores = headviz.score_heads(clf, sample, args.score, progress=progress)
    other = headviz.evaluator_of(clf, sample, beams=args.beams) if args.select == "other" else None
    with progress_bar("stack by stack") as progress:
        result = stack_report(
            evaluator,
            args.score,
            scores.values,
            other,
            step=args.step,
            margin=args.margin,
            seed=args.seed,
            progress=progress,
        )
    save_figure(args, ANALYSES["stacks"].title, lambda: ANALYSES["stacks"].figure(result))
    return Shown(result.to_dict(), view(result))


def show(result: Shown) -> str:
    """The view, then the published figures, which are of another model on other data."""
    return "\n\n".join([text_of(result.view), *map(published_text, reference.by_stack(""))])
