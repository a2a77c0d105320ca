"""Every head score: what it is called, what it means, what it needs. High = keep.

Command help, pages, README and reports read this table. It imports no torch: the functions that compute the scores
are in ``measures`` and are imported at their first use. ``extras/scores`` has ten more.

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
from .options import (
    AblationOptions,
    AttAttrScoreOptions,
    ConductanceOptions,
    CountOptions,
    PriceOptions,
    RandomOptions,
    StandInOptions,
    TaylorOptions,
)
from .score import SAMPLE, Score

if TYPE_CHECKING:
    from ..answers.answer import Answer

DEFAULT = "conductance-spearman"
TO_PRUNE_BY = "gates"  # where none is named: a convention, no score is the best on every model
THESIS = "“Integrated Gradients for Structured Pruning on BERT” (2024)"


def correlation(
    kind: str,
    title: str,
    formula: str,
    source: str,
    measure: str,
    tex: str,
    how: str = "",
    caution: str = "a correlation says how attention and attribution agree, not what removing the head costs",
    after: str = "",
) -> Score:
    """A correlation of attention with its attribution."""
    return Score(
        name=f"conductance-{kind}",
        title=f"Conductance, {title}",
        meaning="How well where a head looks agrees with where its contribution to the answer comes from"
        f"{how}: 1 = exactly, 0 = not at all, below = the reverse.",
        formula=f"mean over examples of {formula}(A, Attr(A)) over all T² connections, signed",
        source=f"{THESIS}, {source}",
        measure=measure,
        needs="conductance",
        options=ConductanceOptions,
        caution=caution,
        tex=rf"\tfrac1n \sum_x {tex}(A(x), \mathrm{{Attr}}(A)(x))",
        correlation=kind,
        row=kind,
        pretrained=True,
        after=after,
    )


_ENTRIES = (  # the best first, in the order of the recorded grades
    Score(
        name="attattr-max",
        title="AttAttr, largest",
        meaning="The most that any one connection of a head contributes, its attention grown from nothing.",
        formula="mean over examples of max_ij (A ⊙ ∫ ∂F(aA)/∂A da)_ij, F the logit, as in the paper's text, or the "
        "probability (of=probability), as in its code",
        source="Hao et al. 2021",
        measure="headviz.scores.measures:attattr_max",
        needs="attattr",
        options=AttAttrScoreOptions,
        caution="one sweep per layer: several times slower than conductance",
        tex=r"\tfrac1n \sum_x \max_{ij} \big(A \odot \textstyle\int_0^1 \partial F(aA)/\partial A\,da\big)_{ij}",
    ),
    Score(
        name="gates-exact",
        title="Learned gates, exact number",
        meaning="How long a head is kept when ever fewer heads are kept, and which ones is learned.",
        formula="share of the updates in which the head is among the k highest logits with Gumbel noise, k falling "
        "from all to none; the noise falls to 0, and the gradient is that of a softmax at temperature 1",
        source="after Li, Cotterell and Sachan 2021, whose temperature falls in place of the noise; here with frozen "
        "weights",
        measure="headviz.scores.learned:gates_exact",
        needs=SAMPLE,
        options=CountOptions,
        caution="learned on the sample: a small one is learned by heart",
        tex=r"\tfrac1S \sum_s \big[ h \in \mathrm{top}_{k(s)} (z(s) + \mathrm{Gumbel}) \big]",
    ),
    Score(
        name="gates",
        title="Learned gates",
        meaning="How long a head stays switched on when gates on all heads are learned and open ones cost more and "
        "more.",
        formula="mean over updates of the gate g minimising Loss(g) + price · mean(g), the price rising from 0",
        source="after Voita et al. 2019, but σ(z) for their hard-concrete gates; here with frozen weights",
        measure="headviz.scores.learned:gates",
        needs=SAMPLE,
        options=PriceOptions,
        caution="learned on the sample: a small one is learned by heart",
        tex=r"\tfrac1S \sum_s g_h(s), \quad g(s) \approx \arg\min_g \mathrm{Loss}(g) + \lambda(s)\,\bar g",
    ),
    Score(
        name="magnitude",
        title="Magnitude",
        meaning="How large a head's weights are; no examples needed.",
        formula="‖W_O columns‖ · ‖W_V rows‖",
        source="baseline",
        measure="headviz.scores.measures:magnitude",
        caution="looks at weights only, at no example",
        tex=r"\lVert W_O^{(h)} \rVert \cdot \lVert W_V^{(h)} \rVert",
    ),
    Score(
        name="ablation-loss",
        title="Ablation, in loss",
        meaning="How much larger the loss is without a head. It changes before an answer does.",
        formula="mean over examples of Loss(without the head) − Loss(full)",
        source="baseline: what first-order scores estimate, measured",
        measure="headviz.scores.measures:ablation_loss",
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
        measure="headviz.scores.measures:fisher",
        needs="gates",
        caution="grows with the sample: compare tables of equal samples only",
        tex=r"\sum_x \left( \partial \mathrm{Loss}(x) / \partial \xi_h \right)^2",
        pretrained=True,
    ),
    Score(
        name="ablation",
        title="Ablation",
        meaning="What the metric loses when a head is switched off.",
        formula="metric(full) − metric(full without the head)",
        source="Michel et al. 2019, §3.2",
        measure="headviz.scores.measures:ablation",
        needs="ablation",
        options=AblationOptions,
        caution="one head at a time: costs do not add up when several are removed",
        tex=r"m(\text{full}) - m(\text{full without } h)",
    ),
    Score(
        name="taylor",
        title="Taylor",
        meaning="How much the loss reacts when a head is turned down a little.",
        formula="mean over examples of |∂Loss/∂ξ|, l2-normalised per layer",
        source="Michel et al. 2019, eq. 2",
        measure="headviz.scores.measures:taylor",
        needs="gates",
        options=TaylorOptions,
        caution="first order only: blind to heads that back each other up; layers are put on one scale",
        tex=r"\tfrac1n \sum_x \left| \partial \mathrm{Loss}(x) / \partial \xi_h \right|",
        pretrained=True,
    ),
    Score(
        name="random",
        title="Random",
        meaning="Chance: what any other score has to beat.",
        formula="seeded uniform numbers",
        source="baseline",
        measure="headviz.scores.measures:random",
        options=RandomOptions,
        tex=r"u_h \sim U(0, 1)",
    ),
    correlation(
        "spearman",
        "Spearman",
        "Spearman",
        "eq. 6.4",
        "headviz.scores.measures:conductance_spearman",
        r"\mathrm{Spearman}",
    ),
)
SCORES: Mapping[str, Score] = plugins.Entries("scores", _ENTRIES)


@dataclass(frozen=True)
class Preset:
    """A published choice under its name."""

    score: str
    options: Mapping[str, Any] = field(default_factory=dict)
    why: str = ""
    length_filter: str = "none"  # of the texts that it was published with


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
        "quantile",
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
    """An ``OptionError`` for a score that models with this answer do not have."""
    if not score.fits(answer):
        raise OptionError(
            f"Score '{score.name}' {score.restriction}, and a {answer.kind} model has none. "
            f"Choose one of: {', '.join(names_for(answer))}."
        )


def of_masked_words() -> tuple[str, ...]:
    """The scores that are measured on a masked-language model, those of plugins that are loaded among them."""
    return tuple(s.name for s in SCORES.values() if s.of_masked_words)


def require_of_masked_words(score: str) -> Score:
    """The score of this name; an ``OptionError`` if it is not measured on a masked-language model."""
    if score not in SCORES or not SCORES[score].of_masked_words:
        raise OptionError(
            f"Score '{score}' is not defined on a masked-language model here. Choose one of: "
            f"{', '.join(of_masked_words())}."
        )
    return SCORES[score]
