"""A score of pre-trained weights: their classifier is a fresh one, so the table is a mean over several.

Fresh heads give random answers, so the mean of signed correlations is near zero by construction. Therefore the note of
such a table has the mean of |ρ|, taken under each fresh head before the mean.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy

from ..heads import HeadScores
from .catalogue import correlates


def averaged(tables: Sequence[HeadScores]) -> HeadScores:
    """The mean over fresh heads; its interval is over the heads' seeds."""
    stack = np.stack([t.values for t in tables])
    mean, n = stack.mean(axis=0), len(tables)
    error = stack.std(axis=0, ddof=1) / np.sqrt(n)
    half = error * scipy.special.stdtrit(n - 1, 0.975)
    first, known = tables[0], stack[np.isfinite(stack)]
    note = f"mean over {n} fresh classification heads on the pre-trained encoder"
    if correlates(first.score) and known.size:
        signed, absolute = (f"{v:.3f}".replace("-", "−") for v in (known.mean(), np.abs(known).mean()))
        note += f": mean {signed}, near zero as they answer at random; mean |ρ| under each of them {absolute}"
    return HeadScores(
        score=first.score,
        values=mean,
        stderr=error,
        interval_low=mean - half,
        interval_high=mean + half,
        samples=first.samples,
        undefined=max(t.undefined for t in tables),
        undefined_by_head=first.undefined_by_head,
        mask=first.mask,
        stability=float("nan"),
        settings={**first.settings, "fresh_heads": n},
        notes=(note,),
    )
