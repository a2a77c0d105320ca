"""How each head score is computed from the values of its sweep: one short function each. High = keep.

A function gets what was measured (``Inputs``) and the score's own options. ``catalogue`` says which one belongs to
which score. A measurement that no sweep makes yet goes into ``score.SWEEPS``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ..heads import HeadMask
from ..models.pruning import key_index, weight_of
from .chunk import Tables
from .map_values import INFLUENTIAL
from .options import (
    LOSS,
    AblationOptions,
    AttAttrScoreOptions,
    ConductanceOptions,
    NoOptions,
    RandomOptions,
    StandInOptions,
    TaylorOptions,
)
from .statistics import Summary, exact, layer_normed, mean, ties_broken, total
from .task_loss import cost_in_loss, cost_of_ablation

if TYPE_CHECKING:
    from ..models.classifier import Classifier
    from ..tasks import Dataset
    from .whole import Whole


@dataclass(frozen=True)
class Inputs:
    """What a score is computed from. Rows are in the order of the examples' content, not in the data's."""

    clf: Classifier
    mask: HeadMask  # what is off: masked or removed
    rows: Tables  # per-example values of the score's sweep
    data: Dataset  # the examples of the rows
    places: np.ndarray  # where each row stands in the data
    order: np.ndarray | None  # the model's output for each class of the task
    whole: Whole | None = None  # all examples together, for scores that need the sample

    @property
    def units(self) -> np.ndarray:
        """The number of each row's unit: rows of one unit, such as the passages of a query, are not independent."""
        return self.data.units


def conductance_spearman(inputs: Inputs, options: ConductanceOptions) -> np.ndarray:
    return inputs.rows[row_of("spearman", options)]


def row_of(name: str, options: ConductanceOptions) -> str:
    """The row of the conductance sweep that the options ask for."""
    return name if options.rows == "all" else name + INFLUENTIAL


def attattr_max(inputs: Inputs, options: AttAttrScoreOptions) -> np.ndarray:
    return inputs.rows["max"]


def taylor(inputs: Inputs, options: TaylorOptions) -> Summary:
    signed = inputs.rows["signed"]
    if options.abs_level == "token":
        raw = mean(inputs.rows["token"], inputs.units)
    elif options.abs_level == "example":
        raw = mean(np.abs(signed), inputs.units)
    elif options.abs_level == "signed":
        raw = mean(signed, inputs.units)
    else:  # one value per batch of consecutive examples: the absolute value of its mean derivative
        signed = signed[np.argsort(inputs.places)]
        starts = np.arange(0, len(signed), options.batch_size)
        sizes = np.diff(np.append(starts, len(signed)))
        raw = mean(np.abs(np.add.reduceat(signed, starts, axis=0) / sizes[:, None, None]))
    return layer_normed(raw, inputs.mask.array()) if options.layer_norm else raw


def fisher(inputs: Inputs, options: NoOptions) -> Summary:
    return total(inputs.rows["signed"] ** 2, inputs.units)


def ablation(inputs: Inputs, options: AblationOptions) -> Summary:
    cost = cost_of_ablation(inputs.rows, inputs.data, inputs.order, options.metric)
    if options.ties != LOSS:
        return cost
    return replace(cost, values=ties_broken(cost.values, mean(ablation_loss(inputs, options)).values))


def ablation_loss(inputs: Inputs, options: StandInOptions) -> np.ndarray:
    assert inputs.order is not None
    return cost_in_loss(inputs.rows, inputs.data, inputs.order)


def magnitude(inputs: Inputs, options: NoOptions) -> Summary:
    clf = inputs.clf
    values = np.full((clf.num_layers, clf.num_heads), np.nan)
    for layer in range(clf.num_layers):
        present = list(clf.present.kept_in(layer))
        values[layer, present] = _norm_product(clf, layer, len(present))
    return exact(values)


def _norm_product(clf: Classifier, layer: int, heads: int) -> np.ndarray:
    """‖W_O columns‖ · ‖W_V rows‖ of each head left in the layer."""
    if not heads:
        return np.zeros(0)
    places = clf.projections(layer)
    out = weight_of(places.output).detach().double()  # [E, heads·d]
    value = weight_of(places.value).detach().double()  # [heads·d, E]; fewer rows where groups share their values
    if places.value is places.query:  # the last third of a fused matrix
        value = value[-out.shape[1] :]
    index = key_index(clf.present, layer, clf.group_size)
    value_norm = value.reshape(-1, clf.head_size * value.shape[1]).norm(dim=1)
    value_norm = value_norm.repeat_interleave(heads // len(value_norm)) if index is None else value_norm[index]
    out_norm = out.reshape(out.shape[0], heads, -1).norm(dim=(0, 2))
    return (out_norm * value_norm).cpu().numpy()


def random(inputs: Inputs, options: RandomOptions) -> Summary:
    shape = (inputs.clf.num_layers, inputs.clf.num_heads)
    return exact(np.random.default_rng(options.seed).random(shape))
