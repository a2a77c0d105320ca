"""Examples per second before and after really removing heads. [M §5, Table 4]

The arithmetic ceiling stands beside the measurement: heads are only a part of the work, so removing half of them
can never double the speed.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import OptionError
from ..heads import HeadMask
from ..models.pruning import prune
from ..progress import Cancel, Progress, after, tracked
from ..results import Result

if TYPE_CHECKING:
    from torch import Tensor

    from ..models.classifier import Classifier

BATCHES = (1, 4, 16, 64)


@dataclass(frozen=True)
class SpeedRow(Result):
    """One batch size; speeds are examples per second, mean and standard deviation over the repeats."""

    batch: int
    full: float
    full_sd: float
    pruned: float
    pruned_sd: float
    ratio: float  # of the median times of one batch: robust to a repeat that was disturbed

    def extra(self) -> dict[str, Any]:
        return {"examples_per_second": [self.full, self.pruned]}


@dataclass(frozen=True)
class Speed(Result):
    """``ceiling`` is the ratio of the matrix products' FLOPs: what no implementation can beat by removing heads."""

    model: str
    mask: HeadMask
    length: int
    repeats: int
    threads: int
    device: str
    ceiling: float
    parameters: tuple[int, int]
    flops: tuple[int, int]
    rows: tuple[SpeedRow, ...]


def speed(
    clf: Classifier,
    mask: HeadMask,
    *,
    batches: Sequence[int] = BATCHES,
    length: int = 128,
    repeats: int = 7,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
) -> Speed:
    """Time both models in turn on random full-length texts; the first round warms up and is not counted."""
    import torch

    if repeats < 2:
        raise OptionError("A standard deviation needs at least 2 repeats.")
    if not 1 <= length <= clf.max_length:
        raise OptionError(f"length must be between 1 and {clf.max_length} tokens, not {length}.")
    small = prune(clf, mask)
    models = (clf, small)
    rows, total = [], len(batches) * (repeats + 1)
    for number, size in enumerate(batches):
        batch = _random_batch(clf, size, length)
        seconds: tuple[list[float], list[float]] = ([], [])
        told = after(progress, number * (repeats + 1), total)
        for turn in tracked(range(repeats + 1), told, cancel):
            for which, model in enumerate(models):
                took = _time(model, batch)
                if turn:
                    seconds[which].append(took)
        rate = [size / np.array(s) for s in seconds]
        rows.append(
            SpeedRow(
                size,
                float(rate[0].mean()),
                float(rate[0].std(ddof=1)),
                float(rate[1].mean()),
                float(rate[1].std(ddof=1)),
                float(np.median(seconds[0]) / np.median(seconds[1])),
            )
        )
    whole, cut = clf.cost(length=length), small.cost(length=length)
    return Speed(
        clf.name,
        small.present,
        length,
        repeats,
        torch.get_num_threads(),
        str(clf.device),
        whole.flops / cut.flops,
        (whole.parameters, cut.parameters),
        (whole.flops, cut.flops),
        tuple(rows),
    )


def _random_batch(clf: Classifier, size: int, length: int) -> dict[str, Tensor]:
    import torch

    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(0, int(clf.config.vocab_size), (size, length), generator=generator)
    pad = clf.tokenizer.pad_token_id
    if pad is not None:  # a padding token in the middle would shift the positions of some families
        ids[ids == pad] = (pad + 1) % int(clf.config.vocab_size)
    batch = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    return {k: v.to(clf.device) for k, v in batch.items()}


def _time(clf: Classifier, batch: dict[str, Tensor]) -> float:
    import torch

    wait = torch.cuda.synchronize if clf.device.type == "cuda" else None
    if wait is not None:
        wait()
    start = time.perf_counter()
    clf.logits(batch)
    if wait is not None:
        wait()
    return time.perf_counter() - start
