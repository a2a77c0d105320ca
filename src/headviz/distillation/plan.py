"""What a distillation shall do: one frozen, checked, JSON-serialisable record."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..errors import OptionError
from .methods import METHODS, get_method
from .options import IterateOptions, PosteriorOptions, TrainingOptions, read_options
from .removal import Removal

TEACHER = "teacher"  # the first piece of work: measure the teacher, collect iterates
STUDENTS = "students"  # the folder below a distillation's own where each piece leaves its model


@dataclass(frozen=True)
class DistillationPlan:
    """A removal, the ways to make a student, and how many of each. It does not say where results go."""

    model: str  # the teacher
    task: str
    remove: str
    inits: tuple[str, ...] = ("random", "copy")
    seeds: tuple[int, ...] = (0,)
    training: TrainingOptions = field(default_factory=TrainingOptions)
    posterior: PosteriorOptions = field(default_factory=PosteriorOptions)
    iterates: IterateOptions = field(default_factory=IterateOptions)
    trainings: tuple[str, ...] | None = None  # folders of other trainings of the teacher, in place of iterates

    revision: str | None = None
    device: str = "auto"
    data: str | None = None
    text_columns: tuple[str, ...] | None = None
    label_column: str | None = None
    label_order: tuple[str, ...] | None = None
    train_split: str = "train"
    dev_split: str = "dev"
    train_limit: int | None = None
    dev_limit: int | None = None

    def __post_init__(self) -> None:
        for name in ("inits", "seeds", "trainings", "text_columns", "label_order"):
            if isinstance(getattr(self, name), list):
                object.__setattr__(self, name, tuple(getattr(self, name)))
        for name, kind in (
            ("training", TrainingOptions),
            ("posterior", PosteriorOptions),
            ("iterates", IterateOptions),
        ):
            object.__setattr__(self, name, read_options(kind, getattr(self, name), f"{name} option"))
        object.__setattr__(self, "remove", Removal.parse(self.remove).text)
        for name in ("model", "task"):
            if not isinstance(getattr(self, name), str) or not getattr(self, name).strip():
                raise OptionError(f"The plan needs a {name}.")
        if not self.inits:
            raise OptionError(f"Name at least one initialisation. Choose among: {', '.join(METHODS)}.")
        for init in self.inits:
            get_method(init)
        if not self.seeds:
            raise OptionError("Give at least one seed, such as 0.")
        for what, values in (("initialisation", self.inits), ("seed", self.seeds)):
            if len(set(values)) < len(values):
                raise OptionError(f"Each {what} may be given once; {', '.join(map(str, values))} repeats one.")
        for seed in self.seeds:
            if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
                raise OptionError(f"A seed is a whole number from 0 up, not {seed!r}.")
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
        """JSON's own types; ``from_dict`` reads them back to an equal plan."""
        plain: dict[str, Any] = json.loads(json.dumps(dataclasses.asdict(self)))
        return plain

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> DistillationPlan:
        return read_options(cls, given, "option of a distillation")

    @property
    def digest(self) -> str:
        """Identifies the plan; a state belongs to one plan."""
        return hashlib.sha256(json.dumps(self.to_dict(), sort_keys=True).encode()).hexdigest()
