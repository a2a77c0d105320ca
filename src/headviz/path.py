"""The straight path of word embeddings from a baseline to the input, and one sweep along it.

Every node of the path is one forward and one backward pass that serves all layers and heads at once.
Nodes and examples are cut into chunks of a byte budget, which changes the time but not the values.

Shapes: B examples, N nodes of a chunk, L layers, H heads, h heads present in a layer, T tokens, E embedding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from .errors import Cancelled, ModelError, OptionError
from .fastlinear import FastLinear
from .heads import HeadMask
from .rules import DEFAULT_RULE, DEFAULT_STEPS, PathSum, check

if TYPE_CHECKING:
    from .models.classifier import Classifier, Encoding

BUDGET = 2**30  # bytes
# More tokens in one pass than this are no faster: weights are read once per pass, activations leave the cache.
TOKENS_AT_ONCE = 2048
PRECISIONS = ("float32", "bfloat16")


@dataclass(frozen=True)
class PathOptions:
    """How to integrate. ``precision="bfloat16"`` is for previews; models of other types keep their own."""

    steps: int = DEFAULT_STEPS
    rule: str = DEFAULT_RULE
    precision: str = "float32"

    def __post_init__(self) -> None:
        check(self.rule, self.steps)
        if self.precision not in PRECISIONS:
            raise OptionError(f"precision is {' or '.join(PRECISIONS)}, not '{self.precision}'.")


@dataclass(frozen=True, eq=False)
class ExampleMaps:
    """One example without its padding. Heads that the model no longer has are NaN."""

    attention: np.ndarray  # float32 [L, H, T, T]
    attribution: np.ndarray  # float32 [L, H, T, T]
    error: np.ndarray  # [L, H] estimated L2 norm of the attribution's error; NaN = no estimate
    logits: np.ndarray  # [C]
    target: int


# the class to explain; None = the one predicted by the model as it stands, mask included
Target = int | None


def word_embeddings(clf: Classifier, ids: Tensor) -> Tensor:
    """[B, T] token ids -> [B, T, E], before position and type are added."""
    return clf.model.get_input_embeddings()(ids)  # type: ignore[operator]


def baseline_ids(clf: Classifier, encodings: Sequence[Encoding], ids: Tensor) -> Tensor:
    """Every token replaced by padding, except [CLS] and [SEP], which stay where they are."""
    pad = clf.tokenizer.pad_token_id
    if pad is None:
        raise ModelError(
            f"The tokenizer of '{clf.name}' has no padding token, which the baseline is made of."
        )
    stay = torch.zeros_like(ids, dtype=torch.bool)
    for i, e in enumerate(encodings):
        stay[i, : len(e)] = torch.tensor(e.special, device=ids.device)
    return torch.where(stay, ids, int(pad))


def sweep(
    clf: Classifier,
    encodings: Sequence[Encoding],
    targets: Sequence[Target],
    options: PathOptions,
    mask: HeadMask | None = None,
    budget: int = BUDGET,
    cancel: Callable[[], bool] | None = None,
) -> list[ExampleMaps]:
    """Attention and attribution of every example, all layers in one pass per node.

    Give examples of similar length together: shorter ones are padded.
    """
    out: list[ExampleMaps] = []
    length = max(len(e) for e in encodings)
    for start, end in _groups(len(encodings), _kept_bytes(clf, length), budget // 2):
        out += _sweep_group(clf, encodings[start:end], targets[start:end], options, mask, budget, cancel)
    return out


def _sweep_group(
    clf: Classifier,
    encodings: Sequence[Encoding],
    targets: Sequence[Target],
    options: PathOptions,
    mask: HeadMask | None,
    budget: int,
    cancel: Callable[[], bool] | None,
) -> list[ExampleMaps]:
    rule = check(options.rule, options.steps)
    alphas = rule.nodes(options.steps)
    batch = clf.collate(encodings)
    ids = batch.pop("input_ids")
    end = word_embeddings(clf, ids)  # [B, T, E]
    start = word_embeddings(clf, baseline_ids(clf, encodings, ids))
    size, length = ids.shape
    rows = max(1, min(budget // 2 // _row_bytes(clf, length), TOKENS_AT_ONCE // length))
    per_chunk = max(1, rows // size)

    with FastLinear(options.precision == "bfloat16"):
        one_pass = rule.ends_at_input and per_chunk >= len(alphas)
        logits, classes, last = None, None, None
        if not one_pass:  # the class to explain must be known before the first gradient
            logits, last = _at_input(clf, end, batch, mask, keep=not rule.ends_at_input)
            classes = _classes(logits, targets)
        sums = [PathSum(rule, options.steps) for _ in range(clf.num_layers)]
        for first in range(0, len(alphas), per_chunk):
            if cancel is not None and cancel():
                raise Cancelled
            steps = torch.tensor(alphas[first : first + per_chunk], dtype=end.dtype, device=end.device)
            count = len(steps)
            # [N·B, T, E], node by node
            x = (start + steps.view(-1, 1, 1, 1) * (end - start)).flatten(0, 1).requires_grad_(True)
            call = clf.call(mask, "eager", keep_probs=True)
            with torch.enable_grad():
                scores = clf.forward(_rows(batch, x, count), call)  # [N·B, C]
                if one_pass:
                    logits = scores[-size:].detach()
                    classes = _classes(logits, targets)
                assert classes is not None
                picked = scores.gather(1, classes.repeat(count).view(-1, 1))
                grads = torch.autograd.grad(picked.sum(), call.probs, materialize_grads=True)
            probs = [p.detach() for p in call.probs]
            del call, scores, picked, x  # the graph goes before the sums need memory
            for layer, total in enumerate(sums):
                shape = (count, size, *probs[layer].shape[1:])
                total.add(first, probs[layer].view(shape), grads[layer].view(shape))
            if rule.ends_at_input and first + count == len(alphas):
                last = [p.view(count, size, *p.shape[1:])[-1].clone() for p in probs]
            del probs, grads
    assert logits is not None
    assert classes is not None
    assert last is not None
    if not torch.isfinite(logits).all():
        raise ModelError(
            f"'{clf.name}' answers NaN or infinity: its weights are damaged or overflow in {clf.dtype}."
        )
    return _examples(clf, encodings, sums, last, logits, classes)


def _classes(logits: Tensor, targets: Sequence[Target]) -> Tensor:
    predicted = logits.argmax(dim=1)
    given = [-1 if t is None else t for t in targets]
    wanted = torch.tensor(given, device=logits.device)
    return torch.where(wanted < 0, predicted, wanted)


def _at_input(
    clf: Classifier, x: Tensor, batch: dict[str, Tensor], mask: HeadMask | None, keep: bool
) -> tuple[Tensor, list[Tensor] | None]:
    call = clf.call(mask, "eager", keep_probs=keep)
    with torch.no_grad():
        logits = clf.forward(_rows(batch, x, 1), call)
    return logits, call.probs if keep else None


def _rows(batch: dict[str, Tensor], x: Tensor, count: int) -> dict[str, Tensor]:
    return {"inputs_embeds": x, **{k: v.repeat(count, 1) for k, v in batch.items()}}


def _examples(
    clf: Classifier,
    encodings: Sequence[Encoding],
    sums: list[PathSum],
    last: list[Tensor],
    logits: Tensor,
    classes: Tensor,
) -> list[ExampleMaps]:
    """Cut the padding off, and put the heads at their original numbers."""
    shape = (clf.num_layers, clf.num_heads)
    out = [
        ExampleMaps(
            np.full((*shape, len(e), len(e)), np.nan, np.float32),
            np.full((*shape, len(e), len(e)), np.nan, np.float32),
            np.full(shape, np.nan),
            logits[i].float().cpu().numpy(),
            int(classes[i]),
        )
        for i, e in enumerate(encodings)
    ]
    for layer, total in enumerate(sums):
        value, error = total.result()
        gone = set(clf.present.off_in(layer))
        heads = [h for h in range(clf.num_heads) if h not in gone]
        for i, e in enumerate(encodings):
            t = len(e)
            out[i].attention[layer, heads] = last[layer][i, :, :t, :t].float().cpu().numpy()
            out[i].attribution[layer, heads] = value[i, :, :t, :t].float().cpu().numpy()
            if error is not None:
                out[i].error[layer, heads] = (
                    torch.linalg.vector_norm(error[i, :, :t, :t].double(), dim=(1, 2)).cpu().numpy()
                )
    return out


def _kept_bytes(clf: Classifier, length: int) -> int:
    """What one example keeps for the whole sweep: two sums, the last nodes of two strides, its maps."""
    return clf.num_layers * clf.num_heads * length**2 * 4 * 8


def _row_bytes(clf: Classifier, length: int) -> int:
    """What one node of one example needs during its pass: probabilities, gradients, and the graph."""
    config = clf.config
    hidden = int(config.hidden_size)
    inner = int(getattr(config, "intermediate_size", 0) or getattr(config, "hidden_dim", 4 * hidden))
    per_token = 12 * hidden + 3 * inner
    return 4 * clf.num_layers * (3 * clf.num_heads * length**2 + per_token * length)


def _groups(count: int, each: int, budget: int) -> Iterator[tuple[int, int]]:
    size = max(1, budget // max(each, 1))
    for start in range(0, count, size):
        yield start, min(start + size, count)
