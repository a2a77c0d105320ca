"""Writing a model as ONNX, for runtimes without PyTorch. Needs the extra ``headviz[onnx]``.

Uneven sizes stay uneven, so the file is as small and as fast as the model. Its answers are compared with the model's
before it counts as written.
"""

from __future__ import annotations

import copy
import logging
import warnings
from collections.abc import Mapping
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from ..attention import HeadCall, quiet
from ..errors import ModelError
from ..heads import HeadMask
from .pruning import is_map, require_even, weight_of

if TYPE_CHECKING:
    from .classifier import Classifier

EQUAL = 1e-4  # the most that an output may be different
NEEDED = ("onnx", "onnxscript", "onnxruntime")
EXPORTING = Lock()  # PyTorch's exporter serves one thread of a process
ORDER = ("input_ids", "attention_mask", "token_type_ids")
HEAD_MASK = "head_mask"


class _Graph(nn.Module):
    """From token ids to what the file gives, with positional arguments.

    With ``masked`` the last one is a mask of heads [L, H]: 1 = on, 0 = off, and what lies between scales.
    """

    def __init__(self, clf: Classifier, names: tuple[str, ...], masked: bool) -> None:
        super().__init__()
        self.clf, self.names, self.masked, self.model = clf, names, masked, clf.model

    def forward(self, *inputs_and_mask: Tensor) -> tuple[Tensor, ...]:
        if not self.masked:
            return self.clf.graph(dict(zip(self.names, inputs_and_mask, strict=True)))
        *inputs, mask = inputs_and_mask
        kept = [list(self.clf.present.kept_in(row)) for row in range(self.clf.num_layers)]
        gates = tuple(mask[row, heads].view(1, -1, 1, 1) if heads else None for row, heads in enumerate(kept))
        batch = dict(zip(self.names, inputs, strict=True))
        return self.clf.graph(batch, HeadCall(gates, "eager", order=self.clf.order))


class _BiasOnly(nn.Module):
    """A linear map without inputs: zero, and its bias. Of what goes in, only the shape is read."""

    def __init__(self, matrix: Any) -> None:
        super().__init__()
        size, bias = len(weight_of(matrix)), matrix.bias
        self.bias = nn.Parameter(matrix.weight.new_zeros(size) if bias is None else bias.detach())
        self.in_features, self.out_features = 0, size  # what an attention module of headviz asks for

    def forward(self, x: Tensor) -> Tensor:
        return self.bias.expand(*x.shape[:-1], -1)


def _leave_out_empty(model: nn.Module) -> None:
    """Cut the graph behind heads or neurons of which none is left, because runtimes fail on matrices without entries.

    What computed them is then read by nothing, and the exporter drops it. In place.
    """
    for module in list(model.modules()):
        for name, child in list(module.named_children()):
            if is_map(child) and weight_of(child).shape[1] == 0:
                setattr(module, name, _BiasOnly(child))


def require_onnx(clf: Classifier | None = None) -> None:
    """One clear line where the extra is missing, or the model is of a job without a graph."""
    if clf is not None and not clf.answer.graph:
        raise ModelError(f"A model of the job '{clf.job}' cannot be written as ONNX.")
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        raise ModelError(f"ONNX needs {', '.join(missing)}, which is not installed: pip install 'headviz[onnx]'.")


