"""Seeded draws within strata that do not depend on the order of the file.

Each example gets a rank from a keyed hash of its content, and a draw of k takes the k lowest ranks. So a shuffled
file gives the same examples, and a larger draw contains the smaller one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..errors import OptionError, seed_number
from .dataset import Dataset


def ranks(data: Dataset, seed: int) -> np.ndarray:
    """A pseudo-random rank (uint64) for each example, from its content and the seed.

    Copies of an example get different ranks, so that they are drawn independently.
    """
    seed_number(seed)
    key = hashlib.sha256(f"headviz-draw-{seed}".encode()).digest()
    seen: dict[bytes, int] = {}
    out = np.empty(len(data), dtype=np.uint64)
    labels = ["" for _ in data.texts] if data.labels is None else [repr(v) for v in data.labels.tolist()]
    pairs = data.pairs or ("",) * len(data)
    slices = data.slices or ("",) * len(data)
    for i, parts in enumerate(zip(data.texts, pairs, labels, slices, strict=True)):
        content = "\0".join(parts).encode("utf-8", "surrogatepass")
        copy = seen.get(content, 0)
        seen[content] = copy + 1
        digest = hashlib.blake2b(content, digest_size=8, key=key, salt=copy.to_bytes(8, "little")).digest()
        out[i] = int.from_bytes(digest, "little")
    return out


def proportional(counts: Mapping[Any, int], total: int) -> dict[Any, int]:
    """Share ``total`` in proportion to the counts, by largest remainder; never more than a count."""
    size = sum(counts.values())
    exact = {key: total * count / size for key, count in counts.items()}
    share = {key: int(value) for key, value in exact.items()}
    by_remainder = sorted(counts, key=lambda k: (share[k] - exact[k], -counts[k], str(k)))
    for key in by_remainder[: total - sum(share.values())]:
        share[key] += 1
    return share


def limited(data: Dataset, limit: int, seed: int) -> np.ndarray:
    """Positions of ``limit`` examples, stratified by label, then by slice; in file order."""
    if isinstance(limit, bool) or not isinstance(limit, int | np.integer) or limit < 1:
        raise OptionError(f"The limit is a number of examples from 1 up, not {limit!r}.")
    if limit >= len(data):
        return np.arange(len(data))
    rank = ranks(data, seed)
    group = np.zeros(len(data), dtype=np.int64) if data.labels is None else data.answer.groups(data)[0]
    slices = np.array(data.slices if data.slices is not None else [""] * len(data))
    chosen: list[np.ndarray] = []
    share = proportional(_counts(group), limit)
    for label, wanted in share.items():
        members = np.flatnonzero(group == label)
        inner = proportional(_counts(slices[members]), wanted)
        chosen += [lowest_ranks(members[slices[members] == name], rank, count) for name, count in inner.items()]
    return np.sort(np.concatenate(chosen))


def lowest_ranks(members: np.ndarray, rank: np.ndarray, count: int) -> np.ndarray:
    """The ``count`` members of lowest rank."""
    return members[np.argsort(rank[members], kind="stable")[:count]]


def _counts(values: np.ndarray) -> dict[Any, int]:
    names, counts = np.unique(values, return_counts=True)
    return {name: int(count) for name, count in zip(names.tolist(), counts.tolist(), strict=True)}
