"""How many answers of a model in training are right."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from headviz.demo.reading import LABELS, Example

from .batches import encode, pad
from .network import gated


@contextmanager
def _evaluating(model: Any) -> Iterator[None]:
    model.eval()
    with torch.no_grad():
        yield


def accuracy(
    model: Any, tokenizer: Any, examples: list[Example], gates: torch.Tensor | None = None, size: int = 128
) -> dict[str, float]:
    """Accuracy over all examples ('all') and per phenomenon."""
    rows = encode(tokenizer, examples)
    order = sorted(range(len(rows)), key=lambda i: len(rows[i][0]))
    right: dict[str, list[bool]] = {}
    with _evaluating(model):
        for at in range(0, len(order), size):
            some = order[at : at + size]
            batch = pad([rows[i] for i in some], [LABELS.index(examples[i].label) for i in some])
            answers = model(**batch.inputs(model.device), headviz=gated(gates)).logits.argmax(-1).cpu()
            for i, ok in zip(some, (answers == batch.labels).tolist(), strict=True):
                right.setdefault(examples[i].phenomenon, []).append(ok)
    total = [ok for oks in right.values() for ok in oks]
    return {"all": sum(total) / len(total), **{name: sum(oks) / len(oks) for name, oks in sorted(right.items())}}
