"""``headviz analyse NAME``: the analyses of the catalogue, each with the flags that it declares."""

from __future__ import annotations

import argparse
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import headviz

from ..analyses.analysis import METRIC, Analysis
from ..analyses.catalogue import ANALYSES, analyses_for
from ..analyses.common import cut_off_of
from ..errors import OptionError
from ..options import add_options
from ..progress import Progress, progress_bar
from .ablate import EVALUATOR, FEWER, evaluator_from, warn_of_answers, with_agreement
from .common import (
    FIGURE,
    Shown,
    ablation_of,
    add_ablation,
    add_mask,
    add_model,
    add_subcommand,
    add_task,
    check_figure,
    load_data,
    load_model,
    read_mask,
    save_figure,
    text_of,
    training_sample,
    warn,
)

if TYPE_CHECKING:
    from ..evaluation.evaluator import Evaluator
    from ..heads import HeadMask
    from ..models.base import TransformerModel
    from ..models.classifier import Classifier
    from ..models.stand_in import StandIn
    from ..tasks import Dataset


def without_own_command() -> dict[str, Analysis]:
    """The analyses that have no command of their own."""
    return {name: analysis for name, analysis in ANALYSES.items() if not analysis.command}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Of ``headviz analyse``, or of an analysis that is a command of its own."""
    command = parser.prog.rpartition(" ")[2]
    if command in ANALYSES and ANALYSES[command].command:
        declare(ANALYSES[command], parser)
        return
    names = parser.add_subparsers(dest="analysis", required=True, metavar="NAME")
    for name, analysis in without_own_command().items():
        add_subcommand(names, name, analysis.help, partial(declare, analysis))


def declare(analysis: Analysis, parser: argparse.ArgumentParser) -> None:
    """The flags for what the analysis needs: model, data, mask, its own options, a file for its figure."""
    if "model" in analysis.needs:
        add_model(parser)
    else:
        parser.add_argument("--device", default="auto", metavar="D", help="auto (default), cpu, cuda, mps")
    if "data" in analysis.needs:
        add_task(parser)
    if analysis.asks("metric"):
        METRIC.add_to(parser)
    if analysis.evaluates:
        add_options(parser, EVALUATOR)
        add_ablation(parser)
    if "mask" in analysis.needs:
        add_mask(parser)
    for option in analysis.options:
        if option.name != "metric":
            option.add_to(parser, option.default)
    FIGURE.add_to(parser)
    parser.set_defaults(analysis=analysis.name)


def run(args: argparse.Namespace) -> Shown:
    check_figure(args)
    analysis = ANALYSES[args.analysis]
    for option in analysis.options:
        option.checked(getattr(args, option.dest))
    with progress_bar(analysis.title.lower(), FEWER if hasattr(args, "limit") else "") as progress:
        request = FromArguments(args, progress)
        result = analysis.run(request)
    save_figure(args, analysis.title, lambda: analysis.figure(result))
    if request.reported_evaluator is None and (cut := cut_off_of(result)):
        warn(f"{cut}.")
    content = {"analysis": args.analysis, **result.to_dict()}
    if request.reported_evaluator is not None:
        content = with_agreement(content, request.reported_evaluator)
    return Shown(content, analysis.view(result))


def show(result: Shown) -> str:
    return text_of(result.view)


class FromArguments:
    """What an analysis works with, loaded as the arguments say."""

    cancel = None

    def __init__(self, args: argparse.Namespace, progress: Progress) -> None:
        self.args, self.progress = args, progress
        self.label_order = getattr(args, "label_order", None)  # an analysis without data has no such flag
        self.reported_evaluator: Evaluator | None = None  # of the reported data: its precision goes with the result

    @cached_property
    def clf(self) -> Classifier:
        clf = load_model(self.args)
        analysis = ANALYSES[self.args.analysis]
        fitting = analyses_for(clf.answer)
        if analysis not in fitting:
            lines = ", ".join(a.line.removeprefix("headviz ") for a in fitting)
            raise OptionError(
                f"'{analysis.name}' is not made for {clf.kind} models such as '{clf.name}'. "
                + (f"These are: {lines}." if lines else "Choose a classifier.")
            )
        return clf

    @cached_property
    def data(self) -> Dataset:
        return load_data(self.args)

    @cached_property
    def evaluator(self) -> Evaluator:
        self.reported_evaluator = self.on(self.data)
        warn_of_answers(self.reported_evaluator)
        return self.reported_evaluator

    @cached_property
    def stand_in(self) -> tuple[StandIn, Dataset | None]:
        chosen, reference = ablation_of(self.args)
        return (chosen if ANALYSES[self.args.analysis].over_draws else replace(chosen, draws=1)), reference

    def on(self, data: Dataset, clf: TransformerModel | None = None) -> Evaluator:
        model: Any = self.clf if clf is None else clf
        chosen, reference = self.stand_in
        return evaluator_from(self.args, model, data, ablation=chosen, reference=reference)

    def sample(self, clf: TransformerModel | None = None) -> Dataset:
        return training_sample(self.args, self.clf if clf is None else clf)

    def second(self) -> Dataset:
        other = argparse.Namespace(**vars(self.args))
        for name in ("task", "data", "split"):
            setattr(other, name, getattr(self.args, f"other_{name}") or getattr(self.args, name))
        return load_data(other)

    def mask(self) -> HeadMask | None:
        if self.args.mask is None and self.args.off is None:
            return None
        return read_mask(self.args, self.clf)

    def score(self, clf: TransformerModel, name: str, data: Dataset) -> Any:
        with progress_bar(f"scoring, {name}") as progress:
            return headviz.score_heads(
                clf, data, score=name, label_order=self.args.label_order, progress=progress
            ).values

    def load(self, place: Any, **options: Any) -> Classifier:
        return headviz.load(place, device=self.args.device, **options)

    def option(self, name: str) -> Any:
        return getattr(self.args, name.replace("-", "_"))
