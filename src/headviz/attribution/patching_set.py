"""``headviz.patch_pairs``: patching over many minimal pairs, with an interval and a test for each head."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy

from ..errors import OptionError, TaskError
from ..heads import HeadId, highest
from ..models.network import require_model
from ..progress import Cancel, Progress, tracked
from ..results import Result
from ..statistics.significance import LEVEL, benjamini_hochberg
from ..storage.exchange import MaskLike
from .alignment import ALL
from .patching import Text, check_pairs, patch

if TYPE_CHECKING:
    from ..models.classifier import Classifier
    from ..tasks.readers import Table

LEAST_SPAN = 0.5  # of the measured logit difference: below it a share of it says nothing


@dataclass(frozen=True, eq=False)
class PatchingSet(Result):
    """The effect of each head over a set of pairs, [L, H]: 0 = the answer stays the text's, 1 = it is the donor's.

    ``mean`` has a 95 % interval of Student's t over pairs, ``p_value`` is that of a mean of 0, ``q_value`` by
    Benjamini and Hochberg over all heads. ``n`` pairs were used; ``same_answer`` got one answer for both texts, and
    ``small`` moved what is measured by less than 0.5: both say nothing and are left out.
    """

    mean: np.ndarray
    interval_low: np.ndarray
    interval_high: np.ndarray
    p_value: np.ndarray
    q_value: np.ndarray
    n: int
    same_answer: int
    small: int
    positions: str
    together: np.ndarray  # [n, S] the effect of each of ``sets`` patched as one, in each pair

    def ranked(self) -> list[HeadId]:
        """Heads with a value, the largest mean effect first."""
        return highest(np.abs(self.mean))

    def extra(self) -> dict[str, Any]:
        return {"ranking": self.ranked()}


def pairs_of(table: Table) -> list[tuple[Text, Text]]:
    """The (text, donor) of each row of a table.

    Its columns are text and donor, and text_pair and donor_pair for models that compare two texts; a donor without a
    pair has the text's. Or it has two columns of any name, whose cells may hold two texts with ``|`` between them.
    """
    columns = table.columns
    if len(columns) == 2 and not {"text", "donor"} & set(columns):
        first, second = columns.values()
        return [(_split(a), _split(b)) for a, b in zip(first, second, strict=True)]
    for name in ("text", "donor"):
        if name not in columns:
            raise TaskError(
                f"{table.name} has no column '{name}'. It needs text and donor, and pairs if any, or just two columns."
            )
    own = columns.get("text_pair", [None] * len(table))
    other = columns.get("donor_pair", own)
    rows = zip(columns["text"], own, columns["donor"], other, strict=True)
    return [(_joined(a, b), _joined(c, d or b)) for a, b, c, d in rows]


def _joined(first: Any, second: Any) -> Text:
    return (str(first), str(second)) if second else _split(first)


def _split(cell: Any) -> Text:
    parts = [part.strip() for part in str(cell).split("|")]
    return (parts[0], parts[1]) if len(parts) == 2 else str(cell)


def patch_pairs(
    clf: Classifier,
    pairs: Sequence[tuple[Text, Text]],
    *,
    positions: str = ALL,
    sets: Sequence[Sequence[HeadId | tuple[int, int]]] = (),
    mask: MaskLike | None = None,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
) -> PatchingSet:
    """Patch each (text, donor) as ``headviz.patch`` does, and average the effect of each head over the pairs.

    Raises ``OptionError`` where fewer than two pairs have different answers, and what ``patch`` raises for a pair.

    >>> import headviz
    >>> clf = headviz.load("demo", device="cpu")
    >>> no, yes = ("The dog is not sleeping.", "The dog is sleeping."), ("The dog is sleeping.", "The dog is sleeping.")
    >>> found = headviz.patch_pairs(clf, [(no, yes), (yes, no)])
    >>> found.n, found.mean.shape
    (2, (12, 12))
    """
    check_pairs(pairs)
    require_model(clf)
    effects, together, same, small = [], [], 0, 0
    for text, donor in tracked(pairs, progress, cancel):
        found = patch(clf, text, donor, positions=positions, sets=sets, mask=mask, cancel=cancel)
        if found.from_label == found.to_label:
            same += 1
        elif abs(found.span) < LEAST_SPAN:
            small += 1
        else:
            effects.append(found.effect)
            together.append(found.together)
    if len(effects) < 2:
        raise OptionError(
            f"Of {len(pairs)} pairs {same} have one answer for both texts and {small} hardly move it, so there are "
            "too few to average. Give pairs of which the model answers differently."
        )
    values = np.array(effects)  # [n, L, H]
    n, mean = len(values), values.mean(axis=0)
    error = values.std(axis=0, ddof=1) / np.sqrt(n)
    half = scipy.special.stdtrit(n - 1, (1 + LEVEL) / 2) * error
    with np.errstate(invalid="ignore", divide="ignore"):
        p = 2 * scipy.special.stdtr(n - 1, -np.abs(mean) / error)
    p = np.where((error == 0) & (mean == 0), 1.0, p)  # a head that never moves anything
    q = benjamini_hochberg(p)
    return PatchingSet(mean, mean - half, mean + half, p, q, n, same, small, positions, np.array(together))
