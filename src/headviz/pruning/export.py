"""``headviz.export``: a classifier as ONNX in float32 or int8, with what that changes and how fast it runs."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from ..errors import OptionError, is_one_of, unknown_choice
from ..evaluation.paired import Paired, paired
from ..evaluation.plain import BATCH_TOKENS, batches, class_order, encode_data, gold_for
from ..models.classifier import Classifier
from ..models.loading import load
from ..models.network import require_model
from ..models.onnx import Session, export_onnx, require_onnx
from ..models.saving import plain_config, write_folder
from ..models.source import EXPORTED
from ..progress import Cancel, Progress, tracked
from ..results import Result
from .latency import Timer, in_pairs

if TYPE_CHECKING:
    from torch import Tensor

    from ..tasks import Dataset

FILE = "model.onnx"  # where optimum and sentence-transformers look for it


@dataclass(frozen=True)
class Exported(Result):
    """A folder with ``model.onnx``, and how the file compares with the model in PyTorch on this machine.

    ``agreement`` is the share of examples with the same answer, None without data or classes; ``change`` is that of the
    task's first metric, None without gold answers.
    """

    path: Path
    precision: str
    bytes: int  # of the file
    batch: int
    length: int
    threads: int
    seconds_per_batch: float
    torch_seconds: float
    speedup: float  # over PyTorch, with a 95 % interval of interleaved pairs
    speedup_low: float
    speedup_high: float
    n: int = 0  # examples that were compared
    agreement: float | None = None
    agreement_low: float | None = None
    change: Paired | None = None


def export(
    model: Classifier | str | Path,
    out: str | Path,
    precision: str = "float32",
    *,
    data: Dataset | None = None,
    head_mask: bool = False,
    batch: int = 32,
    length: int | None = None,
    label_order: Sequence[str] | str | None = None,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
) -> Exported:
    """Write a classifier, or the one in a folder, as ONNX into the new folder ``out``, with its tokenizer and settings.

    ``precision="int8"`` quantises the matrices, channel by channel, with ONNX Runtime's dynamic quantiser. A float32
    file must give the model's logits to 1e-4, or nothing is kept. What int8 changes is measured on ``data``.
    ``head_mask`` adds an input [L, H] that switches heads off. The time is that of ``batch`` texts of ``length``
    tokens, in turn with PyTorch's on the same threads. It needs the extra ``headviz[onnx]``.

    >>> import headviz
    >>> headviz.export("demo", "demo-onnx", "int8").precision  # doctest: +SKIP
    'int8'
    """
    if not is_one_of(precision, EXPORTED):
        raise OptionError(unknown_choice("precision", precision, EXPORTED))
    require_onnx()
    clf: Any = load(model, device="cpu") if isinstance(model, str | Path) else model
    require_model(clf)
    clf.check_classes()
    timer = Timer(clf, batch, length)

    def write(into: Path) -> None:
        with tempfile.TemporaryDirectory() as place:
            if precision == "int8":
                quantise(export_onnx(clf, Path(place) / FILE, head_mask), into / FILE)
            else:
                export_onnx(clf, into / FILE, head_mask)
        clf.tokenizer.save_pretrained(into)
        plain_config(clf.model.config).save_pretrained(into)

    folder = write_folder(Path(out), write)
    threads = torch.get_num_threads()
    session = Session(folder / FILE, threads)
    mask = clf.present.array() if head_mask else None
    speed = in_pairs(lambda: timer(clf), in_runtime(session, timer, mask), progress=progress, cancel=cancel)
    times = (batch, timer.length, threads, speed.after, speed.before, speed.speedup, speed.low, speed.high)
    result = Exported(folder, precision, size_of(folder / FILE), *times)
    if data is None:
        return result

    def runtime(rows: Mapping[str, Tensor]) -> np.ndarray:
        return session.logits(rows, mask)

    (before, after), gold = answers(clf, data, (in_torch(clf), runtime), label_order, progress, cancel)
    change = None if gold is None else paired(gold, before, after, data.task.metrics[0])
    same = paired(before, before, after) if data.answer.decides else None
    agreement = (None, None) if same is None else (1 + same.difference, 1 + same.low)
    return replace(result, n=len(data), agreement=agreement[0], agreement_low=agreement[1], change=change)


def quantise(file: Path, out: Path) -> Path:
    """The ONNX file with its matrices in int8, channel by channel."""
    from onnxruntime.quantization import QuantType, quantize_dynamic

    quantize_dynamic(file, out, per_channel=True, weight_type=QuantType.QInt8)
    return out


def size_of(file: Path) -> int:
    """Bytes of an ONNX file, with those that lie next to it."""
    return sum(part.stat().st_size for part in file.parent.glob(f"{file.name}*"))


def in_runtime(session: Session, timer: Timer, mask: np.ndarray | None = None) -> Callable[[], float]:
    """A call that gives the seconds of the timer's batch in ONNX Runtime."""
    now: Callable[[], float] = time.thread_time if timer.own_time else time.perf_counter

    def call() -> float:
        start = now()
        session.logits(timer.texts, mask)
        return now() - start

    return call


def in_torch(clf: Classifier) -> Callable[[Mapping[str, Tensor]], np.ndarray]:
    return lambda rows: clf.logits(dict(rows)).cpu().numpy()


def answers(
    clf: Classifier,
    data: Dataset,
    ways: Sequence[Callable[[Mapping[str, Tensor]], np.ndarray]],
    label_order: Sequence[str] | str | None = None,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
) -> tuple[list[np.ndarray], np.ndarray | None]:
    """The answers of each way to all examples, and the gold ones. A way gives a batch's logits."""
    order, encodings = class_order(clf, data, label_order), encode_data(clf, data)
    logits = np.zeros((len(ways), len(data), len(clf.labels) or 1), dtype=np.float32)
    groups = list(batches([len(e) for e in encodings], BATCH_TOKENS))
    for index in tracked(groups, progress, cancel):
        rows = clf.collate([encodings[i] for i in index])
        for own, way in zip(logits, ways, strict=True):
            own[index] = way(rows)
    return [clf.answer.plain(own) for own in logits], gold_for(data, order)
