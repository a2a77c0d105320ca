"""The translation demo's data: English sentences with their translation into Veshan, an invented language."""

from __future__ import annotations

import csv
from functools import cache
from typing import NamedTuple

from ...demo.tables import columns, shipped
from ...errors import UserError

SPLITS = ("train", "dev", "unseen")


class Pair(NamedTuple):
    """One sentence in both languages, and what its grammar turns on."""

    source: str
    target: str
    construction: str


@cache
def read_split(split: str) -> tuple[Pair, ...]:
    """The sentences that the task ``demo-translation`` reads."""
    if split not in SPLITS:
        raise UserError(f"The translation demo has no split {split!r}. It has: {', '.join(SPLITS)}.")
    return tuple(map(Pair, *columns(f"translation/{split}.parquet", Pair._fields)))


@cache
def word_list() -> dict[str, tuple[tuple[str, str], ...]]:
    """Kind of word -> Veshan words with their meaning. Verbs and adjectives are stems, which end in a hyphen."""
    with shipped("translation/words.tsv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    kinds = dict.fromkeys(row["kind"] for row in rows)
    return {kind: tuple((row["veshan"], row["english"]) for row in rows if row["kind"] == kind) for kind in kinds}
