"""The analyses by name, in the order of the page; plugins add theirs. What one does lies in the module that it names.

The table is light: a module is imported when its analysis runs or its result is shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from .. import plugins, reference
from ..evaluation.verdict import MARGIN_OPTION
from ..models import LENGTH
from ..options import Option
from ..scores.catalogue import THESIS, TO_PRUNE_BY
from .analysis import (
    EACH,
    MASKABLE,
    METRIC,
    MICHEL,
    REPEATS,
    SAMPLES,
    SEED,
    SELECT,
    SPLITS,
    STEP,
    Analysis,
    Lines,
    code,
    explained,
    exported,
    later,
)

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from ..answers.answer import Answer


_ENTRIES = (
    Analysis(
        "ablation",
        "One head off",
        "What does each head cost on its own, and is that more than chance?",
        "one head off at a time: its cost, with significance",
        f"{MICHEL}, §3.2, Figure 1, Table 1",
        **code("headviz.analyses.ablation"),
        recipe=lambda _: "result = headviz.ablate(evaluator)",
        needs=MASKABLE,
        options=(METRIC,),
        published=reference.one_head_off,
        over_draws=True,
        group=EACH,
    ),
    Analysis(
        "by-slice",
        "By ability",
        "Which ability hangs on which head?",
        "what each head costs on each kind of examples, with significance",
        "the table of single ablations, by slice",
        **code("headviz.analyses.by_slice"),
        recipe=lambda _: "result = headviz.by_slice(evaluator)",
        needs=(*MASKABLE, "slices"),
        options=(METRIC,),
        tells="abilities",
        group=EACH,
    ),
    Analysis(
        "all-but-one",
        "All but one",
        "How far does the best single head of each layer go?",
        "all heads of a layer off but the best one",
        f"{MICHEL}, §3.3, Tables 2, 3, 5 and 6",
        **code("headviz.analyses.all_but_one", "recipe"),
        options=(METRIC, SELECT, MARGIN_OPTION, SAMPLES, SEED),
        published=reference.one_head_kept,
    ),
    Analysis(
        "pruning-curves",
        "Pruning curves",
        "How much can go, in the order of each score and in that of single ablations on the evaluation data?",
        "metric against percentage pruned, by scores and by single ablations on the evaluation data",
        f"{MICHEL}, §4, Figures 3 and 6",
        **code("headviz.analyses.pruning_curve", "recipe"),
        options=(
            METRIC,
            Option(
                "scores",
                None,
                "score orders; 'oracle' is that of single ablations on the evaluation data",
                usual=TO_PRUNE_BY,
                metavar="A,B,…",
            ),
            STEP,
            Option("until", 1.0, "last sparsity", least=0, most=1, metavar="S"),
            Option("keep-per-layer", 0, "heads that stay in every layer", metavar="N"),
            MARGIN_OPTION,
            SAMPLES,
            SEED,
        ),
        published=reference.without_loss,
        lines=Lines(lambda result: [c.name for c in result.curves], later("headviz.analyses.pruning_curve", "only")),
    ),
    Analysis(
        "speed",
        "Speed",
        "How much faster is the model once the heads of the mask are gone?",
        "examples per second before and after really removing heads",
        f"{MICHEL}, §4.3, Table 4",
        **code("headviz.analyses.speed", "recipe"),
        needs=("model", "mask"),
        options=(
            Option("remove", 0.5, "without a mask: this share, at random", least=0, most=1, metavar="S"),
            Option("length", None, "tokens", int, usual=f"{LENGTH}, or what the model can take", least=1, metavar="T"),
            Option("repeats", REPEATS, "timed rounds", least=1, metavar="N"),
            Option("batches", "1,4,16,64", "batch sizes", metavar="A,B,…"),
        ),
        published=reference.speeds,
        fits=explained,
        page="runs",
    ),
    Analysis(
        "runtimes",
        "Runtimes",
        "How fast is the model, and the pruned one, in PyTorch, in ONNX Runtime and in int8, and what changes?",
        "the model and a pruned one in PyTorch, ONNX and int8: speed, size, and the change of the metric",
        "headviz",
        **code("headviz.pruning.runtimes", "recipe"),
        needs=("model", "data", "mask"),
        options=(
            Option("pruned", None, "a pruned model's folder, in place of the mask", str, metavar="FOLDER"),
            Option("batch", 32, "texts of a timed batch", least=1, metavar="B"),
            Option("length", None, "tokens", int, usual=f"{LENGTH}, or what the model can take", least=1, metavar="T"),
        ),
        fits=exported,
        page="runs",
    ),
    Analysis(
        "grade",
        "Which score is right?",
        "Whose order of removing heads keeps most of what the model knows?",
        "grade head scores: by pruning in their order, exact cost, stability, and known heads",
        "areas as in the Mechanistic Interpretability Benchmark (ICML 2025)",
        run=later("headviz.analyses.grading", "run"),
        figure=later("headviz.analyses.grades", "figure"),
        view=later("headviz.analyses.grades", "view"),
        recipe=later("headviz.analyses.grading", "recipe"),
        options=(
            Option("scores", None, "names separated by commas", usual="all but the slow ones", metavar="A,B"),
            Option("splits", SPLITS, "ways to cut the data into halves; time grows with them", least=1, metavar="N"),
        ),
        fits=explained,
        command="grade",
        tells="scores",
        page="scores",
    ),
    Analysis(
        "correlation",
        "Before and after fine-tuning",
        "Where does fine-tuning make a head's attention count?",
        "pre-trained against fine-tuned correlation of every head",
        f"{THESIS}, Figure 6.1, §6.5.2",
        **code("headviz.analyses.correlation"),
        options=(
            Option("base", None, "the pre-trained model it was made from", metavar="BASE", required=True),
            Option("score", "conductance-spearman", "a correlation score", metavar="NAME"),
            Option("source", "fresh-head", "pre-trained model's F", choices=("fresh-head", "masked-lm"), metavar="F"),
            Option("heads", 5, "fresh heads to average", least=1, metavar="N"),
            Option("copies", 4, "with masked-lm: masked copies of each text", least=1, metavar="N"),
            Option("tokens", 200, "longer texts are cut to so many tokens, as in §6.5.2; 0 = all", metavar="N"),
            Option("tuned", "", "the same model fine-tuned with other seeds", metavar="A,B,…"),
            SAMPLES,
            SEED,
        ),
        published=reference.bands,
        fits=explained,
        page="scores",
    ),
)
ANALYSES: Mapping[str, Analysis] = plugins.Entries("analyses", _ENTRIES)


def analyses_for(answer: Answer) -> list[Analysis]:
    """The analyses that are made for models with this answer."""
    return [analysis for analysis in ANALYSES.values() if analysis.fits(answer)]


def result_type(analysis: Analysis) -> Any:
    """The class of an analysis's results: what its ``run`` says it returns. Its module is imported."""
    module = import_module(analysis.run.__module__)
    stated = getattr(module, analysis.run.__name__, analysis.run).__annotations__.get("return")
    return vars(module).get(stated) if isinstance(stated, str) else stated


def made_by(result: Any) -> Analysis | None:
    """The analysis whose ``run`` returns this kind of result; None for parts of results and for all else."""
    kind = type(result)
    near = (a for a in ANALYSES.values() if kind.__module__ in (a.run.__module__, a.view.__module__))
    return next((a for a in near if result_type(a) is kind), None)


def figure(result: Any) -> Figure:
    """The figure of any result, as its analysis draws it."""
    analysis = made_by(result)
    assert analysis is not None
    drawn: Figure = analysis.figure(result)
    return drawn
