"""What is measured on each example, one sweep for every score that can be read from it.

A sweep turns a few examples into small tables [L, H] (removed heads NaN), which are kept per example: a score
asked for later, or a larger sample, then only reads them. Maps themselves are far too big to keep.

Shapes: B examples of a chunk, h heads present in a layer, T tokens, d head size, C classes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import torch

from ..attribution import attattr as attattr_maps
from ..attribution import integration
from ..attribution.integration import ExampleMaps
from ..attribution.rules import AttAttrOptions, PathOptions
from ..evaluation.evaluator import Evaluator
from ..evaluation.evaluator_options import EvaluatorOptions
from . import attention_entropy, author_code, device_correlation, gim, gradients, translation, weight_gradients
from .chunk import Chunk, Sweep, Tables
from .correlation import correlations

GATE_TOKENS = 4096  # tokens in one pass that needs gradients but no path


def _integration(options: Any) -> dict[str, Any]:
    return {"steps": int(options.steps), "rule": options.rule, "precision": options.precision}


def _path(options: Any) -> dict[str, Any]:
    return _integration(options) | ({"code": True, "padded": options.padded} if options.code else {})


# conductance --------------------------------------------------------------------------------------


def _conductance(chunk: Chunk) -> list[Callable[[], Tables]]:
    options = PathOptions(**_integration(chunk.options))
    if chunk.options.code:
        found = author_code.sweep(chunk)
    else:
        found = integration.sweep(
            chunk.clf, chunk.encodings, chunk.targets, options, chunk.mask, chunk.budget, chunk.cancel
        )
    kept, device = chunk.mask.array(), chunk.clf.device
    return [lambda maps=maps: correlate(maps, kept, device) for maps in found]  # type: ignore[misc]


def correlate(maps: ExampleMaps, kept: np.ndarray, device: torch.device) -> Tables:
    """Every statistic of attention against attribution, and the largest attribution, of each kept head.

    ``…_influential`` compares only the query rows that can reach the prediction: elsewhere no head of the
    layer has an attribution other than exactly 0.
    """
    attention, attribution = maps.attention, maps.attribution
    tokens = attention.shape[-1]
    correlated = partial(device_correlation.correlations, device=device) if device.type == "cuda" else correlations

    def statistics(which: Any, rows: Any = slice(None)) -> Tables:
        a, b = attention[which][:, rows], attribution[which][:, rows]  # [heads, rows, T]
        a, b = a.reshape(len(a), a.shape[1] * tokens), b.reshape(len(b), b.shape[1] * tokens)
        return {**correlated(a, b), "max": b.max(axis=1, initial=-np.inf).astype(np.float64)}

    out = {name: _placed(values, kept) for name, values in statistics(kept).items()}
    rows = {name: table.copy() for name, table in out.items()}
    for layer, heads in enumerate(kept):
        active = (attribution[layer, heads] != 0).any(axis=(0, 2))  # [T]
        if not heads.any() or active.all():
            continue
        one = np.zeros_like(kept)
        one[layer] = heads
        if not active.any():
            for table in rows.values():
                table[layer, heads] = np.nan
            continue
        for name, values in statistics(one, active).items():
            rows[name][layer, heads] = values
    out |= {f"{name}_influential": table for name, table in rows.items()}
    size = np.linalg.norm(attribution[kept].astype(np.float64))
    wrong = np.linalg.norm(np.nan_to_num(maps.error[kept]))
    known = not np.isnan(maps.error[kept]).all() if kept.any() else False
    out["error"] = np.array(wrong / size if size > 0 and known else np.nan)
    return out


def _placed(values: np.ndarray, kept: np.ndarray) -> np.ndarray:
    out = _empty(kept.shape)
    out[kept] = values
    return out


def _empty(shape: tuple[int, ...]) -> np.ndarray:
    return np.full(shape, np.nan)


# AttAttr ------------------------------------------------------------------------------------------


def _attattr(chunk: Chunk) -> list[Callable[[], Tables]]:
    options = AttAttrOptions(**_integration(chunk.options))
    found = attattr_maps.sweep(
        chunk.clf, chunk.encodings, chunk.targets, options, chunk.mask, chunk.budget, chunk.cancel
    )
    kept = chunk.mask.array()
    return [
        lambda maps=maps: {"max": np.where(kept, maps.attribution.max(axis=(2, 3)), np.nan)}  # type: ignore[misc]
        for maps in found
    ]


def _by_nodes(chunk: Chunk) -> Iterator[slice]:
    width = getattr(chunk.options, "padded", 0)
    return integration.groups(chunk.clf, chunk.encodings, int(chunk.options.steps), chunk.budget, width)


# derivatives by the gates -------------------------------------------------------------------------


def _by_tokens(chunk: Chunk) -> Iterator[slice]:
    size = max(1, GATE_TOKENS // max(len(e) for e in chunk.encodings))
    for start in range(0, len(chunk.encodings), size):
        yield slice(start, start + size)


# ablation -----------------------------------------------------------------------------------------


def _ablation(chunk: Chunk) -> list[Callable[[], Tables]]:
    """Logits of each example with all heads, and without each of them."""
    clf, mask = chunk.clf, chunk.mask
    model = Evaluator(clf, chunk.data, EvaluatorOptions(budget=chunk.budget), label_order=chunk.label_order)
    full = model.evaluate(mask, cancel=chunk.cancel).logits
    without = np.full((len(full), clf.num_layers, clf.num_heads, full.shape[1]), np.nan, np.float32)
    for head in mask.kept:
        without[:, head.layer, head.head] = model.evaluate(mask.without([head]), keep=False, cancel=chunk.cancel).logits
    return [lambda i=i: {"full": full[i], "without": without[i]} for i in range(len(full))]  # type: ignore[misc]


def _all_at_once(chunk: Chunk) -> Iterator[slice]:
    yield slice(0, len(chunk.encodings))


SWEEPS: dict[str, Sweep] = {
    "conductance": Sweep(1, _conductance, _by_nodes, _path, uses_target=True, spare_core=True),
    "attattr": Sweep(1, _attattr, _by_nodes, _integration, uses_target=True),
    "gates": Sweep(
        1,
        gradients.gates,
        _by_tokens,
        lambda options: {},
        uses_gold=True,
        sentences=gradients.sentence_gates,
        by_gates=True,
    ),
    "entropy": Sweep(1, attention_entropy.sweep, _by_tokens, lambda options: {}, uses_gold=True, by_gates=True),
    "changed gates": Sweep(
        1,
        gim.texts,
        _by_tokens,
        lambda options: {"temperature": options.temperature},
        uses_gold=True,
        sentences=gim.sentences,
        by_gates=True,
    ),
    "weights": Sweep(1, weight_gradients.sweep, _by_tokens, lambda options: {}),
    "ablation": Sweep(
        1,
        _ablation,
        _all_at_once,
        lambda options: {},
        sentences=translation.ablation,
        window=256,
        reads_references=True,
    ),
}