def export_onnx(clf: Classifier, path: str | Path, head_mask: bool = False) -> Path:
    """Write ``path`` and check it: any batch and length gives the model's outputs to ``EQUAL``, or a ``ModelError``.

    With ``head_mask`` the graph has an input ``head_mask`` [L, H], 1 for a head that is on and 0 for one that is off.
    """
    require_onnx(clf)
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)  # it warns of each package that it could use and lacks
    path = Path(path)
    clf.require_described()
    exported = replace(clf, model=copy.deepcopy(clf.model).cpu().float())
    model: Any = exported.model
    _leave_out_empty(model)
    batch = {k: v.cpu() for k, v in clf.sample(["a", "a b c d e f g"]).items()}
    names = tuple(name for name in ORDER if name in batch)
    any_size = {0: torch.export.Dim("batch", min=1), 1: torch.export.Dim("length", min=2, max=clf.max_length)}
    inputs, shapes = [batch[name] for name in names], [any_size] * len(names)
    if head_mask:
        inputs, shapes = [*inputs, torch.ones(clf.num_layers, clf.num_heads)], [*shapes, {}]
    else:
        require_even(clf, clf.present)
        model.set_attn_implementation("eager")
    # only this kernel for attention gives results in the memory layout that the exporter assumes
    with EXPORTING, quiet(), warnings.catch_warnings(), sdpa_kernel(SDPBackend.MATH):
        warnings.simplefilter("ignore")  # of PyTorch's exporter, about its own inner workings
        program: Any = torch.onnx.export(
            _Graph(exported, names, head_mask).eval(),
            tuple(inputs),
            dynamo=True,
            input_names=[*names, *([HEAD_MASK] if head_mask else [])],
            output_names=list(clf.answer.graph),
            dynamic_shapes=(tuple(shapes),),
            verbose=False,
        )
    program.save(str(path))
    try:
        largest = difference(clf, path)
    except _failures() as error:
        _remove(path)
        reason = str(error).splitlines()[0][:200]
        raise ModelError(
            f"ONNX Runtime cannot run the file for every size of batch, so it was not kept: {reason}"
        ) from error
    if not largest <= EQUAL:
        _remove(path)
        raise ModelError(f"The ONNX file gave other outputs than the model (by {largest:.2g}), so it was not kept.")
    return path


def files_of(path: Path) -> list[Path]:
    """The file, with the weights that PyTorch's exporter writes next to it for a large model."""
    return [file for file in (path, path.with_name(f"{path.name}.data")) if file.exists()]


def _remove(path: Path) -> None:
    for file in files_of(path):
        file.unlink()


def _failures() -> tuple[type[Exception], ...]:
    """What ONNX Runtime raises where it cannot load or run a file."""
    from onnxruntime.capi.onnxruntime_pybind11_state import (
        Fail,
        InvalidArgument,
        InvalidGraph,
        NotImplemented,
        RuntimeException,
    )

    return (Fail, InvalidArgument, InvalidGraph, NotImplemented, RuntimeException)


class Session:
    """An exported file of a model in ONNX Runtime."""

    def __init__(self, clf: Classifier, path: Path, threads: int = 0) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads  # 0: as many as there are
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        self.clf, self.run, self.inputs = clf, session.run, [i.name for i in session.get_inputs()]

    def outputs(self, batch: Mapping[str, Tensor], mask: np.ndarray | None = None) -> Tensor:
        """What ``clf.outputs`` gives for a batch; without token types they are 0. ``mask`` [L, H] for a file with that
        input."""
        ids = batch["input_ids"].cpu().numpy()
        names = [name for name in self.inputs if name != HEAD_MASK]
        inputs = {name: batch[name].cpu().numpy() if name in batch else np.zeros_like(ids) for name in names}
        if mask is not None:
            inputs[HEAD_MASK] = mask.astype(np.float32)
        outputs = self.run(self.clf.answer.graph, inputs)
        return self.clf.from_graph([torch.from_numpy(output) for output in outputs], batch)


@torch.inference_mode()
def difference(clf: Classifier, path: Path) -> float:
    """The largest ``disagreement`` of outputs on texts of several lengths, and under masks if the file takes them."""
    session = Session(clf, path)
    masks: list[HeadMask | None] = [None]
    if HEAD_MASK in session.inputs:
        tables = np.random.default_rng(0).random((2, clf.num_layers, clf.num_heads)) < 0.6
        masks = [clf.full_mask, *map(clf.read, tables)]
    worst = 0.0
    words = "one two three four five six seven eight nine ten".split()
    for texts in ([words[0]], [" ".join(words), "two"], [" ".join(words[:i]) for i in (2, 5, 9)]):
        batch = clf.sample(texts)
        for mask in masks:
            expected = clf.from_graph(clf.graph(batch, clf.call(mask)), batch)
            output = session.outputs(batch, None if mask is None else mask.array())
            worst = max(worst, disagreement(output, expected.cpu()))
    return worst


def disagreement(output: Tensor, expected: Tensor) -> float:
    """The largest difference; where the largest number is above 1, as a share of it. Infinite if only one is NaN."""
    if not torch.equal(output.isnan(), expected.isnan()):
        return float("inf")
    output, expected = output.nan_to_num(), expected.float().nan_to_num()
    return float((output - expected).abs().max()) / max(1.0, float(expected.abs().max()))
