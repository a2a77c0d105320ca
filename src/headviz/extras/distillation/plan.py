"""The plan of a distillation: one frozen, checked record that can be written as JSON."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import ClassVar

from ...errors import LARGEST_SEED, OptionError
from ...models.source import Source
from ...options import option
from .options import METHODS, IterateOptions, PosteriorOptions, TrainingOptions
from .removal import Removal

TEACHER = "teacher"  # the first piece of work: measure the teacher, collect iterates
STUDENTS = "students"  # the folder below a distillation's own where each piece leaves its model
WORK = "training"  # the folder of the trainings' checkpoints
ITERATES = "iterates"  # the folder of the teacher's iterates


@dataclass(frozen=True)
class DistillationPlan(Source):
    """What is removed, how students are made and with which seeds. ``model`` is the teacher.

    The plan does not say where results go.

    >>> import headviz
    >>> headviz.DistillationPlan("demo", "demo", "layers:3,4", inits=("random", "copy")).inits
    ('random', 'copy')
    """

    called: ClassVar[str] = "option of a distillation"

    remove: str = option(
        help="heads:3.5,7.0 or layers:4 or ffn:2 (of a translator heads:cross.1.5, layers:decoder.2), or attention for "
        "a recurrent translator; parts are joined by +. heads-v, heads-qkv, heads-all, attention-keys, attention:2 and "
        "attention:4 remove the same by zeros in other weights",
        metavar="PART",
    )
    inits: tuple[str, ...] = option(
        ("random", "copy"),
        "how students start; kd and kd-copy also learn the teacher's logits",
        METHODS,
        each="initialisation",
        title="Students start from",
        flag="init",
        metavar="A[,B]",
    )
    seeds: tuple[int, ...] = option(
        (0,),
        "each student is trained once for every seed",
        most=LARGEST_SEED,
        each="seed",
        title="Seeds",
        metavar="0,1,2",
    )
    training: TrainingOptions = option(TrainingOptions, flag="")
    posterior: PosteriorOptions = option(PosteriorOptions, flag="")
    iterates: IterateOptions = option(IterateOptions, flag="")
    trainings: tuple[str, ...] | None = option(
        None, "folders of other trainings of the teacher, instead of iterates", metavar="DIR,DIR,…"
    )

    train_split: str = option("train", flag="")
    dev_split: str = option("dev", flag="")
    train_limit: int | None = option(
        None, "training examples", least=1, usual="all", title="Training examples", metavar="N"
    )
    dev_limit: int | None = option(None, "dev examples to measure on", least=1, usual="all", flag="limit", metavar="N")
    beams: int = option(
        1, "translation: measure by a search with so many beams", least=1, most=64, before=1, metavar="N"
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "remove", Removal.parse(self.remove).text)
        super().__post_init__()
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

    @property
    def digest(self) -> str:
        """Identifies the plan; a state belongs to one plan."""
        return hashlib.sha256(json.dumps(self.to_dict(), sort_keys=True).encode()).hexdigest()
