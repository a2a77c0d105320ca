"""The attention and attribution maps of one example, as the library returns and stores them, and what is drawn of them.

Pictures show the strongest connections of a part of the pair, without special tokens; scores always use all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..answers import ANSWERS
from ..errors import OptionError, is_one_of, unknown_choice
from ..heads import HeadMask
from ..results import Result, drawn

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


@dataclass(frozen=True, eq=False)
class Maps(Result):
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
    logits: np.ndarray  # [C], under the mask; [W, C] of a model that answers word by word
    target: int | tuple[int, ...]  # what is explained: a class, as a rule
    mask: HeadMask
    method: str  # "conductance" or "attattr"
    rule: str
    steps: int
    head_error: np.ndarray  # [L, H] estimated L2 norm of the attribution's error; NaN = no estimate
    job: str = "class"  # of the model
    precision: str = "float32"  # of the matrix products: float32, tf32, bfloat16
    truncated: bool = False  # the text was cut to the model's length
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return (
            f"<Maps by {self.method}: {self.attention.shape[0]}×{self.attention.shape[1]} heads, "
            f"{len(self.tokens)} tokens, '{self.target_label}' explained, error {100 * self.error:.1f} %>"
        )

    def strength(self) -> np.ndarray:
        """[L, H] the sum of a head's attributions without their signs; NaN for a head that was removed."""
        strength: np.ndarray = np.abs(self.attribution).sum(axis=(2, 3), dtype=np.float64)
        return strength

    def records(self) -> list[dict[str, Any]]:
        """One row for each connection of each head: its attention and its attribution."""
        layer, head, query, key = (index.ravel() for index in np.indices(self.attention.shape))
        columns = {"layer": layer, "head": head, "query": query, "key": key}
        columns |= {"attention": self.attention.ravel(), "attribution": self.attribution.ravel()}
        names, rows = list(columns), zip(*(values.tolist() for values in columns.values()), strict=True)
        return [dict(zip(names, row, strict=True)) for row in rows]

    def extra(self) -> dict[str, Any]:
        return {"target_label": self.target_label, "error": self.error}

    def plot(self, head: tuple[int, int] | str | None = None, what: str = "attribution") -> Figure:
        """All heads by the strength of their attributions; with ``head``, its map of ``what``: "attribution" or
        "attention"."""
        return drawn(self, head=head, what=what)

    @property
    def target_label(self) -> str:
        return ANSWERS[self.job].explained_name(self.target, self.labels)

    @property
    def predicted(self) -> int | np.ndarray:
        """The class; in the job's own terms where the answer is none."""
        return self.logits.argmax(-1) if self.logits.ndim > 1 else int(self.logits.argmax())

    @property
    def probabilities(self) -> np.ndarray:
        """[C] softmax of the logits; for a regression the logit itself."""
        return ANSWERS[self.job].values(self.logits)

    @property
    def error(self) -> float:
        """Estimated error of the integration: relative L2 norm over all heads. NaN = no estimate."""
        errors = self.head_error[~np.isnan(self.head_error)]
        if errors.size == 0:
            return float("nan")
        # layer by layer: of a long text, a copy of all maps in float64 is large
        size = float(np.sqrt(sum(np.nansum(np.square(layer, dtype=np.float64)) for layer in self.attribution)))
        error = float(np.linalg.norm(errors))
        return error / size if size > 0 else (0.0 if error == 0 else float("inf"))


PARTS = ("all", "A→A", "A→B", "B→A", "B→B")


class Arc(NamedTuple):
    """One connection: query and key position, and its value."""

    query: int
    key: int
    value: float


def positions(
    types: Sequence[int], special: Sequence[bool], part: str, show_special: bool
) -> tuple[list[int], list[int]]:
    """The query and key positions of a part. ``A`` is the first text, ``B`` the second."""
    if not is_one_of(part, PARTS):
        raise OptionError(unknown_choice("part", part, PARTS))
    tokens = [i for i in range(len(types)) if show_special or not special[i]]
    if part == "all":
        return tokens, tokens
    sides = {"A": [i for i in tokens if types[i] == 0], "B": [i for i in tokens if types[i] == 1]}
    return sides[part[0]], sides[part[-1]]


def strongest(matrix: np.ndarray, mass: float, most: int = 120) -> list[Arc]:
    """The fewest connections that hold ``mass`` (0 to 1) of the absolute values, strongest first.

    At most ``most`` are given, so that the picture stays readable; ties keep reading order.
    """
    size = np.abs(np.nan_to_num(matrix)).ravel()
    total = size.sum()
    if total == 0:
        return []
    order = np.argsort(-size, kind="stable")
    enough = int(np.searchsorted(np.cumsum(size[order]), mass * total - 1e-12)) + 1
    chosen = order[: min(enough, most)]
    width = matrix.shape[1]
    return [Arc(int(i) // width, int(i) % width, float(matrix.ravel()[i])) for i in chosen if size[i] > 0]
