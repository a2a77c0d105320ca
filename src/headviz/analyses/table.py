"""The table of analyses, one line each: read by ``headviz analyse`` and by the dashboard's Analyses page.

An analysis is a function of a ``Bench``. The command line and the dashboard each have one bench for all of them; it
loads what an analysis asks for and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

from ..errors import OptionError, unknown_choice
from . import published
from .progress import part
from .published import PublishedTable

if TYPE_CHECKING:
    from ..evaluation import Cancel, Progress
    from ..evaluator import Evaluator
    from ..heads import HeadMask
    from ..models.classifier import Classifier
    from ..tasks import Dataset

ORACLE = "oracle"  # single-head ablation on the reported data itself
ORACLE_NAME = "oracle (ablation)"
FRESH, MASKED = "fresh-head", "masked-lm"  # where a pre-trained model's F comes from
STATISTICS = ("spearman", "kendall", "pearson")
Need = Literal["model", "data", "mask", "slices"]
Kind = Literal["text", "count", "number", "share"]


class Bench(Protocol):
    """What an analysis works with."""

    @property
    def progress(self) -> Progress | None: ...
    @property
    def cancel(self) -> Cancel | None: ...
    @property
    def clf(self) -> Classifier: ...
    @property
    def data(self) -> Dataset: ...
    @property
    def evaluator(self) -> Evaluator:
        """Of the reported data."""
        ...

    def on(self, data: Dataset, clf: Classifier | None = None) -> Evaluator:
        """Of the same model, or of ``clf``, on other data."""
        ...

    def sample(self, clf: Classifier | None = None) -> Dataset:
        """Training examples, to choose heads and to score on."""
        ...

    def second(self) -> Dataset:
        """The second data set of an analysis that compares two."""
        ...

    def mask(self) -> HeadMask | None:
        """The user's mask; None without one."""
        ...

    def score(self, clf: Classifier, name: str, data: Dataset) -> Any:
        """An L×H table of one score."""
        ...

    def load(self, place: Any, **how: Any) -> Classifier:
        """Another model: a checkpoint's folder, or the pre-trained weights."""
        ...

    def option(self, name: str) -> Any:
        """One of the analysis's inputs."""
        ...


@dataclass(frozen=True)
class Input:
    """One thing that an analysis asks beside model and data; the command line's flag is ``--name``."""

    name: str
    default: Any
    help: str
    kind: Kind = "text"
    metavar: str = "X"
    required: bool = False


@dataclass(frozen=True)
class Analysis:
    """One line of the table."""

    name: str
    title: str
    question: str  # what it answers, for the page
    help: str  # what it does, for the command line
    source: str
    run: Callable[[Bench], Any]
    python: (
        str  # the library's call, with clf, data, evaluator, some (train examples), other and names at hand
    )
    needs: tuple[Need, ...] = ("model", "data")
    inputs: tuple[Input, ...] = ()
    published: Callable[[str], list[PublishedTable]] = published.nothing  # of a task
    kinds: tuple[str, ...] = ("classification", "translation")  # of model
    page: str = ""  # the dashboard's page that shows it, where that is not Analyses
    command: str = ""  # of its own, where it is not ``analyse NAME``

    @property
    def takes_mask_away(self) -> bool:
        """Whether it is about the user's mask itself, rather than about heads on top of it."""
        return "mask" in self.needs and "data" not in self.needs

    @property
    def line(self) -> str:
        return f"headviz {self.command or f'analyse {self.name}'}"


# what they do ---------------------------------------------------------------------------------


def _ablation(bench: Bench) -> Any:
    from .ablation import ablate

    return ablate(
        bench.evaluator, base=bench.mask(), metric=bench.option("metric"), progress=bench.progress,
        cancel=bench.cancel,
    )  # fmt: skip


def _by_slice(bench: Bench) -> Any:
    from .by_slice import by_slice

    return by_slice(
        bench.evaluator, base=bench.mask(), metric=bench.option("metric"), progress=bench.progress,
        cancel=bench.cancel,
    )  # fmt: skip


def _all_but_one(bench: Bench) -> Any:
    from .all_but_one import all_but_one

    select = bench.option("select")
    other = bench.on(bench.sample()) if select == "other" else None
    return all_but_one(
        bench.evaluator, select, other, metric=bench.option("metric"), progress=bench.progress, cancel=bench.cancel
    )  # fmt: skip


def _cross(bench: Bench) -> Any:
    from .cross_dataset import cross_dataset

    return cross_dataset(
        bench.evaluator, bench.on(bench.second()), metric=bench.option("metric"), progress=bench.progress,
        cancel=bench.cancel,
    )  # fmt: skip


def _curves(bench: Bench) -> Any:
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


