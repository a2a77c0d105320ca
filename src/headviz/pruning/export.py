"""``headviz.export``: a model as ONNX in float32 or int8, with what that changes and how fast it runs."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from ..errors import ModelError, OptionError, is_one_of, unknown_choice
from ..evaluation.paired import Paired, paired, paired_change, same_answers
from ..evaluation.plain import BATCH_TOKENS, batches, class_order
from ..models import EXPORTED
from ..models.classifier import Classifier
from ..models.feed_forward import neurons
from ..models.loading import load
from ..models.network import require_model
from ..models.onnx import Session, export_onnx, files_of, require_onnx
from ..models.places import fitted
from ..models.saving import plain_config, write_folder
from ..progress import Cancel, Progress, tracked
from ..results import Result
from ..storage.writing import replace_file
from .latency import Timer, in_pairs

if TYPE_CHECKING:
    from torch import Tensor

    from ..tasks import Dataset

FILE = "model.onnx"  # where optimum and sentence-transformers look for it


@dataclass(frozen=True)
class Exported(Result):
    """A folder with ``model.onnx``, and how the file compares with the model in PyTorch on this machine.

    ``agreement`` is the share of examples with the same answer, None without data or where an answer is a number;
    ``change`` is that of the task's first metric, None without gold answers.
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
    """Write a model, or the one in a folder, as ONNX into the new folder ``out``, with its tokenizer and settings.

    ``precision="int8"`` quantises the matrices, channel by channel, with ONNX Runtime's dynamic quantiser. A float32
    file must give the model's outputs to 1e-4, or nothing is kept. What int8 changes is measured on ``data``.
    ``head_mask`` adds an input [L, H] that switches heads off. The time is that of ``batch`` texts of ``length``
    tokens, in turn with PyTorch's on the same threads. It needs the extra ``headviz[onnx]``.

    >>> import headviz
    >>> headviz.export("demo", "demo-onnx", "int8").precision  # doctest: +SKIP
    'int8'
    """
    if not is_one_of(precision, EXPORTED):
        raise OptionError(unknown_choice("precision", precision, EXPORTED))
    clf: Any = load(model, device="cpu") if isinstance(model, str | Path) else model
    require_model(clf)
    require_onnx(clf)
    data = None if data is None else clf.answer.judged(data)
    timer = Timer(clf, batch, length)

    def write(into: Path) -> None:
        write_onnx(clf, into / FILE, precision, head_mask)
        clf.tokenizer.save_pretrained(into)
        name_for_transformers_4(into / "tokenizer_config.json")
        clf.write_more(into)
        plain_config(clf.model.config).save_pretrained(into)

    folder = write_folder(Path(out), write)
    threads = torch.get_num_threads()
    session = Session(clf, folder / FILE, threads)
    mask = clf.present.array() if head_mask else None
    in_runtime = partial(timer.seconds, partial(session.outputs, timer.texts, mask))
    speed = in_pairs(lambda: timer(clf), in_runtime, progress=progress, cancel=cancel)
    times = (batch, timer.length, threads, speed.after, speed.before, speed.speedup, speed.low, speed.high)
    result = Exported(folder, precision, size_of(folder / FILE), *times)
    if data is None:
        return result

    ways = clf.outputs_under, partial(session.outputs, mask=mask)
    logits, order = answers(clf, data, ways, label_order, progress, cancel)
    share, low = agreement(*map(clf.answer.plain, logits))
    change = None
    if data.labels is not None:
        before, after = (data.answer.predicted(scores, order) for scores in logits)
        change = paired_change(data.answer.answers(data.gold, before, data.label_names), after, data.task.metrics[0])
    return replace(result, n=len(data), agreement=share, agreement_low=low, change=change)


def agreement(before: np.ndarray, after: np.ndarray) -> tuple[float | None, float | None]:
    """The share of examples with the same answer, and the lower end of its interval; None where answers are numbers."""
    if (same := same_answers(before, after)) is None:
        return None, None
    always = np.ones(len(same), np.int64)
    change = paired(always, always, same.astype(np.int64))
    return 1 + change.difference, 1 + change.low


