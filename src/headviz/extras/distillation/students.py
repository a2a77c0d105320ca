"""Training one student step by step. The result depends on the inputs and the seed only.

A checkpoint is written at every point of the learning curve. A training that was stopped continues from the last one
and ends with the same weights, bit for bit, on the same machine with the same number of threads: batches, dropout and
noise of a step are drawn from the seed and the step's number, so no state of a random generator has to be kept.
"""

from __future__ import annotations

import copy
import hashlib
import json
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.func import functional_call

from ...errors import NotFinite, UserError
from ...progress import Cancel, Progress, stop_if
from ...storage.writing import replacing
from .curves import Point
from .plan import COPY, RANDOM, TEACHER, VARIATIONAL, Method, TrainingOptions
from .posterior import Divergence, Prior, draw, starting_log_sd
from .problem import Batches, Call, Problem, check_forcing

CHECKPOINT = "checkpoint.safetensors"
MOMENTS = ("step", "exp_avg", "exp_avg_sq")  # what AdamW keeps of each weight


class Diverged(UserError):
    """A training whose loss is no longer a number."""

    code = "diverged"


@dataclass(frozen=True, eq=False)
class Student:
    """A trained student and how it got there."""

    subject: Any
    curve: tuple[Point, ...]

    @property
    def metrics(self) -> dict[str, float | None]:
        return self.curve[-1].metrics


def start_weights(subject: Any, problem: Problem, method: Method, prior: Prior | None, seed: int) -> nn.Module:
    """The student's model with the weights it starts from; ``subject`` holds the copied ones."""
    if method.start == RANDOM:
        return problem.fresh(subject.model, seed)
    model: nn.Module = copy.deepcopy(subject.model)
    if method.start == COPY:
        return model
    if prior is None:
        raise ValueError("a conditional start needs a prior")
    mean = prior.mean()
    with torch.no_grad():
        for name, p in model.named_parameters():
            p.copy_(mean[name])
    return model


def train(
    subject: Any,
    problem: Problem,
    method: Method,
    options: TrainingOptions,
    seed: int = 0,
    *,
    prior: Prior | None = None,
    teacher: nn.Module | None = None,
    folder: str | Path | None = None,
    at_step: Callable[[int, nn.Module], None] | None = None,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
) -> Student:
    """Train a student by a method. ``subject`` is the student with the teacher's weights; it is not changed.

    ``teacher`` is needed where the method learns from its logits, ``prior`` where it starts from one. ``at_step`` is
    given the number and the model after each step.
    """
    run = _Run(subject, problem, method, options, seed, prior, teacher)
    place = None if folder is None else Path(folder)
    if place is not None:
        run.resume(place)
    while True:
        if run.lacks_point:
            run.measure(cancel)
            if place is not None:
                run.checkpoint(place)
        if progress is not None:
            progress(run.step, options.steps)
        if run.step == options.steps:
            break
        stop_if(cancel)
        run.advance()
        if at_step is not None:
            at_step(run.step, run.model)
    return Student(run.shown, tuple(run.curve))


