"""``headviz analyse NAME``: the published analyses, one line each in the table below."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..errors import OptionError, unknown_choice
from ..heads import HeadId, HeadMask
from . import analyse_arguments as arguments
from .ablate import (
    add_figure,
    check_figure,
    evaluator_for,
    save_figure,
    table_of,
    with_agreement,
)
from .analyse_arguments import FRESH, MASKED
from .analyse_text import TEXT
from .common import (
    load_data,
    load_model,
    positive_int,
    progress_bar,
    read_mask,
)

if TYPE_CHECKING:
    from ..evaluator import Evaluator
    from ..models.classifier import Classifier
    from ..tasks import Dataset

ORACLE = "oracle"  # single-head ablation on the reported data itself
STATISTICS = ("spearman", "kendall", "pearson")
Found = tuple[Any, "Evaluator | None"]  # the result, and the evaluator whose precision it depends on


def add_arguments(parser: argparse.ArgumentParser) -> None:
    names = parser.add_subparsers(dest="analysis", required=True, metavar="NAME")
    for name, (declare, _, text) in ANALYSES.items():
        sub = names.add_parser(
            name, help=text, description=f"{text[0].upper()}{text[1:]}.", allow_abbrev=False
        )
        declare(sub)
        add_figure(sub)
        sub.add_argument(
            "--json", action="store_true", default=argparse.SUPPRESS, help="print the result as JSON"
        )


def run(args: argparse.Namespace) -> dict[str, Any]:
    check_figure(args)
    result, evaluator = ANALYSES[args.analysis][1](args)
    save_figure(args, result)
    content = {"analysis": args.analysis, **result.to_dict()}
    return content if evaluator is None else with_agreement(content, evaluator)


def show(result: dict[str, Any]) -> str:
    return TEXT[result["analysis"]](result)


# what they do ---------------------------------------------------------------------------------


def _ablation(args: argparse.Namespace) -> Found:
    return table_of(args)


def _all_but_one(args: argparse.Namespace) -> Found:
    from ..analyses.all_but_one import all_but_one

    clf = load_model(args)
    evaluator = evaluator_for(args, clf, load_data(args))
    other = evaluator_for(args, clf, _sample(args, clf)) if args.select == "other" else None
    with progress_bar("all but one") as progress:
        return all_but_one(evaluator, args.select, other, metric=args.metric, progress=progress), evaluator


def _cross(args: argparse.Namespace) -> Found:
    from ..analyses.cross_dataset import cross_dataset

    clf = load_model(args)
    first = evaluator_for(args, clf, load_data(args))
    other = argparse.Namespace(**vars(args))
    other.task = args.other_task or args.task
    other.data = args.other_data or args.data
    other.split = args.other_split or args.split
    second = evaluator_for(args, clf, load_data(other))
    with progress_bar("ablating twice") as progress:
        return cross_dataset(first, second, metric=args.metric, progress=progress), first


def _curves(args: argparse.Namespace) -> Found:
    from ..analyses.ablation import ablate
    from ..analyses.pruning_curve import pruning_curves

    clf = load_model(args)
    evaluator = evaluator_for(args, clf, load_data(args))
    names = [name.strip() for name in args.scores.split(",") if name.strip()]
    for name in names:
        _known_score(name)
    orders = {}
    for name in names:
        if name == ORACLE:
            with progress_bar("ablating") as progress:
                orders["oracle (ablation)"] = ablate(evaluator, metric=args.metric, progress=progress).values
        else:
            orders[name] = _score(args, clf, name, _sample(args, clf))
    with progress_bar("pruning") as progress:
        found = pruning_curves(
            evaluator,
            orders,
            step=args.step,
            until=args.until,
            keep_per_layer=args.keep_per_layer,
            metric=args.metric,
            progress=progress,
        )
    return found, evaluator


def _speed(args: argparse.Namespace) -> Found:
    from ..analyses.speed import speed

    try:
        batches = [positive_int(part) for part in args.batches.split(",")]
    except OptionError:
        raise OptionError(f"'{args.batches}' is not a list of batch sizes, such as 1,4,16,64.") from None
    clf = load_model(args)
    if args.mask is None and args.off is None:
        if not 0 < args.remove < 1:
            raise OptionError(f"--remove takes a share between 0 and 1, not {args.remove}.")
        count = round(args.remove * clf.present.size) - len(clf.present.off)
        mask: HeadMask = clf.present.without_random(max(0, count))
    else:
        mask = read_mask(args, clf)
    with progress_bar("timing") as progress:
        return speed(
            clf, mask, batches=batches, length=args.length, repeats=args.repeats, progress=progress
        ), None


def _dynamics(args: argparse.Namespace) -> Found:
    from ..analyses.dynamics import dynamics
    from ..evaluator import EvaluatorOptions
    from ..models.loading import load

    _known_score(args.score)
    data = load_data(args)

    def scorer(evaluator: Evaluator) -> Any:
        if args.score == ORACLE:
            from ..analyses.ablation import ablate

            return ablate(evaluator).values
        return _score(args, evaluator.clf, args.score, _sample(args, evaluator.clf))

    options = EvaluatorOptions(budget=args.memory * 2**20, precision=args.precision)
    with progress_bar("checkpoints") as progress:
        found = dynamics(
            args.checkpoints,
            data,
            args.score,
            scorer,
            step=args.step,
            metric=args.metric,
            options=options,
            load=lambda place: load(place, device=args.device),
            label_order=args.label_order,
            progress=progress,
        )
    return found, None


def _correlation(args: argparse.Namespace) -> Found:
    from ..analyses.correlation import correlation_grids
    from ..models.loading import load

    _known_score(args.score)
    if args.source not in (FRESH, MASKED):
        raise OptionError(unknown_choice("source", args.source, (FRESH, MASKED)))
    clf = load_model(args)
    data = _sample(args, clf)
    if args.source == FRESH:
        before = [
            load(args.base, device=args.device, fresh_labels=clf.labels, seed=s) for s in range(args.heads)
        ]
    else:
        from ..analyses.masked_place import SOURCE

        if args.score not in (f"conductance-{s}" for s in STATISTICS):
            raise OptionError(
                f"--source masked-lm is for correlations: conductance-{', conductance-'.join(STATISTICS)}."
            )
        before = [load(args.base, device=args.device, masked_lm=True)]

    def measure(model: Classifier) -> Any:
        if model is clf or args.source == FRESH:
            return _score(args, model, args.score, data)
        from ..analyses.masked_place import masked_correlations

        with progress_bar("masked places") as progress:
            statistic = args.score.removeprefix("conductance-")
            return masked_correlations(model, data, statistic, seed=args.seed, progress=progress)

    with progress_bar("models") as progress:
        found = correlation_grids(
            clf,
            before,
            measure,
            score=args.score,
            data=f"{data.task.name} {data.split}",
            n=len(data),
            source=None if args.source == FRESH else SOURCE,
            progress=progress,
        )
    return found, None


def _scatter(args: argparse.Namespace) -> Found:
    from ..analyses.scatter import scatter
    from ..conductance_maps import conductance

    head = HeadId.parse(args.head)
    clf = load_model(args)
    return scatter(
        conductance(clf, args.text, args.text_pair, target=args.target), head, args.coefficient
    ), None


def _harmful(args: argparse.Namespace) -> Found:
    from ..analyses.harmful import harmful

    table, evaluator = table_of(args)
    return harmful(table), evaluator


def _redundant(args: argparse.Namespace) -> Found:
    from ..analyses.redundant import redundant

    clf = load_model(args)
    evaluator = evaluator_for(args, clf, load_data(args))
    with progress_bar("pairs") as progress:
        return redundant(evaluator, metric=args.metric, seconds=args.seconds, progress=progress), evaluator


# help -----------------------------------------------------------------------------------------


def _known_score(name: str) -> None:
    from ..scores import SCORES

    if name != ORACLE and name not in SCORES:
        raise OptionError(unknown_choice("score", name, [*SCORES, ORACLE]))


def _sample(args: argparse.Namespace, clf: Classifier) -> Dataset:
    """A balanced sample of the training split; ``--limit`` is about the reported data only."""
    from ..tasks import sample

    train = argparse.Namespace(**{**vars(args), "limit": None})
    return sample(load_data(train, "train"), args.samples, seed=args.seed, lengths=clf.tokenizer)


def _score(args: argparse.Namespace, clf: Classifier, name: str, data: Dataset) -> Any:
    from ..scores import score_heads

    with progress_bar(f"scoring, {name}") as progress:
        return score_heads(clf, data, score=name, label_order=args.label_order, progress=progress).values


ANALYSES: dict[str, tuple[Callable[[Any], None], Callable[[Any], Found], str]] = {
    "ablation": (arguments.masked, _ablation, "one head off at a time: its cost, with significance"),
    "all-but-one": (
        arguments.all_but_one_arguments,
        _all_but_one,
        "all heads of a layer off but the best one",
    ),
    "cross-dataset": (
        arguments.cross_arguments,
        _cross,
        "the same ablation on two data sets, and how well they agree",
    ),
    "pruning-curves": (
        arguments.curves_arguments,
        _curves,
        "metric against percentage pruned, by scores and by the oracle",
    ),
    "speed": (
        arguments.speed_arguments,
        _speed,
        "examples per second before and after really removing heads",
    ),
    "dynamics": (
        arguments.dynamics_arguments,
        _dynamics,
        "pruning curves of the checkpoints of a training run",
    ),
    "correlation": (
        arguments.correlation_arguments,
        _correlation,
        "pre-trained against fine-tuned correlation of every head",
    ),
    "scatter": (
        arguments.scatter_arguments,
        _scatter,
        "attention against attribution of one head on one example",
    ),
    "harmful": (arguments.masked, _harmful, "heads whose removal improves the metric significantly"),
    "redundant": (
        arguments.redundant_arguments,
        _redundant,
        "pairs of heads, harmless one by one but not together",
    ),
}
