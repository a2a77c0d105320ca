"""From per-example values of every head to a score with its uncertainty, and how stable its ranking is.

A unit is what is drawn and counts as independent: an example, or a query with all its passages.

Shapes: n examples, U units, L layers, H heads, R resamples.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy
from numpy.typing import NDArray

from ..heads import in_lowest
from ..statistics.significance import LEVEL

RESAMPLES = 200
ROLE = "role/"  # begins a role's name among the tables
BOTTOM = 0.2  # share of heads whose membership tells how stable a ranking is

_NORMAL_QUARTILES = 1.349  # their distance, in standard deviations of a normal distribution

Table = NDArray[np.float64]
Counts = NDArray[np.float64]  # [R, U] how often each unit occurs in each resample


@dataclass(frozen=True)
class Summary:
    """A score's table with its uncertainty; NaN = not known."""

    values: Table  # [L, H]
    stderr: Table
    low: Table
    high: Table
    undefined: NDArray[np.int64]  # [L, H] examples without a value
    rows: int = 0  # units, or batches, that can be drawn again
    resample: Callable[[Counts], NDArray] | None = None  # the values [R, L, H] of such draws
    per: NDArray | None = None  # [rows, L, H] what the values are means of, where it is worth keeping
    roles: dict[str, NDArray] | None = None  # [L, H] each, of a score that tells several

    @property
    def tables(self) -> dict[str, NDArray]:
        """All that ``of`` needs."""
        tables = {name: getattr(self, name) for name in ("values", "stderr", "low", "high", "undefined")}
        tables |= {ROLE + name: table for name, table in (self.roles or {}).items()}
        return tables if self.per is None else {**tables, "per": self.per}

    @classmethod
    def of(cls, tables: Mapping[str, NDArray]) -> Summary:
        """A summary from its tables."""
        if "per" in tables:
            return replace(mean(tables["per"]), per=tables["per"])
        roles = {name.removeprefix(ROLE): table for name, table in sorted(tables.items()) if name.startswith(ROLE)}
        summary = cls(tables["values"], tables["stderr"], tables["low"], tables["high"], tables["undefined"])
        return replace(summary, roles=roles or None)


def ties_broken(values: Table, by: Table) -> Table:
    """The values, with ties broken by ``by``, by less than a thousandth of the smallest difference of two."""
    measured = np.isfinite(values) & np.isfinite(by)
    distinct = np.unique(values[measured].round(12))
    least = np.diff(distinct).min() if len(distinct) > 1 else 1.0
    rank = scipy.stats.rankdata(by[measured], method="dense")
    result = values.copy()
    result[measured] += 1e-3 * least * (rank - 1) / len(rank)
    return result


def mean(per: NDArray, units: NDArray | None = None) -> Summary:
    """Mean over the examples that have a value; [n, ...] with NaN for those that have none.

    ``units`` [n] numbers the unit of each example, None = each is one. Examples of one unit are not independent: the
    standard error is that of a ratio of sums over units, and whole units are drawn again.
    """
    per = per.astype(np.float64)
    has_value = ~np.isnan(per)
    count = has_value.sum(axis=0)
    filled, members = np.where(has_value, per, 0.0), has_value.astype(float)
    with np.errstate(invalid="ignore", divide="ignore"):
        values = np.where(count > 0, filled.sum(axis=0) / count, np.nan)
        residuals = np.where(has_value, per - values, 0.0)
        if units is not None and len(np.unique(units)) < len(units):
            residuals, filled, members = (_of_units(table, units) for table in (residuals, filled, members))
        n = (members > 0).sum(axis=0)
        of_units = np.sqrt((residuals**2).sum(axis=0) / (n - 1) / n)
        stderr = np.where(n > 1, of_units * (n / count), np.nan)
        half = stderr * scipy.special.stdtrit(n - 1, (1 + LEVEL) / 2)

    def resample(counts: Counts) -> NDArray:
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.tensordot(counts, filled, 1) / np.tensordot(counts, members, 1)

    return Summary(values, stderr, values - half, values + half, len(per) - count, len(filled), resample)


def _of_units(per: NDArray, units: NDArray) -> NDArray[np.float64]:
    """[U, ...] the sums over each unit's examples."""
    unit = np.unique(units, return_inverse=True)[1]
    sums = np.zeros((int(unit.max()) + 1, *per.shape[1:]))
    np.add.at(sums, unit, per)
    return sums


