"""The attention and attribution maps of one example, as the library returns and stores them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..answers import ANSWERS
from ..heads import HeadMask
from ..results import Shown, drawn

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


@dataclass(frozen=True, eq=False)
class Maps(Shown):
    """Attention and attribution of every head for one text or pair.

    A head that was really removed is NaN in both. A head that is masked keeps its attention; its attribution
    is exactly 0, because nothing it attends to reaches the prediction.
    """

    attention: np.ndarray  # float32 [L, H, T, T], rows = queries, columns = keys
    attribution: np.ndarray  # float32 [L, H, T, T]
    tokens: tuple[str, ...]
    types: tuple[int, ...]  # 0 = first text, 1 = second
    special: tuple[bool, ...]  # [CLS], [SEP] and the like
    labels: tuple[str, ...]
    logits: np.ndarray  # [C], under the mask
    target: int  # the class explained
    mask: HeadMask
    method: str  # "conductance" or "attattr"
    rule: str
    steps: int
    head_error: np.ndarray  # [L, H] estimated L2 norm of the attribution's error; NaN = no estimate
    job: str = "class"  # of the model
    truncated: bool = False  # the text was cut to the model's length
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return (
            f"<Maps by {self.method}: {self.attention.shape[0]}×{self.attention.shape[1]} heads, "
            f"{len(self.tokens)} tokens, '{self.target_label}' explained, error {100 * self.error:.1f} %>"
        )

    def plot(self, head: tuple[int, int] | str | None = None, what: str = "attribution") -> Figure:
        """All heads by the strength of their attributions; with ``head``, its map of ``what``: "attribution" or
        "attention"."""
        return drawn(self, head=head, what=what)

    @property
    def target_label(self) -> str:
        return self.labels[self.target]

    @property
    def predicted(self) -> int:
        return int(self.logits.argmax())

    @property
    def probabilities(self) -> np.ndarray:
        """[C] softmax of the logits; for a regression the logit itself."""
        return ANSWERS[self.job].values(self.logits)

    @property
    def error(self) -> float:
        """Estimated error of the integration: relative L2 norm over all heads. NaN = no estimate."""
        known = self.head_error[~np.isnan(self.head_error)]
        if known.size == 0:
            return float("nan")
        # layer by layer: of a long text, a copy of all maps in float64 is large
        size = float(np.sqrt(sum(np.nansum(np.square(layer, dtype=np.float64)) for layer in self.attribution)))
        wrong = float(np.linalg.norm(known))
        return wrong / size if size > 0 else (0.0 if wrong == 0 else float("inf"))
