"""The table of analyses, one line each: read by ``headviz analyse`` and by the dashboard's Analyses page.

An analysis is a function of a ``Bench``; the functions are in ``doing``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from . import doing, published
from .bench import Bench
from .doing import FRESH, MASKED
from .doing import ORACLE as ORACLE
from .published import PublishedTable

Need = Literal["model", "data", "mask", "slices"]
Kind = Literal["text", "count", "number", "share"]


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
        "one head off at a time: its cost, with significance", f"{MICHEL}, §3.2, Figure 1, Table 1", doing.ablation,
        "from headviz.analyses.ablation import ablate\nfound = ablate(evaluator)",
        MASKABLE, (METRIC,), published.one_head_off),
    Analysis(
        "by-slice", "Kind by kind", "Which kind of examples hangs on which head?",
        "what each head costs on each kind of examples, with significance", "the table of single ablations, by slice",
        doing.by_slice, "from headviz.analyses.by_slice import by_slice\nfound = by_slice(evaluator)",
        SLICED, (METRIC,)),
    Analysis(
        "all-but-one", "All but one", "How far does the best single head of each layer go?",
        "all heads of a layer off but the best one", f"{MICHEL}, §3.3, Tables 2, 3, 5 and 6", doing.all_but_one,
        "from headviz.analyses.all_but_one import all_but_one\n"
        "found = all_but_one(evaluator, 'other', evaluator_of(clf, some))",
        ALL, (METRIC, SELECT, SAMPLES, SEED), published.one_head_kept),
    Analysis(
        "cross-dataset", "Other data", "Do the heads that matter here matter on another data set too?",
        "the same ablation on two data sets, and how well they agree", f"{MICHEL}, §3.4, Figure 2", doing.cross,
        "from headviz.analyses.cross_dataset import cross_dataset\n"
        "found = cross_dataset(evaluator, evaluator_of(clf, other))",
        ALL, (METRIC, *CROSS), published.two_datasets),
    Analysis(
        "pruning-curves", "Pruning curves",
        "How much can go, in the order of each score and in the best order there is?",
        "metric against percentage pruned, by scores and by the oracle", f"{MICHEL}, §4, Figures 3 and 6", doing.curves,
        "from headviz.analyses.pruning_curve import pruning_curves\n"
        "from headviz.analyses.ablation import ablate\n"
        "orders = {name: headviz.score_heads(clf, some, score=name).values for name in names}\n"
        "orders['oracle (ablation)'] = ablate(evaluator).values\n"
        "found = pruning_curves(evaluator, orders)",
        ALL, (METRIC, *CURVES, SAMPLES, SEED), published.without_loss),
    Analysis(
        "stacks", "Stack by stack", "Which kind of attention can a translation model do without?",
        "the published analyses of translation models, stack by stack",
        f"{MICHEL}, §3.2, §3.3, §5, Tables 1, 2 and 5, Figure 4", doing.stacks,
        "from headviz.analyses.stacks import stack_report\n"
        "scores = headviz.score_heads(clf, some, score='taylor').values\n"
        "found = stack_report(evaluator, 'taylor', scores, evaluator_of(clf, some))",
        ALL, (SELECT, ORDER, STEP, SAMPLES, SEED), published.by_stack, TRANSLATIONS, command="stacks"),
    Analysis(
        "speed", "Speed", "How much faster is the model once the heads of the mask are gone?",
        "examples per second before and after really removing heads", f"{MICHEL}, §5, Table 4", doing.speed,
        "from headviz.analyses.speed import speed\nfound = speed(clf, mask)",
        ("model", "mask"), SPEED, published.speeds, CLASSES),
    Analysis(
        "dynamics", "Training dynamics", "From which point of training on can heads go?",
        "pruning curves of the checkpoints of a training run", f"{MICHEL}, §6, Figure 5", doing.dynamics,
        "from headviz.analyses.dynamics import dynamics\n"
        "found = dynamics('checkpoints', data, 'taylor',\n"
        "                 lambda e: headviz.score_heads(e.clf, some, score='taylor').values)",
        ("data",), (METRIC, CHECKPOINTS, ORDER, STEP, SAMPLES, SEED)),
    Analysis(
        "harmful", "Harmful heads", "Which heads is the model better without?",
        "heads whose removal improves the metric significantly", "the table of single ablations", doing.harmful,
        "from headviz.analyses.ablation import ablate\nfrom headviz.analyses.harmful import harmful\n"
        "found = harmful(ablate(evaluator))",
        MASKABLE, (METRIC,)),
    Analysis(
        "redundant", "Stand-ins", "Which pairs are harmless alone, but not together?",
        "pairs of heads, harmless one by one but not together", "a search over the most promising pairs",
        doing.redundant,
        "from headviz.analyses.redundant import redundant\nfound = redundant(evaluator, seconds=20)",
        ALL, (METRIC, SECONDS), kinds=CLASSES),
    Analysis(
        "correlation", "Before and after fine-tuning", "Where does fine-tuning make a head's attention count?",
        "pre-trained against fine-tuned correlation of every head", f"{THESIS}, Figure 6.1, §6.5.2", doing.correlation,
        "", ALL, CORRELATION, published.bands, CLASSES, "heads"),
    Analysis(
        "scatter", "Attention against attribution", "Does a head look where its contribution comes from?",
        "attention against attribution of one head on one example", f"{THESIS}, Figure 6.5", doing.scatter,
        "", ("model",), SCATTER, kinds=CLASSES, page="head"),
)
# fmt: on
ANALYSES: Mapping[str, Analysis] = {analysis.name: analysis for analysis in _TABLE}
