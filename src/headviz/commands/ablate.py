"""``headviz ablate``: what each head costs, with its uncertainty."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import headviz

from ..analyses.analysis import METRIC
from ..analyses.catalogue import ANALYSES
from ..answers.metrics import metric_title
from ..evaluation.precision import PRECISION
from ..options import Option, add_options
from ..progress import progress_bar
from ..tasks import why_undefined
from .common import (
    FIGURE,
    Shown,
    ablation_of,
    add_ablation,
    add_mask,
    add_model,
    add_task,
    check_figure,
    load_data,
    load_model,
    read_mask,
    save_figure,
    text_of,
    warn,
)

if TYPE_CHECKING:
    from ..evaluation.evaluator import Evaluator
    from ..models.classifier import Classifier
    from ..tasks import Dataset


EVALUATOR = (
    replace(PRECISION, default="float32"),  # tables are kept and tested
    Option("memory", 1024, "for kept states, in MiB", least=1, metavar="MIB"),
)
FEWER = "--limit N takes fewer examples."
OPTIONS = (*EVALUATOR, FIGURE)  # docs/options.md is made from it


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    add_task(parser)
    add_mask(parser)
    METRIC.add_to(parser)
    add_options(parser, EVALUATOR)
    add_ablation(parser)
    FIGURE.add_to(parser)


def run(args: argparse.Namespace) -> Shown:
    check_figure(args)
    data = load_data(args)
    clf = load_model(args, data)
    base = read_mask(args, clf)
    stand_in, reference = ablation_of(args)
    with progress_bar("measuring the reference", FEWER) as progress:
        evaluator = evaluator_from(args, clf, data, ablation=stand_in, reference=reference, progress=progress)
    warn_of_answers(evaluator)
    with progress_bar("ablating", FEWER) as progress:
        result = headviz.ablate(evaluator, base=base, metric=args.metric, progress=progress)
    save_figure(args, ANALYSES["ablation"].title, lambda: ANALYSES["ablation"].figure(result))
    return Shown(with_agreement(result.to_dict(), evaluator), ANALYSES["ablation"].view(result))


def show(result: Shown) -> str:
    return text_of(result.view)


def evaluator_from(args: argparse.Namespace, clf: Classifier, data: Dataset, **keywords: Any) -> Evaluator:
    options = headviz.EvaluatorOptions(budget=args.memory * 2**20, precision=args.precision)
    return headviz.evaluator_of(clf, data, options, label_order=args.label_order, **keywords)


def warn_of_answers(evaluator: Evaluator) -> None:
    """Say before the long work which texts are cut, that the model answers the same for all, or that a metric has no
    value."""
    if evaluator.cut_off:
        warn(f"of {len(evaluator.data):,} texts, {evaluator.cut_off}.")
    if evaluator.data.labels is None:
        return
    answers, names = evaluator.answers(), evaluator.data.label_names
    if constant := answers.remark(answers.full, names):
        warn(constant)
    for name in evaluator.data.task.metrics:
        if reason := why_undefined(name, answers.read_by(name, answers.full), answers.gold):
            warn(f"{metric_title(name)} has no value: {reason}")


def with_agreement(content: dict[str, Any], evaluator: Evaluator) -> dict[str, Any]:
    """The result; of an evaluation in another precision with its measured agreement with float32."""
    if evaluator.precision == "float32":
        return content
    agreement = evaluator.agreement()
    same = "" if agreement.same is None else f"the same predictions on {agreement.same} of {agreement.n} examples, "
    warn(f"{agreement.precision} against float32: {same}logits that differ by at most {agreement.largest:.3g}.")
    return content | {"agreement": agreement.to_dict()}