def _stacks(bench: Bench) -> Any:
    from .stacks import stack_report

    select = bench.option("select")
    some = bench.sample()
    score = bench.option("score")
    return stack_report(
        bench.evaluator, score, bench.score(bench.clf, score, some), bench.on(some) if select == "other" else None,
        step=bench.option("step"), progress=bench.progress, cancel=bench.cancel,
    )  # fmt: skip


def _speed(bench: Bench) -> Any:
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


def _dynamics(bench: Bench) -> Any:
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


def _correlation(bench: Bench) -> Any:
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


def _scatter(bench: Bench) -> Any:
    from ..conductance_maps import conductance
    from ..heads import HeadId
    from .scatter import scatter

    head = HeadId.parse(bench.option("head"))
    maps = conductance(
        bench.clf, bench.option("text"), bench.option("text-pair"), target=bench.option("target")
    )
    return scatter(maps, head, bench.option("coefficient"))


def _harmful(bench: Bench) -> Any:
    from .harmful import harmful

    return harmful(_ablation(bench))


def _redundant(bench: Bench) -> Any:
    from .redundant import redundant

    return redundant(
        bench.evaluator, metric=bench.option("metric"), seconds=bench.option("seconds"), progress=bench.progress,
        cancel=bench.cancel,
    )  # fmt: skip


def check_score(name: str) -> None:
    from ..scores import SCORES

    if name != ORACLE and name not in SCORES:
        raise OptionError(unknown_choice("score", name, [*SCORES, ORACLE]))


# what they ask --------------------------------------------------------------------------------

METRIC = Input("metric", None, "a metric of the task (default: its first)", metavar="NAME")
SELECT = Input("select", "other", "choose the heads on the 'same' data, or 'other'", metavar="HOW")
SAMPLES = Input("samples", 2000, "train examples for scoring, or to choose heads on", "count", "N")
SEED = Input("seed", 0, "of the sample", "number", "S")
STEP = Input("step", 0.1, "share per step", "share", "K")
ORDER = Input("score", "taylor", "order of pruning", metavar="NAME")
CROSS = (
    Input("other-task", None, "the second data set (default: the same task)", metavar="T"),
    Input("other-data", None, "its folder (default: that of --data)", metavar="DIR"),
    Input("other-split", None, "its split (default: that of --split)", metavar="S"),
)
CURVES = (
    Input("scores", "conductance-spearman", "score orders; 'oracle' is ablation's own", metavar="A,B,…"),
    STEP,
    Input("until", 1.0, "last sparsity", "share", "S"),
    Input("keep-per-layer", 0, "heads that stay in every layer", "number", "N"),
)
SPEED = (
    Input("remove", 0.5, "without a mask: this share, at random", "share", "S"),
    Input("length", 128, "tokens", "count", "T"),
    Input("repeats", 7, "timed rounds", "count", "N"),
    Input("batches", "1,4,16,64", "batch sizes", metavar="A,B,…"),
)
CHECKPOINTS = Input(
    "checkpoints", None, "folder with one folder per checkpoint", metavar="DIR", required=True
)
CORRELATION = (
    Input("base", None, "the pre-trained model it was made from", metavar="BASE", required=True),
    Input("score", "conductance-spearman", "a correlation score", metavar="NAME"),
    Input("source", FRESH, f"pre-trained model's F: {FRESH} or {MASKED}", metavar="F"),
    Input("heads", 5, "fresh heads to average", "count", "N"),
    SAMPLES,
    SEED,
)
SCATTER = (
    Input("text", None, "the text", metavar="A", required=True),
    Input("text-pair", None, "its pair", metavar="B"),
    Input("head", None, "the head, such as 3.5", metavar="L.H", required=True),
    Input("coefficient", "spearman", "spearman, kendall or pearson", metavar="C"),
    Input("target", "predicted", "class to explain", metavar="T"),
)
SECONDS = Input("seconds", 60.0, "time for the search", "share", "S")

MICHEL = "Michel, Levy, Neubig 2019, *Are Sixteen Heads Really Better than One?* (arXiv 1905.10650)"
THESIS = "*Integrated Gradients for Structured Pruning on BERT* (2024)"
ALL: tuple[Need, ...] = ("model", "data")
MASKABLE: tuple[Need, ...] = ("model", "data", "mask")
SLICED: tuple[Need, ...] = (*MASKABLE, "slices")
CLASSES, TRANSLATIONS = ("classification",), ("translation",)

