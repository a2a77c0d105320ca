"""The precision that exploring on a GPU uses: TF32 where it agrees with float32 on the first texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from ..models.fast.linear import FLOAT32, TF32
from ..models.fast.transfers import fetch
from ..storage.exchange import MaskLike
from .integration import swept
from .rules import AUTO, KEPT, IntegrationOptions, PathOptions

if TYPE_CHECKING:
    from ..models.classifier import Classifier, Encoding

SAMPLE = 4  # texts that are explained in both
Chosen = TypeVar("Chosen", bound=IntegrationOptions)
_KNOWN: WeakKeyDictionary[nn.Module, str] = WeakKeyDictionary()


def settled(options: Chosen, clf: Classifier, encodings: Sequence[Encoding], mask: MaskLike | None) -> Chosen:
    """The options with a precision that is named: "auto" becomes TF32 where a GPU has it and it agrees."""
    if options.precision not in (AUTO, TF32):
        return options
    if clf.device.type != "cuda" or clf.dtype != torch.float32:
        return replace(options, precision=FLOAT32)
    if options.precision == TF32:
        return options
    if clf.model not in _KNOWN:
        _KNOWN[clf.model] = TF32 if _agrees(clf, encodings[:SAMPLE], mask) else FLOAT32
    return replace(options, precision=_KNOWN[clf.model])


def _agrees(clf: Classifier, encodings: Sequence[Encoding], mask: MaskLike | None) -> bool:
    """Whether the same outputs are explained, and maps differ by no more than their order bears."""
    if torch.cuda.get_device_capability(clf.device) < (8, 0):
        return False
    one, other = (
        list(swept(clf, encodings, [None] * len(encodings), PathOptions(8, precision=p), mask)) for p in (FLOAT32, TF32)
    )
    found = [torch.stack([_apart(a.attribution, b.attribution) for a, b in zip(one, other, strict=True)]).amax()]
    found += [(a.chosen != b.chosen).any() for a, b in zip(one, other, strict=True)]
    error, *changed = fetch(found)()
    return bool(error <= KEPT[0][0]) and not any(changed)


def _apart(exact: list[Tensor], fast: list[Tensor]) -> Tensor:
    """The relative L2 distance."""
    whole, other = (torch.cat(tables, dim=1) for tables in (exact, fast))
    size, wrong = (torch.linalg.vector_norm(t) for t in (whole, other - whole))
    return wrong / size.clamp(min=torch.finfo(size.dtype).tiny)
