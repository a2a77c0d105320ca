"""What is measured on each example, one sweep for every score that can be read from it.

A sweep turns a few examples into small tables [L, H] (removed heads NaN), which are kept per example: a score
asked for later, or a larger sample, then only reads them. Maps themselves are far too big to keep.

Shapes: B examples of a chunk, h heads present in a layer, T tokens, d head size, C classes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..attribution import attattr as attattr_maps
from ..attribution import integration
from ..attribution.rules import AttAttrOptions, PathOptions
from ..evaluation.evaluator import Evaluator
from ..evaluation.evaluator_options import EvaluatorOptions
from ..models.fast.transfers import runs_by_itself
from . import attention_entropy, gim, gradients, translation, weight_gradients
from .chunk import Chunk, Sweep, Tables
from .map_values import EVERY, map_values

GATE_TOKENS, GPU_TOKENS = 4096, 2**14  # tokens in one pass that needs gradients but no path


def _integration(options: Any) -> dict[str, Any]:
    return {"steps": int(options.steps), "rule": options.rule, "precision": options.precision}


# conductance --------------------------------------------------------------------------------------


def _conductance(chunk: Chunk) -> list[Callable[[], Tables]]:
    options = PathOptions(**_integration(chunk.options))
    found = integration.swept(
        chunk.clf, chunk.encodings, chunk.targets, options, chunk.mask, chunk.budget, chunk.cancel
    )
    names = EVERY if not (runs_by_itself(chunk.clf.device) and chunk.rows) else chunk.rows
    return [value for one in found for value in map_values(one, chunk.mask.array(), names)]


# AttAttr ------------------------------------------------------------------------------------------


def _attattr(chunk: Chunk) -> list[Callable[[], Tables]]:
    options = AttAttrOptions(**_integration(chunk.options))
    found = attattr_maps.swept(
        chunk.clf, chunk.encodings, chunk.targets, options, chunk.mask, chunk.budget, chunk.cancel
    )
    return [_only("max", value) for one in found for value in map_values(one, chunk.mask.array(), ["max"])]


def _only(name: str, value: Callable[[], Tables]) -> Callable[[], Tables]:
    return lambda: {name: value()[name]}


def _by_nodes(chunk: Chunk) -> Iterator[slice]:
    return integration.groups(chunk.clf, chunk.encodings, int(chunk.options.steps), chunk.budget)


# derivatives by the gates -------------------------------------------------------------------------


def _by_tokens(chunk: Chunk) -> Iterator[slice]:
    most = GPU_TOKENS if runs_by_itself(chunk.clf.device) else GATE_TOKENS
    size = max(1, most // max(len(e) for e in chunk.encodings))
    for start in range(0, len(chunk.encodings), size):
        yield slice(start, start + size)


# ablation -----------------------------------------------------------------------------------------


def _ablation(chunk: Chunk) -> list[Callable[[], Tables]]:
    """Logits of each example with all heads, and without each of them."""
    clf, mask = chunk.clf, chunk.mask
    model = Evaluator(
        clf, chunk.data, EvaluatorOptions(budget=chunk.budget, precision="float32"), label_order=chunk.label_order
    )
    full = model.evaluate(mask, cancel=chunk.cancel).logits
    without = np.full((len(full), clf.num_layers, clf.num_heads, full.shape[1]), np.nan, np.float32)
    for head in mask.kept:
        without[:, head.layer, head.head] = model.evaluate(mask.without([head]), keep=False, cancel=chunk.cancel).logits
    return [lambda i=i: {"full": full[i], "without": without[i]} for i in range(len(full))]  # type: ignore[misc]


def _all_at_once(chunk: Chunk) -> Iterator[slice]:
    yield slice(0, len(chunk.encodings))


SWEEPS: dict[str, Sweep] = {
    "conductance": Sweep(1, _conductance, _by_nodes, _integration, uses_target=True, spare_core=True),
    "attattr": Sweep(1, _attattr, _by_nodes, _integration, uses_target=True),
    "gates": Sweep(
        1,
        gradients.gates,
        _by_tokens,
        lambda options: {},
        uses_gold=True,
        by_job={"sentence": gradients.sentence_gates},
        by_gates=True,
    ),
    "entropy": Sweep(1, attention_entropy.sweep, _by_tokens, lambda options: {}, uses_gold=True, by_gates=True),
    "changed gates": Sweep(
        1,
        gim.texts,
        _by_tokens,
        lambda options: {"temperature": options.temperature},
        uses_gold=True,
        by_job={"sentence": gim.sentences},
        by_gates=True,
    ),
    "weights": Sweep(1, weight_gradients.sweep, _by_tokens, lambda options: {}),
    "ablation": Sweep(
        1,
        _ablation,
        _all_at_once,
        lambda options: {},
        by_job={"sentence": translation.ablation},
        window=256,
        reads_references=True,
    ),
}
