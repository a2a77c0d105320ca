"""Every head score: one short function and one line in the table. High = keep.

Adding a score: write its function here (its per-example values are in ``given.rows``), declare its options in
``options``, add a line to SCORES. A measurement that no sweep makes yet goes into ``sweeps``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from ..errors import OptionError, unknown_choice
from ..heads import HeadMask
from .options import (
    AblationOptions,
    AttAttrScoreOptions,
    ConductanceOptions,
    NoOptions,
    RandomOptions,
    TaylorOptions,
)
from .statistics import Summary, exact, layer_normed, mean, total
from .sweeps import Tables
from .task_loss import cost_of_ablation

if TYPE_CHECKING:
    from ..models.classifier import Classifier
    from ..tasks import Dataset

DEFAULT = "conductance-spearman"


@dataclass(frozen=True)
class Given:
    """What a score is computed from. Rows are in the order of the examples' content, not in the data's."""

    clf: Classifier
    mask: HeadMask  # what is off: masked or removed
    rows: Tables  # per-example values of the score's sweep
    data: Dataset  # the examples of the rows
    places: np.ndarray  # where each row stands in the data
    order: np.ndarray | None  # the model's output for each class of the task


def conductance_spearman(given: Given, options: ConductanceOptions) -> Summary:
    return mean(given.rows[_rows("spearman", options)])


def conductance_kendall(given: Given, options: ConductanceOptions) -> Summary:
    return mean(given.rows[_rows("kendall", options)])


def conductance_pearson(given: Given, options: ConductanceOptions) -> Summary:
    return mean(given.rows[_rows("pearson", options)])


def conductance_max(given: Given, options: ConductanceOptions) -> Summary:
    return mean(given.rows[_rows("max", options)])


def _rows(name: str, options: ConductanceOptions) -> str:
    return name if options.rows == "all" else f"{name}_influential"


def attattr_max(given: Given, options: AttAttrScoreOptions) -> Summary:
    return mean(given.rows["max"])


def taylor(given: Given, options: TaylorOptions) -> Summary:
    signed = given.rows["signed"]
    if options.abs_level == "token":
        raw = mean(given.rows["token"])
    elif options.abs_level == "example":
        raw = mean(np.abs(signed))
    elif options.abs_level == "signed":
        raw = mean(signed)
    else:  # one value per batch of consecutive examples: the absolute value of its mean derivative
        signed = signed[np.argsort(given.places)]
        starts = np.arange(0, len(signed), options.batch_size)
        sizes = np.diff(np.append(starts, len(signed)))
        raw = mean(np.abs(np.add.reduceat(signed, starts, axis=0) / sizes[:, None, None]))
    return layer_normed(raw, given.mask.array()) if options.layer_norm else raw


def fisher(given: Given, options: NoOptions) -> Summary:
    return total(given.rows["signed"] ** 2)


def ablation(given: Given, options: AblationOptions) -> Summary:
    return cost_of_ablation(given.rows, given.data, given.order, options.metric)


def magnitude(given: Given, options: NoOptions) -> Summary:
    clf = given.clf
    values = np.full((clf.num_layers, clf.num_heads), np.nan)
    for layer in range(clf.num_layers):
        kept = [h for h in range(clf.num_heads) if h not in clf.present.off_in(layer)]
        values[layer, kept] = _norm_product(clf, layer, len(kept))
    return exact(values)


def _norm_product(clf: Classifier, layer: int, heads: int) -> np.ndarray:
    """‖W_O columns‖ · ‖W_V rows‖ of each head left in the layer."""
    places = clf.projections(layer)
    out = places.output.weight.detach().double()  # [E, heads·d]
    value = places.value.weight.detach().double()  # [heads·d, E], or the last third of a fused matrix
    value = value[-out.shape[1] :] if out.shape[1] else value[:0]
    out_norm = out.reshape(out.shape[0], heads, -1).norm(dim=(0, 2)) if heads else torch.zeros(0)
    value_norm = value.reshape(heads, -1).norm(dim=1) if heads else torch.zeros(0)
    return (out_norm * value_norm).cpu().numpy()


def random(given: Given, options: RandomOptions) -> Summary:
    shape = (given.clf.num_layers, given.clf.num_heads)
    return exact(np.random.default_rng(options.seed).random(shape))


@dataclass(frozen=True)
class Score:
    """One line of the table."""

    name: str
    title: str
    formula: str
    source: str
    function: Callable[[Given, Any], Summary]
    options: type = NoOptions
    sweep: str | None = None  # what is measured on each example; None = no example is needed
    caution: str = ""  # when not to use it

    @property
    def needs_data(self) -> bool:
        return self.sweep is not None


_CORRELATION = "mean over examples of {}(A, Attr(A)) over all T² connections, signed"
_NOT_CAUSAL = "a correlation says how attention and attribution agree, not what removing the head costs"

SCORES: dict[str, Score] = {
    s.name: s
    for s in (
        Score(
            "conductance-spearman",
            "Conductance, Spearman",
            _CORRELATION.format("Spearman"),
            "2024 thesis, eq. 6.4",
            conductance_spearman,
            ConductanceOptions,
            "conductance",
            _NOT_CAUSAL,
        ),
        Score(
            "conductance-kendall",
            "Conductance, Kendall",
            _CORRELATION.format("Kendall's tau-b"),
            "2024 thesis, §6.5.2",
            conductance_kendall,
            ConductanceOptions,
            "conductance",
            _NOT_CAUSAL,
        ),
        Score(
            "conductance-pearson",
            "Conductance, Pearson",
            _CORRELATION.format("Pearson"),
            "2024 thesis, §7.2",
            conductance_pearson,
            ConductanceOptions,
            "conductance",
            "attributions are heavy-tailed: a single connection can decide the value",
        ),
        Score(
            "conductance-max",
            "Conductance, largest",
            "mean over examples of max_ij Attr(A)_ij",
            "aggregate of Hao et al. 2021, on conductance maps",
            conductance_max,
            ConductanceOptions,
            "conductance",
            "one extreme connection decides; its size depends on the text's length",
        ),
        Score(
            "attattr-max",
            "AttAttr, largest",
            "mean over examples of max_ij (A ⊙ ∫ ∂F(aA)/∂A da)_ij",
            "Hao et al. 2021",
            attattr_max,
            AttAttrScoreOptions,
            "attattr",
            "one sweep per layer: several times slower than conductance",
        ),
        Score(
            "taylor",
            "Taylor",
            "mean over examples of |∂Loss/∂ξ|, l2-normalised per layer",
            "Michel et al. 2019, eq. 2",
            taylor,
            TaylorOptions,
            "gates",
            "first order only: blind to heads that back each other up; layers are put on one scale",
        ),
        Score(
            "ablation",
            "Ablation",
            "metric(full) − metric(full without the head)",
            "Michel et al. 2019, §3.2",
            ablation,
            AblationOptions,
            "ablation",
            "one head at a time: costs do not add up when several are removed",
        ),
        Score(
            "fisher",
            "Fisher",
            "sum over examples of (∂Loss/∂ξ)²",
            "Kwon et al. 2022",
            fisher,
            NoOptions,
            "gates",
            "grows with the sample: compare tables of equal samples only",
        ),
        Score(
            "magnitude",
            "Magnitude",
            "‖W_O columns‖ · ‖W_V rows‖",
            "baseline",
            magnitude,
            caution="looks at weights only, at no example",
        ),
        Score("random", "Random", "seeded uniform numbers", "baseline", random, RandomOptions),
    )
}


@dataclass(frozen=True)
class Preset:
    """A published choice under its name."""

    score: str
    options: MappingProxyType[str, Any] = field(default_factory=lambda: MappingProxyType({}))
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
        "Captum's rule with 50 steps, signed mean over all connections",
    ),
}


def score_named(name: str) -> Score:
    if name not in SCORES:
        raise OptionError(unknown_choice("score", name, SCORES))
    return SCORES[name]


def preset_named(name: str) -> Preset:
    if name not in PRESETS:
        raise OptionError(unknown_choice("preset", name, PRESETS))
    return PRESETS[name]
