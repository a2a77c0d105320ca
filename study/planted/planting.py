"""The members of the family: their grids, which head has which part, and the texts that they read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from headviz.heads import HeadId

ABILITIES = 5
CLASSES = ("first", "second", "third")
FILLERS = tuple(f"{a}{b}" for a in "bdfgklmnprst" for b in ("a", "e", "i", "o", "u"))
TRIGGERS = tuple(tuple(f"x{a}{c}" for c in "abc") for a in "abcde")  # [ability][class]
LENGTHS = (5, 13)
HARMFUL, BACKUP = "harmful", "backup"


@dataclass(frozen=True)
class Planting:
    """One model. With ``backup`` the last two abilities have two heads each, either of which will do."""

    name: str
    seed: int
    layers: int
    heads: int
    per_ability: int = 1
    backup: bool = False
    harmful: int = 0

    @cached_property
    def roles(self) -> tuple[tuple[HeadId, ...], ...]:
        """The heads of each ability, drawn by the seed; then the harmful ones."""
        rng = np.random.default_rng([self.seed, self.layers, self.heads])
        places = [HeadId(int(p) // self.heads, int(p) % self.heads) for p in rng.permutation(self.layers * self.heads)]
        sizes = [2 if self.is_backup(a) else self.per_ability for a in range(ABILITIES)] + [self.harmful]
        ends = np.cumsum(sizes)
        return tuple(tuple(places[end - size : end]) for size, end in zip(sizes, ends, strict=True))

    def is_backup(self, ability: int) -> bool:
        return self.backup and ability >= ABILITIES - 2

    @property
    def needed(self) -> tuple[tuple[HeadId, ...], ...]:
        """The heads of each ability."""
        return self.roles[:ABILITIES]

    @property
    def harmful_heads(self) -> tuple[HeadId, ...]:
        return self.roles[ABILITIES]

    @property
    def idle(self) -> tuple[HeadId, ...]:
        given = {h for heads in self.roles for h in heads}
        every = (HeadId(i, j) for i in range(self.layers) for j in range(self.heads))
        return tuple(h for h in every if h not in given)

    @property
    def loud(self) -> tuple[HeadId, ...]:
        """Every other idle head: it writes noise that changes no answer. The others write nothing."""
        return self.idle[::2]

    @property
    def kinds(self) -> dict[str, frozenset[HeadId]]:
        """The heads of each kind of planting; needed ones under how many share an ability."""
        result: dict[str, set[HeadId]] = {}
        for ability, heads in enumerate(self.needed):
            name = BACKUP if self.is_backup(ability) else f"one of {self.per_ability}"
            result.setdefault(name, set()).update(heads)
        if self.harmful_heads:
            result[HARMFUL] = set(self.harmful_heads)
        return {name: frozenset(heads) for name, heads in result.items()}


FAMILY = (
    Planting("single-6", 0, 6, 6),
    Planting("three-6", 1, 6, 6, per_ability=3),
    Planting("backup-6", 2, 6, 6, backup=True),
    Planting("harmful-6", 3, 6, 6, harmful=3),
    Planting("single-8", 4, 8, 8, harmful=2),
    Planting("thin-8", 5, 8, 8, per_ability=6),
    Planting("backup-8", 6, 8, 8, per_ability=3, backup=True),
    Planting("mixed-9", 7, 9, 9, per_ability=3, backup=True, harmful=3),
    Planting("three-12", 8, 12, 12, per_ability=3, backup=True, harmful=4),
)


@dataclass(frozen=True)
class Text:
    words: str
    label: int
    ability: int


def texts(seed: int, split: str) -> Iterator[Text]:
    """Texts without end; the splits share no random numbers."""
    rng = np.random.default_rng([seed, {"train": 0, "dev": 1}[split]])
    while True:
        ability, label = int(rng.integers(ABILITIES)), int(rng.integers(len(CLASSES)))
        words = list(rng.choice(FILLERS, int(rng.integers(*LENGTHS))))
        words.insert(int(rng.integers(len(words) + 1)), TRIGGERS[ability][label])
        yield Text(" ".join(words), label, ability)