# fmt: off
_TABLE = (
    Analysis(
        "ablation", "One head off", "What does each head cost on its own, and is that more than chance?",
        "one head off at a time: its cost, with significance", f"{MICHEL}, §3.2, Figure 1, Table 1", _ablation,
        "from headviz.analyses.ablation import ablate\nfound = ablate(evaluator)",
        MASKABLE, (METRIC,), published.one_head_off),
    Analysis(
        "by-slice", "Kind by kind", "Which kind of examples hangs on which head?",
        "what each head costs on each kind of examples, with significance", "the table of single ablations, by slice",
        _by_slice, "from headviz.analyses.by_slice import by_slice\nfound = by_slice(evaluator)", SLICED, (METRIC,)),
    Analysis(
        "all-but-one", "All but one", "How far does the best single head of each layer go?",
        "all heads of a layer off but the best one", f"{MICHEL}, §3.3, Tables 2, 3, 5 and 6", _all_but_one,
        "from headviz.analyses.all_but_one import all_but_one\n"
        "found = all_but_one(evaluator, 'other', evaluator_of(clf, some))",
        ALL, (METRIC, SELECT, SAMPLES, SEED), published.one_head_kept),
    Analysis(
        "cross-dataset", "Other data", "Do the heads that matter here matter on another data set too?",
        "the same ablation on two data sets, and how well they agree", f"{MICHEL}, §3.4, Figure 2", _cross,
        "from headviz.analyses.cross_dataset import cross_dataset\n"
        "found = cross_dataset(evaluator, evaluator_of(clf, other))",
        ALL, (METRIC, *CROSS), published.two_datasets),
    Analysis(
        "pruning-curves", "Pruning curves",
        "How much can go, in the order of each score and in the best order there is?",
        "metric against percentage pruned, by scores and by the oracle", f"{MICHEL}, §4, Figures 3 and 6", _curves,
        "from headviz.analyses.pruning_curve import pruning_curves\n"
        "from headviz.analyses.ablation import ablate\n"
        "orders = {name: headviz.score_heads(clf, some, score=name).values for name in names}\n"
        "orders['oracle (ablation)'] = ablate(evaluator).values\n"
        "found = pruning_curves(evaluator, orders)",
        ALL, (METRIC, *CURVES, SAMPLES, SEED), published.without_loss),
    Analysis(
        "stacks", "Stack by stack", "Which kind of attention can a translation model do without?",
        "the published analyses of translation models, stack by stack",
        f"{MICHEL}, §3.2, §3.3, §5, Tables 1, 2 and 5, Figure 4", _stacks,
        "from headviz.analyses.stacks import stack_report\n"
        "scores = headviz.score_heads(clf, some, score='taylor').values\n"
        "found = stack_report(evaluator, 'taylor', scores, evaluator_of(clf, some))",
        ALL, (SELECT, ORDER, STEP, SAMPLES, SEED), published.by_stack, TRANSLATIONS, command="stacks"),
    Analysis(
        "speed", "Speed", "How much faster is the model once the heads of the mask are gone?",
        "examples per second before and after really removing heads", f"{MICHEL}, §5, Table 4", _speed,
        "from headviz.analyses.speed import speed\nfound = speed(clf, mask)",
        ("model", "mask"), SPEED, published.speeds, CLASSES),
    Analysis(
        "dynamics", "Training dynamics", "From which point of training on can heads go?",
        "pruning curves of the checkpoints of a training run", f"{MICHEL}, §6, Figure 5", _dynamics,
        "from headviz.analyses.dynamics import dynamics\n"
        "found = dynamics('checkpoints', data, 'taylor',\n"
        "                 lambda e: headviz.score_heads(e.clf, some, score='taylor').values)",
        ("data",), (METRIC, CHECKPOINTS, ORDER, STEP, SAMPLES, SEED)),
    Analysis(
        "harmful", "Harmful heads", "Which heads is the model better without?",
        "heads whose removal improves the metric significantly", "the table of single ablations", _harmful,
        "from headviz.analyses.ablation import ablate\nfrom headviz.analyses.harmful import harmful\n"
        "found = harmful(ablate(evaluator))",
        MASKABLE, (METRIC,)),
    Analysis(
        "redundant", "Stand-ins", "Which pairs are harmless alone, but not together?",
        "pairs of heads, harmless one by one but not together", "a search over the most promising pairs", _redundant,
        "from headviz.analyses.redundant import redundant\nfound = redundant(evaluator, seconds=20)",
        ALL, (METRIC, SECONDS), kinds=CLASSES),
    Analysis(
        "correlation", "Before and after fine-tuning", "Where does fine-tuning make a head's attention count?",
        "pre-trained against fine-tuned correlation of every head", f"{THESIS}, Figure 6.1, §6.5.2", _correlation,
        "", ALL, CORRELATION, published.bands, CLASSES, "heads"),
    Analysis(
        "scatter", "Attention against attribution", "Does a head look where its contribution comes from?",
        "attention against attribution of one head on one example", f"{THESIS}, Figure 6.5", _scatter,
        "", ("model",), SCATTER, kinds=CLASSES, page="head"),
)
# fmt: on
ANALYSES: Mapping[str, Analysis] = {analysis.name: analysis for analysis in _TABLE}
