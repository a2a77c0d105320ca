"""Writing a classifier as ONNX, for runtimes without PyTorch. Needs the extra ``headviz[onnx]``.

Uneven sizes stay uneven, so the file is as small and as fast as the model. Its answers are compared with the model's
before it counts as written.
"""

from __future__ import annotations

import copy
import logging
import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from ..errors import ModelError
from .pruning import require_even
from .quiet import quiet
from .slices import is_map, weight_of

if TYPE_CHECKING:
    from .classifier import Classifier
    from .families.sheet import Forward

EQUAL = 1e-4  # the most that a logit may be ``apart``
NEEDED = ("onnx", "onnxscript", "onnxruntime")
ORDER = ("input_ids", "attention_mask", "token_type_ids")


class _Plain(nn.Module):
    """From token ids to logits, with positional arguments. ``own`` runs a model that transformers runs otherwise."""

    def __init__(self, model: Any, names: tuple[str, ...], own: Forward | None) -> None:
        super().__init__()
        self.model, self.names, self.own = model, names, own

    def forward(self, *given: Tensor) -> Tensor:
        batch = dict(zip(self.names, given, strict=True))
        logits: Tensor = self.model(**batch).logits if self.own is None else self.own(self.model, batch, {})
        return logits


class _BiasOnly(nn.Module):
    """A linear map without inputs: zero, and its bias. Nothing of what it is given is read but the shape."""

    def __init__(self, matrix: Any) -> None:
        super().__init__()
        size, bias = len(weight_of(matrix)), matrix.bias
        self.bias = nn.Parameter(matrix.weight.new_zeros(size) if bias is None else bias.detach())

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


def require_onnx() -> None:
    """One clear line where the extra is missing."""
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        raise ModelError(f"ONNX needs {', '.join(missing)}, which is not installed: pip install 'headviz[onnx]'.")


def export_onnx(clf: Classifier, path: str | Path) -> Path:
    """Write ``path`` and check it: any batch and length gives the model's logits to ``EQUAL``, or a ``ModelError``."""
    require_onnx()
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)  # it warns of each package that it could use and lacks
    path = Path(path)
    clf.require_described()
    require_even(clf, clf.present)
    model: Any = copy.deepcopy(clf.model).cpu().float()
    model.set_attn_implementation("eager")
    _leave_out_empty(model)
    texts = ["a", "a b c d e f g"], ["c d", "b"]
    batch = {k: v.cpu() for k, v in clf.collate(clf.encode(*texts)).items()}
    names = tuple(name for name in ORDER if name in batch)
    own = clf.family.forward if getattr(clf.config, "trigram_input", False) else None  # MobileBERT
    any_size = {0: torch.export.Dim("batch", min=1), 1: torch.export.Dim("length", min=2, max=clf.max_length)}
    # of the kernels for attention only this one has results that lie in memory as the exporter takes them to lie
    with quiet(), warnings.catch_warnings(), sdpa_kernel(SDPBackend.MATH):
        warnings.simplefilter("ignore")  # of PyTorch's exporter, about its own inner workings
        program: Any = torch.onnx.export(
            _Plain(model, names, own).eval(),
            tuple(batch[name] for name in names),
            dynamo=True,
            input_names=list(names),
            output_names=["logits"],
            dynamic_shapes=((any_size,) * len(names),),
            verbose=False,
        )
    program.save(str(path))
    try:
        wrong = difference(clf, path)
    except _failures() as error:
        path.unlink()
        reason = str(error).splitlines()[0][:200]
        raise ModelError(
            f"ONNX Runtime cannot run the file for every size of batch, so it was not kept: {reason}"
        ) from error
    if not wrong <= EQUAL:
        path.unlink()
        raise ModelError(f"The ONNX file gave other logits than the model (by {wrong:.2g}), so it was not kept.")
    return path


def _failures() -> tuple[type[Exception], ...]:
    """What ONNX Runtime raises where it cannot load or run a file."""
    from onnxruntime.capi import onnxruntime_pybind11_state as raised

    return (raised.Fail, raised.InvalidArgument, raised.InvalidGraph, raised.NotImplemented, raised.RuntimeException)


def difference(clf: Classifier, path: Path) -> float:
    """The most that a logit is ``apart`` on a few texts of several lengths."""
    import onnxruntime

    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    asked = [i.name for i in session.get_inputs()]
    worst = 0.0
    words = "one two three four five six seven eight nine ten".split()
    for texts in ([words[0]], [" ".join(words), "two"], [" ".join(words[:i]) for i in (2, 5, 9)]):
        batch = clf.collate(clf.encode(texts, texts))
        expected = clf.logits(batch).cpu().numpy()
        (found,) = session.run(["logits"], {name: batch[name].cpu().numpy() for name in asked})
        worst = max(worst, apart(found, expected))
    return worst


def apart(found: np.ndarray, expected: np.ndarray) -> float:
    """The largest difference; where the largest number is above 1, as a share of it."""
    return float(np.abs(found - expected).max() / max(1.0, float(np.abs(expected).max())))
