"""The plan of a distillation: one frozen, checked record that can be written as JSON."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ...errors import OptionError, seed_number, whole_number
from ...pruning.options import Source, choice, read_options, tuples, without_repeats
from ...results import plain
from .options import METHODS, IterateOptions, PosteriorOptions, TrainingOptions
from .removal import Removal

TEACHER = "teacher"  # the first piece of work: measure the teacher, collect iterates
STUDENTS = "students"  # the folder below a distillation's own where each piece leaves its model
WORK = "training"  # the folder of the trainings' checkpoints
ITERATES = "iterates"  # the folder of the teacher's iterates


LATER = {"beams": 1, "job": None}  # fields that earlier versions do not have, as they had it


@dataclass(frozen=True)
class DistillationPlan(Source):
    """What is removed, how students are made and with which seeds. ``model`` is the teacher.

    The plan does not say where results go.

    >>> import headviz
    >>> headviz.DistillationPlan("demo", "demo", "layers:3,4", inits=("random", "copy")).inits
    ('random', 'copy')
    """

    remove: str
    inits: tuple[str, ...] = ("random", "copy")
    seeds: tuple[int, ...] = (0,)
    training: TrainingOptions = field(default_factory=TrainingOptions)
    posterior: PosteriorOptions = field(default_factory=PosteriorOptions)
    iterates: IterateOptions = field(default_factory=IterateOptions)
    trainings: tuple[str, ...] | None = None  # folders of other trainings of the teacher, in place of iterates

    train_split: str = "train"
    dev_split: str = "dev"
    train_limit: int | None = None
    dev_limit: int | None = None
    beams: int = 1  # of the search by which translations are measured

    def __post_init__(self) -> None:
        super().__post_init__()
        tuples(self, "inits", "seeds", "trainings")
        groups = {"training": TrainingOptions, "posterior": PosteriorOptions, "iterates": IterateOptions}
        for name, kind in groups.items():
            given = getattr(self, name)
            if not isinstance(given, kind):
                object.__setattr__(self, name, read_options(kind, given, f"{name} option"))
        object.__setattr__(self, "remove", Removal.parse(self.remove).text)
        if not self.inits:
            raise OptionError(f"Name at least one initialisation. Choose among: {', '.join(METHODS)}.")
        for init in self.inits:
            choice(init, "initialisation", METHODS)
        without_repeats(self.inits, "initialisation")
        without_repeats(self.seeds, "seed")
        for seed in self.seeds:
            seed_number(seed)
        whole_number(self.beams, "beams", 1)
        self._check_rank()

    def _check_rank(self) -> None:
        rank, count = (self.posterior.rank, self.iterates.count if self.trainings is None else len(self.trainings))
        if not self.needs_posterior:
            return
        if count < 2:
            raise OptionError(f"A covariance needs at least 2 trainings, and there are {count}. Name more.")
        if rank is not None and rank > count - 1:
            what = "iterates" if self.trainings is None else "trainings"
            raise OptionError(
                f"A covariance of rank {rank} needs at least {rank + 1} {what}, and there are {count}. "
                f"Collect more, or ask for rank {count - 1} or less."
            )

    @property
    def needs_posterior(self) -> bool:
        return any(METHODS[init].needs_posterior for init in self.inits)

    @property
    def pieces(self) -> tuple[str, ...]:
        """Names of the students' trainings, in the order one machine does them."""
        return tuple(f"{init}-s{seed}" for seed in self.seeds for init in self.inits)

    def piece(self, name: str) -> tuple[str, int]:
        """Initialisation and seed of a training."""
        init, _, seed = name.rpartition("-s")
        return init, int(seed)

    def to_dict(self) -> dict[str, Any]:
        """JSON's own types; ``from_dict`` reads them back to an equal plan.

        Later fields at their defaults are left out, so that the plan of an older version keeps its digest.
        """
        written = {**dataclasses.asdict(self), "training": self.training.record}
        found: dict[str, Any] = plain({k: v for k, v in written.items() if k not in LATER or v != LATER[k]})
        return found

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> DistillationPlan:
        return read_options(cls, given, "option of a distillation")

    @property
    def digest(self) -> str:
        """Identifies the plan; a state belongs to one plan."""
        return hashlib.sha256(json.dumps(self.to_dict(), sort_keys=True).encode()).hexdigest()