class _Run:
    """One training between two steps."""

    def __init__(
        self,
        subject: Any,
        problem: Problem,
        method: Method,
        options: TrainingOptions,
        seed: int,
        prior: Prior | None,
        teacher: nn.Module | None,
    ) -> None:
        if method.objective == TEACHER and teacher is None:
            raise ValueError("learning from a teacher needs the teacher")
        self.problem, self.method, self.options, self.seed = problem, method, options, seed
        check_forcing(subject.model, options)
        self.teacher = teacher
        self.batches = Batches(problem.lengths, options.batch, seed)
        self.model = start_weights(subject, problem, method, prior, seed).requires_grad_(True)
        # measuring freezes the model it is given, so it gets a copy
        self.shown = problem.with_model(subject, copy.deepcopy(self.model))
        self.weights = dict(self.model.named_parameters())
        self.log_sd: dict[str, Tensor] = {}
        self.divergence: Divergence | None = None
        if method.objective == VARIATIONAL:
            assert prior is not None
            device = next(iter(self.weights.values())).device
            self.divergence = Divergence(prior, device)
            self.log_sd = {n: nn.Parameter(starting_log_sd(prior, n).to(device)) for n in self.weights}
        trained: list[dict[str, Any]] = [{"params": [*self.weights.values()]}]
        if self.log_sd:  # a decay of log σ would draw every σ towards 1
            trained.append({"params": [*self.log_sd.values()], "weight_decay": 0.0})
        self.optimizer = torch.optim.AdamW(trained, lr=options.learning_rate, weight_decay=options.weight_decay)
        self.step = 0
        self.curve: list[Point] = []
        self.losses: list[float] = []
        self.kls: list[float] = []
        self.seconds = 0.0

    @property
    def lacks_point(self) -> bool:
        """Whether the curve has a point at this step, and it is not measured yet."""
        return self.options.is_point(self.step) and (not self.curve or self.curve[-1].step < self.step)

    # one step ---------------------------------------------------------------------------------

    def advance(self) -> None:
        start = time.perf_counter()
        index = self.batches.at(self.step)
        for group in self.optimizer.param_groups:
            group["lr"] = self.options.rate_at(self.step)
        with torch.random.fork_rng():
            torch.manual_seed(_noise(self.seed, self.step))
            self.model.train()
            loss, kl = self._loss(index)
            value = float(loss.detach())
            if not math.isfinite(value):
                raise self._diverged("its loss is not a number")
            self.optimizer.zero_grad()
            loss.backward()
        nn.utils.clip_grad_norm_([*self.weights.values(), *self.log_sd.values()], self.options.max_grad_norm)
        self.optimizer.step()
        self.losses.append(value)
        if kl is not None:
            self.kls.append(kl)
        self.step += 1
        self.seconds += time.perf_counter() - start

    def _loss(self, index: Sequence[int]) -> tuple[Tensor, float | None]:
        # only where it is not the default: other models do not know the keyword
        forcing = {"forcing": self.options.forcing} if self.options.forcing < 1 else {}
        call: Call
        if self.divergence is None:
            call = partial(self.model, **forcing)
            logits, gold = self.problem.outputs(call, index)
            if self.method.objective != TEACHER:
                return self._likelihood(logits, gold), None
            return self._distilled(logits, gold, index), None
        sampled = draw(self.weights, self.log_sd)
        call = lambda *args, **kwargs: functional_call(self.model, sampled, args, kwargs | forcing)  # noqa: E731
        logits, gold = self.problem.outputs(call, index)
        kl = self.divergence(self.weights, self.log_sd)
        weight = self.options.kl_weight_at(self.step) / self.problem.observations
        return self._likelihood(logits, gold) + weight * kl, float(kl.detach())

    def _likelihood(self, logits: Tensor, gold: Tensor) -> Tensor:
        return self.problem.rows.loss(logits, gold)

    def _distilled(self, logits: Tensor, gold: Tensor, index: Sequence[int]) -> Tensor:
        assert self.teacher is not None
        with torch.no_grad():
            teacher_logits, _ = self.problem.outputs(self.teacher.eval(), index)
        imitation = self.problem.rows.imitated(logits, teacher_logits, self.options.temperature)
        share = self.options.teacher_share
        return share * imitation + (1 - share) * self._likelihood(logits, gold)

    def _diverged(self, what: str) -> Diverged:
        return Diverged(
            f"The training diverged: {what} any more at step {self.step} of {self.options.steps}. Lower the learning "
            f"rate (it is {self.options.learning_rate:g})."
        )

    # points and checkpoints -------------------------------------------------------------------

    def measure(self, cancel: Cancel | None) -> None:
        self._show()
        try:
            measured = self.problem.measure(self.shown, cancel)
        except NotFinite as error:
            raise self._diverged("the student's answers are not numbers") from error
        metrics = {name: (float(v) if math.isfinite(v) else None) for name, v in measured.items()}
        loss = sum(self.losses) / len(self.losses) if self.losses else None
        size = sum(w.numel() for w in self.weights.values())
        kl = sum(self.kls) / len(self.kls) / size if self.kls else None
        self.curve.append(Point(self.step, metrics, loss, kl, self.seconds))
        self.losses, self.kls = [], []

    def _show(self) -> None:
        with torch.no_grad():
            for name, p in self.shown.model.named_parameters():
                p.copy_(self.weights[name])

    def _fingerprint(self) -> str:
        start = hashlib.sha256()
        for w in self.weights.values():
            start.update(w.detach().cpu().contiguous().numpy().tobytes())
        method = self.method
        facts = [method.start, method.objective, self.options.to_dict(), self.seed, self.problem.digest]
        return hashlib.sha256(f"{json.dumps(facts)}{start.hexdigest()}".encode()).hexdigest()

    def resume(self, place: Path) -> None:
        """Continue from the checkpoint of this very training, if there is one."""
        self.fingerprint = self._fingerprint()
        if not (place / CHECKPOINT).exists():
            return
        try:
            with safe_open(place / CHECKPOINT, framework="pt") as file:
                about = json.loads(file.metadata()["about"])
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        except (OSError, SafetensorError, KeyError, ValueError):
            return  # damaged: the training starts again, which costs time but gives the same result
        if about["fingerprint"] != self.fingerprint:
            raise UserError(
                f"'{place}' holds the checkpoint of another training. Remove the folder, or choose another."
            )
        with torch.no_grad():
            for kind, group in (("w", self.weights), ("s", self.log_sd)):
                for name, p in group.items():
                    p.copy_(tensors[f"{kind}/{name}"])
        if about["step"]:
            state = {
                i: {part: tensors[f"{part}/{i}"] for part in MOMENTS}
                for i in range(len(self.weights) + len(self.log_sd))
                if f"step/{i}" in tensors  # fixed position tables get no gradient and have no state
            }
            self.optimizer.load_state_dict({**self.optimizer.state_dict(), "state": state})
        self.step = about["step"]
        self.seconds = about["curve"][-1]["seconds"]
        self.curve = [Point(**p) for p in about["curve"]]
        self._show()

    def checkpoint(self, place: Path) -> None:
        place.mkdir(parents=True, exist_ok=True)
        tensors = {f"w/{n}": p.detach() for n, p in self.weights.items()}
        tensors |= {f"s/{n}": p.detach() for n, p in self.log_sd.items()}
        for i, state in self.optimizer.state_dict()["state"].items():
            tensors |= {f"{part}/{i}": torch.as_tensor(state[part]) for part in MOMENTS}
        about = {"fingerprint": self.fingerprint, "step": self.step, "curve": [p.to_dict() for p in self.curve]}
        tensors = {n: t.cpu().contiguous() for n, t in tensors.items()}
        with replacing(place / CHECKPOINT) as path:
            save_file(tensors, path, metadata={"about": json.dumps(about)})


def _noise(seed: int, step: int) -> int:
    return int.from_bytes(hashlib.sha256(f"headviz-student-{seed}-{step}".encode()).digest()[:8], "little") >> 1
