"""All examples of a sample at once, for scores that are not averages of values per example.

They stand in the order of their content, so no result depends on the order of the data.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..heads import HeadId, HeadMask
from ..progress import Cancel, Progress
from ..storage.store import Store, make_key, pack, unpack
from ..storage.writing import replace_file
from .chunk import filled_part, reference_part

if TYPE_CHECKING:
    from ..models.base import TransformerModel
    from ..tasks import Dataset

VERSION = 2  # raise it when the same sample would give another table
KEEP_SECONDS = 10.0  # between two savings of a checkpoint


@dataclass(frozen=True, eq=False)
class Whole:
    """A sample with everything that a score over all of it may ask."""

    clf: TransformerModel
    mask: HeadMask  # what is off: masked or removed
    encodings: Sequence[Any]
    gold: np.ndarray | None  # class numbers of the model, or values; None for sentences to translate
    data: Dataset
    label_order: Sequence[str] | str | None
    digest: str  # of the examples, in whatever order they came
    budget: int
    progress: Progress | None = None
    cancel: Cancel | None = None
    checkpoint: Path | None = None  # the file of a ``WorkCheckpoint``
    store: Store | None = None  # the cache, for a score that reads others

    @property
    def heads(self) -> tuple[HeadId, ...]:
        """The heads that are on."""
        return self.mask.kept

    def key(self, score: str, options: object, more: Mapping[str, str]) -> str:
        """The cache key of a table of this sample."""
        clf = self.clf
        return make_key(
            "table",
            version=VERSION,
            score=score,
            options=asdict(options),  # type: ignore[call-overload]
            examples=self.digest,
            weights=clf.digest,
            tokenizer=clf.tokenizer_digest,
            dtype=str(clf.dtype),
            mask=self.mask.hex,
            task=self.data.task.name,
            **filled_part(clf),
            **more,
        )

    def checkpoint_of(self, work: str, options: object, part: str = "") -> WorkCheckpoint:
        """The checkpoint of one work with these options on this sample, or of one of the parts that it is done in."""
        return WorkCheckpoint(self.checkpoint, self.key(work, options, {}), part)


def whole_of(
    clf: TransformerModel,
    mask: HeadMask,
    encodings: Sequence[Any],
    gold: np.ndarray | None,
    data: Dataset,
    label_order: Sequence[str] | str | None,
    budget: int,
) -> Whole:
    """The sample, with its examples in the order of their digests."""
    digests = [
        _digest(e, None if gold is None else gold[i].tolist()) + reference_part(clf, data, e, i)
        for i, e in enumerate(encodings)
    ]
    order = sorted(range(len(digests)), key=digests.__getitem__)
    digest = hashlib.sha256("".join(digests[i] for i in order).encode()).hexdigest()
    return Whole(
        clf,
        mask,
        [encodings[i] for i in order],
        None if gold is None else gold[order],
        data.subset(order),
        label_order,
        digest,
        budget,
    )


def _digest(encoding: Any, gold: Any) -> str:
    facts = [list(encoding.ids), list(encoding.types), gold, encoding.target]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()


class WorkCheckpoint:
    """The arrays of long work that is not finished, in one file, which is replaced as a whole; no path = no file.

    The file is of one work. Each of its parts has arrays of its own there, which other parts do not overwrite.
    """

    def __init__(self, path: Path | None, identity: str, part: str = "") -> None:
        self.path, self.identity = path, identity
        self._prefix = f"{part}/" if part else ""
        self._last = time.monotonic()

    def load(self) -> dict[str, np.ndarray] | None:
        """The arrays of an interrupted call; None if there are none, or the file is damaged or of other work."""
        prefix = self._prefix
        return {k.removeprefix(prefix): v for k, v in self._arrays().items() if k.startswith(prefix)} or None

    def save(self, arrays: Mapping[str, np.ndarray], done: bool = False) -> None:
        """Write the arrays, unless the last time was a moment ago and the part is not ``done``."""
        if self.path is None or (not done and time.monotonic() - self._last < KEEP_SECONDS):
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        everything = {**self._arrays(), **{self._prefix + name: array for name, array in arrays.items()}}
        replace_file(self.path, pack(everything, {"of": self.identity}))
        self._last = time.monotonic()

    def _arrays(self) -> dict[str, np.ndarray]:
        """Every part's arrays."""
        if self.path is None or not self.path.is_file():
            return {}
        try:
            arrays, words = unpack(self.path.read_bytes())
        except (ValueError, KeyError):
            return {}
        return arrays if words.get("of") == self.identity else {}
