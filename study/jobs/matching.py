"""Heads of a cross-encoder that look at the same word in the other text (arXiv 2502.04645), and what they cost.

The tenth of the heads with the largest share of attention there, beyond chance, is switched off; so are random sets
with as many heads in each layer.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

import headviz
from headviz import HeadId
from headviz.analyses.common import SIGNIFICANT
from study.jobs.measure import Judge
from study.jobs.record import Record

ROLE = "same word across"
SHARE, SETS = 0.1, 20


def measure(record: Record, judge: Judge, clf: headviz.Classifier, data: headviz.Dataset) -> None:
    """``data`` are those on which the heads are looked for; the judge has others."""
    result = record.part("roles", lambda: looked_for(headviz.roles(clf, data)))
    chosen = [HeadId.parse(head) for head in result["chosen"]]
    if not chosen:
        return
    record.part("matching", lambda: judge.change(clf.full_mask.without(chosen)))
    for number, heads in enumerate(random_sets(clf.full_mask.kept, chosen, SETS)):
        record.part(f"random {number}", lambda heads=heads: judge.change(clf.full_mask.without(heads)))


def looked_for(found: Any) -> dict[str, Any]:
    at = found.relations.index(ROLE)
    excess = np.where(found.q[..., at] < SIGNIFICANT, found.share[..., at] - found.baseline[..., at], -np.inf)
    count = round(SHARE * excess.size)
    order = [HeadId(*map(int, np.unravel_index(i, excess.shape))) for i in np.argsort(-excess, axis=None)]
    chosen = [head for head in order[:count] if np.isfinite(excess[head])]
    first = [head for head, role in found.first().items() if role.name == ROLE]
    return {
        "chosen": [head.dotted for head in chosen],
        "excess": [float(excess[head]) for head in chosen],
        "share": [float(found.share[(*head, at)]) for head in chosen],
        "first role": [head.dotted for head in first],
        "significant": int((found.q[..., at] < SIGNIFICANT).sum()),
    }


def random_sets(heads: list[HeadId], chosen: list[HeadId], count: int, seed: int = 0) -> list[list[HeadId]]:
    """Sets of other heads, in each layer as many as were chosen there, or all others where there are fewer."""
    rng, sets = np.random.default_rng(seed), []
    for _ in range(count):
        one = []
        for layer, size in sorted(Counter(head.layer for head in chosen).items()):
            others = [head for head in heads if head.layer == layer and head not in chosen]
            one += [others[i] for i in sorted(rng.permutation(len(others))[:size])]
        sets.append(one)
    return sets
