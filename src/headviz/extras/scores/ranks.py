"""The mean rank of every head over several scores. High = keep, as in each of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from ...errors import OptionError
from ...progress import part
from ...scores.catalogue import SCORES, Score, check_fits, score_named
from ...scores.measures import Given
from ...scores.scoring import Scoring
from ...scores.whole import Whole
from .gim import unknown_norm
from .options import RanksOptions

if TYPE_CHECKING:
    from ...models.base import TransformerModel

NAME = "ranks"
USUAL = ("gim", "gnorm", "magnitude")  # cheap ones, as far as the model has them


def ranks(given: Given, options: RanksOptions) -> NDArray[np.float64]:
    """[L, H] of the members' tables; those that the cache has are read from it."""
    whole = given.whole
    assert whole is not None
    members = members_of(options, whole.clf)
    return mean_ranks([_table(whole, member, i, len(members)) for i, member in enumerate(members)])


def members_of(options: RanksOptions, clf: TransformerModel) -> list[Score]:
    """The scores whose ranks are averaged on this model. By default Fisher stands in where GIM does not know it."""
    if options.names is None:
        usual = ("fisher" if name == "gim" and unknown_norm(clf) else name for name in USUAL)
        return [SCORES[name] for name in usual if SCORES[name].fits(clf.answer)]
    found = [score_named(name) for name in options.names]
    for score in found:
        if score.name == NAME:
            raise OptionError(f"'{NAME}' averages the ranks of other scores, so it cannot be a member of itself.")
        check_fits(score, clf.answer)
    return found


def _table(whole: Whole, member: Score, number: int, count: int) -> NDArray[np.float64]:
    scoring = Scoring(
        whole.clf,
        whole.data,
        member.name,
        mask=whole.mask,
        progress=part(whole.progress, number, count),
        cancel=whole.cancel,
        cache=False if whole.store is None else whole.store,
        budget=whole.budget,
        label_order=whole.label_order,
        checkpoint=whole.checkpoint,
    )
    for _ in scoring.grow():
        pass
    return scoring.result().values


def mean_ranks(tables: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    """[L, H] between 0 and 1. A table without a value for a head does not count for it; NaN where none has one."""
    places = np.array([ranked(table) for table in tables])
    known = ~np.isnan(places)
    with np.errstate(invalid="ignore"):
        out: NDArray[np.float64] = np.where(known, places, 0.0).sum(axis=0) / known.sum(axis=0)
    return out


def ranked(table: NDArray[np.float64]) -> NDArray[np.float64]:
    """Each value's place among the table's values, 0 the lowest and 1 the highest; equal values share one."""
    out = np.full(table.shape, np.nan)
    known = np.isfinite(table)
    if known.any():
        out[known] = (rankdata(table[known]) - 1) / max(1, known.sum() - 1)
    return out
