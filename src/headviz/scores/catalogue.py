"""Every head score: what it is called, what it means, what it needs. High = keep.

Command help, pages, README and reports read this table. It imports no torch: the functions that compute the scores
are in ``measures`` and are imported at their first use.

Adding a score: write its function in ``measures``, declare its options in ``options``, add an entry here. From
outside the project, a plugin adds one (``docs/plugins.md``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from .. import plugins
from ..errors import OptionError, is_one_of, unknown_choice
from .learned_lines import LEARNED
from .options import (
    AblationOptions,
    AttAttrScoreOptions,
    BlendOptions,
    ChangedOptions,
    ConductanceOptions,
    RandomOptions,
    RanksOptions,
    ShapleyOptions,
    StandInOptions,
    TaylorOptions,
)
from .score import SAMPLE, Score

if TYPE_CHECKING:
    from ..answers.answer import Answer

DEFAULT = "conductance-spearman"
TO_PRUNE_BY = "gates"  # where none is named: the mildest worst case over the boards measured
THESIS = "“Integrated Gradients for Structured Pruning on BERT” (2024)"
RANKED = ("gim", "gnorm", "magnitude")  # whose ranks ``ranks`` averages: cheap ones, as far as the model has them


def _correlation(kind: str, title: str, formula: str, source: str, tex: str, **more: Any) -> Score:
    """A correlation of attention with its attribution."""
    given: dict[str, Any] = {
        "caution": "a correlation says how attention and attribution agree, not what removing the head costs",
        **more,
    }
    how = given.pop("how", "")
    return Score(
        name=f"conductance-{kind}",
        title=f"Conductance, {title}",
        meaning="How well where a head looks agrees with where its contribution to the answer comes from"
        f"{how}: 1 = exactly, 0 = not at all, below = the reverse.",
        formula=f"mean over examples of {formula}(A, Attr(A)) over all T² connections, signed",
        source=f"{THESIS}, {source}",
        measure=f"measures:conductance_{kind}",
        needs="conductance",
        options=ConductanceOptions,
        tex=rf"\tfrac1n \sum_x {tex}(A(x), \mathrm{{Attr}}(A)(x))",
        correlation=kind,
        row=kind,
        pretrained=True,
        **given,
    )


_ENTRIES = (
    _correlation("spearman", "Spearman", "Spearman", "eq. 6.4", r"\mathrm{Spearman}"),
    _correlation(
        "kendall", "Kendall", "Kendall's tau-b", "§7.2 (named in §6.5.2)", r"\tau_b", how=", by Kendall's tau"
    ),
    _correlation(
        "pearson",
        "Pearson",
        "Pearson",
        "named in §6.5.2",
        "r",
        how=", in a straight line",
        caution="attributions are heavy-tailed: a single connection can decide the value",
    ),
    Score(
        name="conductance-max",
        title="Conductance, largest",
        meaning="The most that any one connection of a head contributes to the answer.",
        formula="mean over examples of max_ij Attr(A)_ij",
        source="aggregate of Hao et al. 2021, on conductance maps",
        measure="measures:conductance_max",
        needs="conductance",
        options=ConductanceOptions,
        caution="one extreme connection decides; its size depends on the text's length",
        tex=r"\tfrac1n \sum_x \max_{ij} \mathrm{Attr}(A)_{ij}",
        row="max",
    ),
    Score(
        name="attattr-max",
        title="AttAttr, largest",
        meaning="The most that any one connection of a head contributes, its attention grown from nothing.",
        formula="mean over examples of max_ij (A ⊙ ∫ ∂F(aA)/∂A da)_ij",
        source="Hao et al. 2021",
        measure="measures:attattr_max",
        needs="attattr",
        options=AttAttrScoreOptions,
        caution="one sweep per layer: several times slower than conductance",
        tex=r"\tfrac1n \sum_x \max_{ij} \big(A \odot \textstyle\int_0^1 \partial F(aA)/\partial A\,da\big)_{ij}",
    ),
    Score(
        name="taylor",
        title="Taylor",
        meaning="How much the loss reacts when a head is turned down a little.",
        formula="mean over examples of |∂Loss/∂ξ|, l2-normalised per layer",
        source="Michel et al. 2019, eq. 2",
        measure="measures:taylor",
        needs="gates",
        options=TaylorOptions,
        caution="first order only: blind to heads that back each other up; layers are put on one scale",
        tex=r"\tfrac1n \sum_x \left| \partial \mathrm{Loss}(x) / \partial \xi_h \right|",
        pretrained=True,
    ),
    *LEARNED,
    Score(
        name="shapley",
        title="Shapley value",
        meaning="What a head adds to the metric, averaged over the random orders in which heads can be switched on.",
        formula="mean over orders of metric(heads before h, and h) − metric(heads before h)",
        source="Held and Yang 2023",
        measure="shapley:shapley",
        needs=SAMPLE,
        options=ShapleyOptions,
        slow=True,
        caution="the slowest score; intervals are over the orders, not over the examples",
        tex=r"\tfrac1{|\Pi|} \sum_{\pi} m(\pi_{<h} \cup h) - m(\pi_{<h})",
    ),
    Score(
        name="ablation",
        title="Ablation",
        meaning="What the metric loses when a head is switched off.",
        formula="metric(full) − metric(full without the head)",
        source="Michel et al. 2019, §3.2",
        measure="measures:ablation",
        needs="ablation",
        options=AblationOptions,
        caution="one head at a time: costs do not add up when several are removed",
        tex=r"m(\text{full}) - m(\text{full without } h)",
    ),
    Score(
        name="ablation-loss",
        title="Ablation, in loss",
        meaning="How much larger the loss is without a head. It changes before an answer does.",
        formula="mean over examples of Loss(without the head) − Loss(full)",
        source="baseline: what first-order scores estimate, measured",
        measure="measures:ablation_loss",
        needs="ablation",
        options=StandInOptions,
        caution="one head at a time; heads with a cost below 0 come first, and removing many of them may cost much",
        tex=r"\tfrac1n \sum_x \big( \mathrm{Loss}(x; \text{without } h) - \mathrm{Loss}(x) \big)",
        explained_only="takes the loss of the class that is right",
    ),
    Score(
        name="fisher",
        title="Fisher",
        meaning="How strongly the loss reacts to a head, squared and added up over the examples.",
        formula="sum over examples of (∂Loss/∂ξ)²",
        source="Kwon et al. 2022",
        measure="measures:fisher",
        needs="gates",
        caution="grows with the sample: compare tables of equal samples only",
        tex=r"\sum_x \left( \partial \mathrm{Loss}(x) / \partial \xi_h \right)^2",
        pretrained=True,
    ),
    Score(
        name="gim",
        title="GIM",
        meaning="How much the loss reacts when a head is turned down a little, by a backward pass that does not let "
        "other parts of the model make up for it.",
        formula="mean over examples of |Σ O ⊙ ∂Loss/∂O|; backwards norms keep their divisor, softmax is taken at "
        "scores / T, values get 1/2, queries and keys 1/4 of the gradient",
        source="Edin et al. 2025 (arXiv 2505.17630), gradients of the authors' code; here of the loss, by head",
        measure="measures:gim",
        needs="changed gates",
        options=ChangedOptions,
        caution="models with other norms than layer norm are refused",
        tex=r"\tfrac1n \sum_x \big| \textstyle\sum O_h \odot \tilde\partial \mathrm{Loss}(x) / \partial O_h \big|",
    ),
    Score(
        name="hies",
        title="HIES",
        meaning="Half how much the loss reacts to a head, half how narrowly the head looks.",
        formula="α · I + (1 − α) · (1 − E), I = mean |∂Loss/∂ξ| and E = mean entropy of attention / log T, each "
        "brought between 0 and 1 over all heads",
        source="Choi et al. 2025 (arXiv 2510.13832), eq. 1 and B.2.1",
        measure="attention_entropy:hies",
        needs="entropy",
        options=BlendOptions,
        caution="α is tuned for each task as published, and 0.5 here; narrow attention is not yet useful attention",
        tex=r"\alpha \hat I_h + (1 - \alpha)(1 - \hat E_h)",
        explained_only="divides entropy by the logarithm of the classified text's length",
    ),
    Score(
        name="gnorm",
        title="Gradient norms",
        meaning="How strongly the size of the answer depends on a head's weights, labels unseen.",
        formula="product over W of W_Q, W_K, W_V of mean over examples of ‖∂‖logits‖ / ∂W‖",
        source="Guo and Sheridan 2026 (arXiv 2602.04491), formula of the authors' repository; greedy with algorithm "
        "'iterative'",
        measure="weight_gradients:gnorm",
        needs="weights",
        caution="a head that makes every logit larger counts as much as one that decides",
        tex=r"\prod_{W \in \{W_Q, W_K, W_V\}} \tfrac1n \sum_x \big\lVert \partial \lVert F(x) \rVert / "
        r"\partial W^{(h)} \big\rVert",
        explained_only="takes the norm of the classes' logits",
    ),
    Score(
        name="ranks",
        title="Average rank",
        meaning="Where a head stands on average in the orders of several scores: 0 = lowest in all, 1 = highest.",
        formula="mean over the members of (rank − 1) / (heads − 1), ties at their mean rank",
        source="Borda's count",
        measure="ranks:ranks",
        needs=SAMPLE,
        options=RanksOptions,
        caution="costs what its members cost together; members that say the same outvote the others",
        tex=r"\tfrac1M \sum_m (\mathrm{rank}_m(h) - 1) / (n - 1)",
    ),
    Score(
        name="magnitude",
        title="Magnitude",
        meaning="How large a head's weights are; no examples needed.",
        formula="‖W_O columns‖ · ‖W_V rows‖",
        source="baseline",
        measure="measures:magnitude",
        caution="looks at weights only, at no example",
        tex=r"\lVert W_O^{(h)} \rVert \cdot \lVert W_V^{(h)} \rVert",
    ),
    Score(
        name="random",
        title="Random",
        meaning="Chance: what any other score has to beat.",
        formula="seeded uniform numbers",
        source="baseline",
        measure="measures:random",
        options=RandomOptions,
        tex=r"u_h \sim U(0, 1)",
    ),
)
# in the order of the recorded board of grades, best first; what it has not graded comes last
_GRADED = (
    "attattr-max shapley ranks gim gates-exact conductance-max gates gates-hard gnorm magnitude ablation-loss fisher "
    "hies ablation taylor conductance-pearson gates-causal random conductance-spearman conductance-kendall"
).split()
SCORES: dict[str, Score] = {s.name: s for s in sorted(_ENTRIES, key=lambda s: (*_GRADED, s.name).index(s.name))}


@dataclass(frozen=True)
class Preset:
    """A published choice under its name."""

    score: str
    options: Mapping[str, Any] = field(default_factory=dict)
    why: str = ""


PRESETS: dict[str, Preset] = {
    "michel-2019": Preset(
        "taylor",
        MappingProxyType({"abs_level": "token", "layer_norm": True}),
        "absolute value per token, l2 norm per layer, as in the published code",
    ),
    "thesis-2024": Preset(
        "conductance-spearman",
        MappingProxyType({"rule": "captum", "steps": 50, "rows": "all", "target": "predicted"}),
        "Captum's rule with 50 steps, signed mean over all connections, as the thesis's text says",
    ),
}


def score_named(name: str) -> Score:
    if not is_one_of(name, SCORES):
        raise OptionError(plugins.unknown("score", name, SCORES))
    return SCORES[name]


def preset_named(name: str) -> Preset:
    if not is_one_of(name, PRESETS):
        raise OptionError(unknown_choice("preset", name, PRESETS))
    return PRESETS[name]


def correlates(name: str) -> bool:
    """Whether the values under this name are correlations; a name from an old link or run may be unknown."""
    return name in SCORES and bool(SCORES[name].correlation)


def names_for(answer: Answer) -> tuple[str, ...]:
    """The scores that models with this answer have."""
    return tuple(s.name for s in SCORES.values() if s.fits(answer))


def check_fits(score: Score, answer: Answer) -> None:
    """Complain about a score that models with this answer do not have."""
    if not score.fits(answer):
        raise OptionError(
            f"Score '{score.name}' {score.of_explained}, and a {answer.kind} model has none. "
            f"Choose one of: {', '.join(names_for(answer))}."
        )
