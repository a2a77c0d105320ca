"""``headviz.token_attributions``: how much each token spoke for the class, by Captum's integrated gradients.

Captum does the integration (``LayerIntegratedGradients`` on the word embeddings) along the same path as
``conductance`` uses. It hooks the layer it looks at; here that is a private module around the embeddings made for the
call, so that other threads that use the model are not touched.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from ..errors import OptionError
from ..models.fast.linear import products
from ..models.network import require_model
from ..results import Shown
from ..storage.exchange import MaskLike
from .explaining import encode, resolve_target
from .rules import check_steps
from .walk import Walk, baseline_ids

if TYPE_CHECKING:
    from ..models.classifier import Classifier

DEFAULT_STEPS = 32
_ROWS = 32  # embeddings in one pass


@dataclass(frozen=True, eq=False)
class TokenAttributions(Shown):
    """One number per token, signed: positive = it spoke for the class. [CLS] and [SEP] are 0 by construction."""

    values: np.ndarray  # [T]
    tokens: tuple[str, ...]
    types: tuple[int, ...]
    special: tuple[bool, ...]
    target: int
    target_label: str
    error: float  # |F(x) − F(x') − sum of the values| / |F(x) − F(x')|

    @property
    def total(self) -> float:
        return float(self.values.sum())


class _Model(nn.Module):
    """From token ids to logits, with an embedding module of its own."""

    def __init__(self, walk: Walk) -> None:
        super().__init__()
        source: Any = walk.clf.model.get_input_embeddings()  # type: ignore[operator]
        self.words = nn.Sequential(source)  # the module itself: some scale what they look up
        self.walk = walk

    def forward(self, ids: Tensor) -> Tensor:
        walk = self.walk
        return walk.clf.forward(walk.rows(self.words(ids)), walk.clf.call(walk.mask, "eager"))


def token_attributions(
    clf: Classifier,
    text: str,
    pair: str | None = None,
    *,
    steps: int = DEFAULT_STEPS,
    target: str | int = "predicted",
    label: str | int | None = None,
    mask: MaskLike | None = None,
) -> TokenAttributions:
    """Signed attributions of the tokens of one text or pair; they sum to F(x) − F(x'), up to ``error``.

    >>> import headviz
    >>> clf = headviz.load("demo", device="cpu")
    >>> found = headviz.token_attributions(clf, "the small dog runs .", "the dog sleeps .", steps=4)
    >>> found.tokens[:4], len(found.values) == len(found.tokens)
    (('[CLS]', 'the', 'small', 'dog'), True)
    """
    from captum.attr import LayerIntegratedGradients

    require_model(clf)
    check_steps(steps)
    if not isinstance(text, str):
        raise OptionError("token_attributions takes one text, or one text and its pair.")
    wanted = resolve_target(clf, target, label)
    (encoding,) = encode(clf, [text], None if pair is None else [pair])
    walk = Walk(clf, [encoding], [wanted], mask)
    logits, _ = walk.at_input(keep=False)
    assert walk.chosen is not None
    chosen = int(walk.chosen[0])
    model = _Model(walk)
    ids = torch.tensor([encoding.ids], device=clf.device)
    baseline = baseline_ids(clf, [encoding], ids)
    with products(clf.device):
        parts, delta = LayerIntegratedGradients(model, model.words).attribute(
            ids, baseline, target=chosen, n_steps=steps, internal_batch_size=_ROWS, return_convergence_delta=True
        )
        with torch.no_grad():
            change = float(logits[0, chosen] - model(baseline)[0, chosen])
    missing = abs(float(delta[0]))
    return TokenAttributions(
        values=parts[0].sum(dim=-1).detach().float().cpu().numpy(),
        tokens=tuple(clf.tokens(encoding)),
        types=tuple(encoding.types),
        special=tuple(encoding.special),
        target=chosen,
        target_label=clf.labels[chosen],
        error=missing / abs(change) if change else (0.0 if missing == 0 else float("inf")),
    )