def name_for_transformers_4(file: Path) -> None:
    """optimum needs transformers 4, which does not know transformers 5's name of a plain fast tokenizer."""
    text = file.read_text(encoding="utf-8")
    replace_file(file, text.replace('"TokenizersBackend"', '"PreTrainedTokenizerFast"'))


def write_onnx(clf: Classifier, file: Path, precision: str, head_mask: bool = False) -> Path:
    """The model as an ONNX file in this precision."""
    if precision != "int8":
        return export_onnx(clf, file, head_mask)
    with tempfile.TemporaryDirectory() as place:
        return quantise(export_onnx(clf, Path(place) / FILE, head_mask), file)


def quantise(file: Path, out: Path) -> Path:
    """The ONNX file with its matrices in int8, channel by channel.

    Weights have seven bits: with eight, processors without VNNI cut sums of two products off at 16 bits.
    """
    from onnxruntime.quantization import QuantType, quantize_dynamic

    quantize_dynamic(file, out, per_channel=True, weight_type=QuantType.QInt8, reduce_range=True)
    return out


def size_of(file: Path) -> int:
    """Bytes of an ONNX file, with those that lie next to it."""
    return sum(path.stat().st_size for path in files_of(file))


SESSIONS = 6  # that are open at once: each has a model's weights


class RuntimeTimer(Timer):
    """Times passes in ONNX Runtime. A file is written once for models of the same sizes: weights take no time."""

    def __init__(self, clf: Classifier, batch: int, length: int | None, int8: bool) -> None:
        super().__init__(clf, batch, length)
        require_in_runtime(clf)
        self.precision, self.versions = "int8" if int8 else "float32", (version("onnxruntime"),)
        self.where = f"{clf.device} in ONNX Runtime{', int8' if int8 else ''}"
        self._place = tempfile.TemporaryDirectory(prefix="headviz-timing-")
        self._files: dict[tuple[int, ...], Path] = {}
        self._sessions: dict[tuple[int, ...], Session] = {}  # the one used last is the last

    def __call__(self, clf: Classifier) -> float:
        return self.seconds(partial(self._session(clf).outputs, self.texts))

    def _session(self, clf: Classifier) -> Session:
        key = (*clf.heads_per_layer, *neurons(clf))
        if key not in self._files:
            self._files[key] = write_onnx(clf, Path(self._place.name) / f"{len(self._files)}-{FILE}", self.precision)
        session = self._sessions.pop(key, None)
        if session is None:
            session = Session(clf, self._files[key], torch.get_num_threads())
            session.outputs(self.texts)  # the first pass plans the memory
        self._sessions[key] = session
        while len(self._sessions) > SESSIONS:
            del self._sessions[next(iter(self._sessions))]
        return session


def require_in_runtime(clf: Classifier) -> None:
    """One clear line where a model cannot be timed in ONNX Runtime."""
    require_onnx(clf)
    if clf.device.type != "cpu":
        raise ModelError("ONNX Runtime is timed on the processor. Load the model there (device='cpu').")


def answers(
    clf: Classifier,
    data: Dataset,
    ways: Sequence[Callable[[dict[str, Tensor]], Tensor]],
    label_order: Sequence[str] | str | None = None,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
) -> tuple[list[np.ndarray], Any]:
    """The logits of all examples in each way, and the model's output of each class. A way gives a batch's outputs."""
    order, (encodings, joined) = class_order(clf, data, label_order), clf.sequences(data)
    shape = clf.answer.shape(encodings, clf.width)
    outputs = np.full((len(ways), len(encodings), *shape), np.nan, dtype=np.float32)
    groups = list(batches([len(e) for e in encodings], BATCH_TOKENS))
    for index in tracked(groups, progress, cancel):
        batch = clf.collate([encodings[i] for i in index])
        for output, way in zip(outputs, ways, strict=True):
            output[index] = fitted(way(batch), shape).cpu().numpy()
    return [joined(output) for output in outputs], order