def mean_of(tables: NDArray | Sequence[NDArray]) -> NDArray[np.float64]:
    """The mean over the first axis, of the values that there are."""
    stack = np.asarray(tables, dtype=float)
    finite = np.isfinite(stack)
    count = finite.sum(axis=0)
    sums = np.where(finite, stack, 0.0).sum(axis=0)
    return np.divide(sums, count, out=np.full(count.shape, np.nan), where=count > 0)


def total(per: NDArray, units: NDArray | None = None) -> Summary:
    """Sum over the examples."""
    return _rescaled(mean(per, units), lambda table, values: table * float(len(per)))


def layer_normed(s: Summary, on: NDArray[np.bool_]) -> Summary:
    """Each layer divided by its l2 norm over the heads that are on; a layer of zeros stays as it is.

    The norm counts as exact in the standard errors: they are those of a head against its layer.
    """

    def scale(table: NDArray, values: NDArray) -> NDArray:
        norm = np.sqrt((np.where(on, np.nan_to_num(values), 0.0) ** 2).sum(axis=-1, keepdims=True))
        return table / np.where(norm > 0, norm, 1.0)

    return _rescaled(s, scale)


def _rescaled(s: Summary, scale: Callable[[NDArray, NDArray], NDArray]) -> Summary:
    """Every table as ``scale(table, values)``; values of a resample are scaled by themselves."""
    resample = s.resample
    values, stderr, low, high = (scale(table, s.values) for table in (s.values, s.stderr, s.low, s.high))
    scaled = None if resample is None else lambda counts: scale(drawn := resample(counts), drawn)
    return Summary(values, stderr, low, high, s.undefined, s.rows, scaled)


def exact(values: NDArray) -> Summary:
    """A table that is computed without examples, so without uncertainty."""
    unknown = np.full(values.shape, np.nan)
    return Summary(values.astype(np.float64), unknown, unknown, unknown, np.zeros(values.shape, np.int64))


def summarised(values: Summary | NDArray, units: NDArray) -> Summary:
    """What a score's function returned: a summary, values per example [n, L, H], or a table [L, H]."""
    if isinstance(values, Summary):
        return values
    return mean(values, units) if values.ndim == 3 else exact(values)


def draw(n: int, seed: int = 0, resamples: int = RESAMPLES) -> Counts:
    """Bootstrap samples of n units, as counts [R, n]."""
    return np.random.default_rng(seed).multinomial(n, np.full(n, 1 / n), size=resamples).astype(float)


def stability(s: Summary, on: NDArray[np.bool_]) -> float:
    """Expected share of the bottom 20 % of heads that another sample of this size would agree on.

    It is the mean overlap of pairs of resamples. Sampling noise also spreads the values themselves, so these are
    first moved towards their median by that much. Heads that tie are put in random order, another one in each resample.
    1 = the ranking is settled; BOTTOM = no better than chance. NaN with fewer than two units.
    """
    measured = on & ~np.isnan(s.values)
    k = round(BOTTOM * int(measured.sum()))
    if s.resample is None or s.rows < 2 or k == 0:
        return float("nan")
    values = s.values[measured]
    noise = s.resample(draw(s.rows))[:, measured] - values  # [R, heads]; NaN = no value in this resample
    noise = noise[~np.isnan(noise).all(axis=1)]
    if len(noise) < 2:
        return float("nan")
    median = np.median(values)
    lowest = in_lowest(median + _signal_share(values, noise) * (values - median) + noise, k)
    pairs = len(lowest) // 2
    return float((lowest[:pairs] * lowest[pairs : 2 * pairs]).sum() / (k * pairs))


def _signal_share(values: NDArray, noise: NDArray) -> float:
    """The spread of the heads without sampling noise, as a share of the spread observed; [heads], [R, heads].

    From medians and quartiles, so that a few heads with large values and large noise do not decide.
    """
    shift = np.nanmedian(noise, axis=1, keepdims=True)  # of all heads at once: it does not change the ranking
    noise_variance = float(np.nanmedian(np.nanvar(noise - shift, axis=0)))
    low, high = np.quantile(values, (0.25, 0.75))
    variance = ((high - low) / _NORMAL_QUARTILES) ** 2
    return float(np.sqrt(max(0.0, 1 - noise_variance / variance))) if variance > 0 else 1.0
