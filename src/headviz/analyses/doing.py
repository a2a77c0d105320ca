"""What each analysis of the table does with its bench: read the options, load what it needs, call the function."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import OptionError, unknown_choice
from ..progress import part
from .bench import Bench

if TYPE_CHECKING:
    from ..evaluation.evaluator import Evaluator
    from ..models.classifier import Classifier

ORACLE = "oracle"  # single-head ablation on the reported data itself
ORACLE_NAME = "oracle (ablation)"
FRESH, MASKED = "fresh-head", "masked-lm"  # where a pre-trained model's F comes from
STATISTICS = ("spearman", "kendall", "pearson")


def ablation(bench: Bench) -> Any:
    from .ablation import ablate

    return ablate(
        bench.evaluator, base=bench.mask(), metric=bench.option("metric"), progress=bench.progress,
        cancel=bench.cancel,
    )  # fmt: skip


def by_slice(bench: Bench) -> Any:
    from .by_slice import by_slice

    return by_slice(
        bench.evaluator, base=bench.mask(), metric=bench.option("metric"), progress=bench.progress,
        cancel=bench.cancel,
    )  # fmt: skip


def all_but_one(bench: Bench) -> Any:
    from .all_but_one import all_but_one

    select = bench.option("select")
    other = bench.on(bench.sample()) if select == "other" else None
    return all_but_one(
        bench.evaluator, select, other, metric=bench.option("metric"), progress=bench.progress, cancel=bench.cancel
    )  # fmt: skip


def cross(bench: Bench) -> Any:
    from .cross_dataset import cross_dataset

    return cross_dataset(
        bench.evaluator, bench.on(bench.second()), metric=bench.option("metric"), progress=bench.progress,
        cancel=bench.cancel,
    )  # fmt: skip


def curves(bench: Bench) -> Any:
    from .ablation import ablate
    from .pruning_curve import check_steps, pruning_curves

    steps = {"step": bench.option("step"), "until": bench.option("until")}
    keep = bench.option("keep-per-layer")
    check_steps(**steps, keep_per_layer=keep, heads=bench.clf.num_heads)
    names = [name.strip() for name in bench.option("scores").split(",") if name.strip()]
    for name in names:
        check_score(name)
    orders = {}
    for name in names:
        if name == ORACLE:
            orders[ORACLE_NAME] = ablate(
                bench.evaluator, metric=bench.option("metric"), progress=part(bench.progress, 0, 2), cancel=bench.cancel
            ).values  # fmt: skip
        else:
            orders[name] = bench.score(bench.clf, name, bench.sample())
    return pruning_curves(
        bench.evaluator,
        orders,
        **steps,
        keep_per_layer=keep,
        metric=bench.option("metric"),
        progress=part(bench.progress, 1, 2) if ORACLE in names else bench.progress,
        cancel=bench.cancel,
    )


def stacks(bench: Bench) -> Any:
    from .stacks import stack_report

    select = bench.option("select")
    some = bench.sample()
    score = bench.option("score")
    return stack_report(
        bench.evaluator, score, bench.score(bench.clf, score, some), bench.on(some) if select == "other" else None,
        step=bench.option("step"), progress=bench.progress, cancel=bench.cancel,
    )  # fmt: skip


def speed(bench: Bench) -> Any:
    from .speed import speed

    batches = bench.option("batches")
    try:
        sizes = [int(part) for part in batches.split(",")]
    except ValueError:
        sizes = []
    if not sizes or min(sizes) < 1:
        raise OptionError(f"'{batches}' is not a list of batch sizes, such as 1,4,16,64.")
    mask = bench.mask()
    if mask is None:
        share, present = bench.option("remove"), bench.clf.present
        if not 0 < share < 1:
            raise OptionError(f"--remove takes a share between 0 and 1, not {share}.")
        mask = present.without_random(max(0, round(share * present.size) - len(present.off)))
    return speed(
        bench.clf, mask, batches=sizes, length=bench.option("length"), repeats=bench.option("repeats"),
        progress=bench.progress, cancel=bench.cancel,
    )  # fmt: skip


def dynamics(bench: Bench) -> Any:
    from .ablation import ablate
    from .dynamics import dynamics

    score = bench.option("score")
    check_score(score)

    def scorer(evaluator: Evaluator) -> Any:
        if score == ORACLE:
            return ablate(evaluator, cancel=bench.cancel).values
        return bench.score(evaluator.clf, score, bench.sample(evaluator.clf))

    return dynamics(
        bench.option("checkpoints"), bench.data, score, scorer, step=bench.option("step"),
        metric=bench.option("metric"), evaluator=bench.on, load=bench.load, progress=bench.progress,
        cancel=bench.cancel,
    )  # fmt: skip


def correlation(bench: Bench) -> Any:
    from .correlation import correlation_grids

    score, source = bench.option("score"), bench.option("source")
    check_score(score)
    if source not in (FRESH, MASKED):
        raise OptionError(unknown_choice("source", source, (FRESH, MASKED)))
    if source == MASKED and score not in (f"conductance-{s}" for s in STATISTICS):
        raise OptionError(
            f"--source masked-lm is for correlations: conductance-{', conductance-'.join(STATISTICS)}."
        )
    clf, data, base = bench.clf, bench.sample(), bench.option("base")
    if source == FRESH:
        before = [bench.load(base, fresh_labels=clf.labels, seed=s) for s in range(bench.option("heads"))]
    else:
        before = [bench.load(base, masked_lm=True)]

    def measure(model: Classifier) -> Any:
        if model is clf or source == FRESH:
            return bench.score(model, score, data)
        from .masked_place import masked_correlations

        statistic = score.removeprefix("conductance-")
        return masked_correlations(model, data, statistic, seed=bench.option("seed"), progress=bench.progress)

    return correlation_grids(
        clf, before, measure, score=score, data=f"{data.task.name} {data.split}", n=len(data),
        source=None if source == FRESH else _masked_source(), progress=bench.progress, cancel=bench.cancel,
    )  # fmt: skip


def _masked_source() -> str:
    from .masked_place import SOURCE

    return SOURCE


def scatter(bench: Bench) -> Any:
    from ..attribution.conductance import conductance
    from ..heads import HeadId
    from .scatter import scatter

    head = HeadId.parse(bench.option("head"))
    maps = conductance(
        bench.clf, bench.option("text"), bench.option("text-pair"), target=bench.option("target")
    )
    return scatter(maps, head, bench.option("coefficient"))


def harmful(bench: Bench) -> Any:
    from .harmful import harmful

    return harmful(ablation(bench))


def redundant(bench: Bench) -> Any:
    from .redundant import redundant

    return redundant(
        bench.evaluator, metric=bench.option("metric"), seconds=bench.option("seconds"), progress=bench.progress,
        cancel=bench.cancel,
    )  # fmt: skip


def check_score(name: str) -> None:
    from ..scores import SCORES

    if name != ORACLE and name not in SCORES:
        raise OptionError(unknown_choice("score", name, [*SCORES, ORACLE]))
