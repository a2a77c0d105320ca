"""A few examples between baseline and input: ``Walk`` runs the model at points of that line.

``Swept`` holds the maps on the device until ``maps`` fetches them.

Shapes: B examples, N nodes of a chunk, h heads present in a layer, S of all layers side by side, T tokens of the
longest example, E embedding, C classes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from ..answers.answer import Target, no_numbers
from ..attention import HeadCall
from ..errors import ModelError
from ..models.fast.from_layer import embedded, outputs_of, starts_at_layers, states_from
from ..models.fast.gpu import exact, fetch, put, runs_by_itself
from ..models.places import PLACES
from ..storage.exchange import MaskLike

if TYPE_CHECKING:
    from ..models.classifier import Classifier, Encoding

HALVES = (torch.bfloat16, torch.float16)  # numpy does not have the first


@dataclass(frozen=True, eq=False)
class ExampleMaps:
    """One example without its padding. Heads that the model no longer has are NaN."""

    attention: np.ndarray  # float32 [L, H, T, T]
    attribution: np.ndarray  # float32 [L, H, T, T]
    error: np.ndarray  # [L, H] estimated L2 norm of the attribution's error; NaN = no estimate
    logits: np.ndarray  # [C] or [W, C]
    target: int | tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Swept:
    """The result of one sweep for examples that shared their passes. Each list has pieces with some of the S heads."""

    clf: Classifier
    lengths: list[int]
    attention: list[Tensor]  # pieces [B, s, T, T]
    attribution: list[Tensor]
    errors: list[Tensor]  # pieces [B, s], L2 norms of the error; none = no estimate
    logits: Tensor  # [B, C]
    chosen: Tensor  # [B] or [B, …] the outputs explained

    def example(self, tables: list[Tensor], i: int) -> Tensor:
        """One example's maps without padding, [S, t, t], where they are."""
        t = self.lengths[i]
        return torch.cat([piece[i, :, :t, :t] for piece in tables])

    def maps(self) -> Callable[[], list[ExampleMaps]]:
        """Begins to fetch all maps; the function that comes back waits for them, and holds none on the device."""
        parts = [self.attention, self.attribution, self.errors, [self.logits, self.chosen]]
        wait = fetch([t.float() if t.dtype in HALVES else t for part in parts for t in part])
        clf, lengths, counts = self.clf, self.lengths, list(map(len, parts))

        def finish() -> list[ExampleMaps]:
            arrays = iter(wait())
            attention, attribution, errors, (logits, chosen) = ([next(arrays) for _ in range(n)] for n in counts)
            answers = answers_of(clf, logits)
            return [
                ExampleMaps(
                    _grid(clf, [piece[i, :, :t, :t] for piece in attention], np.float32),
                    _grid(clf, [piece[i, :, :t, :t] for piece in attribution], np.float32),
                    _grid(clf, [piece[i] for piece in errors], np.float64),
                    answers[i],
                    clf.answer.target_of(chosen[i]),
                )
                for i, t in enumerate(lengths)
            ]

        return finish


def side_by_side(tables: list[Tensor]) -> list[Tensor]:
    """Tables [B, h, …] of each layer as a single one: a GPU is faster with few large ones."""
    return tables if len(tables) < 2 else [torch.cat(tables, dim=1)]


def _grid(clf: Classifier, pieces: list[np.ndarray], dtype: type) -> np.ndarray:
    """Pieces [s, …] at the heads' original numbers, [L, H, …]."""
    present = clf.present.array()
    shape = pieces[0].shape[1:] if pieces else ()
    grid = np.full((present.size, *shape), np.nan, dtype)
    places, begin = np.flatnonzero(present), 0
    for piece in pieces:
        grid[places[begin : begin + len(piece)]] = piece
        begin += len(piece)
    return grid.reshape(*present.shape, *shape)


def answers_of(clf: Classifier, logits: np.ndarray) -> np.ndarray:
    """Logits as float32; refused where the model does not answer with numbers."""
    if clf.answer.unanswered(logits):
        raise no_numbers(clf)
    return logits.astype(np.float32)


class Walk:
    """Both ends of the path for a few examples, and what is needed to run the model at points between."""

    def __init__(
        self,
        clf: Classifier,
        encodings: Sequence[Encoding],
        targets: Sequence[Target],
        mask: MaskLike | None,
        width: int = 0,
    ) -> None:
        self.clf, self.encodings, self.targets, self.mask = clf, encodings, targets, mask
        self.lengths = [len(e) for e in encodings]
        hidden = clf.dropped_token
        if hidden is not None and any(hidden in e.ids for e in encodings):
            raise ModelError(
                f"The embeddings of '{clf.name}' depend on which tokens are hidden, so no path of embeddings leads to "
                "a text with such tokens. Leave them out; in place of a masked-language answer, use fresh heads."
            )
        batch = clf.collate(encodings, width)
        self.inputs = {
            **batch,
            "baseline": baseline_ids(clf, encodings, batch["input_ids"]),
            "targets": put(clf.answer.target_table(targets), clf.device),
        }
        self.enter(self.inputs)

    def enter(self, inputs: dict[str, Tensor]) -> None:
        """Set the inputs. Their values are not read here: a CUDA graph repeats the same operations on other values."""
        self.batch = {k: v for k, v in inputs.items() if k in ("attention_mask", "token_type_ids", PLACES)}
        self.size, self.length = inputs["input_ids"].shape
        # word embeddings, before position and type are added: those stay the input's own
        words: Any = self.clf.model.get_input_embeddings()  # type: ignore[operator]
        self.end: Tensor = words(inputs["input_ids"])  # [B, T, E]
        self.start: Tensor = words(inputs["baseline"])
        self.target_table = inputs["targets"]
        # of the heads of all layers side by side, in place of the mask's
        self.gates: Tensor | None = inputs.get("gates")
        self.states: list[Tensor] = []  # what enters each layer, [B, T, D]; empty where a pass starts at the embeddings
        self.chosen: Tensor | None = None  # [B, …] the outputs to explain, known once the logits at the input are

    def call(self, **options: Any) -> HeadCall:
        """A fresh call of the model under the mask, which forms the probabilities."""
        if self.gates is None:
            return self.clf.call(self.mask, "eager", **options)
        gates = [gate.view(1, -1, 1, 1) for gate in self.gates.split(self.clf.heads_per_layer)]
        return HeadCall(tuple(gates), "eager", order=self.clf.order, **options)

    def point(self, alphas: Tensor) -> Tensor:
        """[N] -> embeddings [N·B, T, E], node by node."""
        return (self.start + alphas.view(-1, 1, 1, 1) * (self.end - self.start)).flatten(0, 1)

    def rows(self, x: Tensor) -> dict[str, Tensor]:
        """The model's input for embeddings [N·B, T, E]."""
        count = len(x) // self.size
        batch = {k: v.repeat(count, 1) for k, v in self.batch.items()}
        if runs_by_itself(x.device) and self.clf.family.post_norm is not None and self.clf.in_stages(self.encodings):
            # transformers looks at a mask of two dimensions, and would wait for it; these families take one of four
            batch["attention_mask"] = batch["attention_mask"][:, None, None].bool()
        return {"inputs_embeds": x, **batch}

    def at_input(self, keep: bool) -> tuple[Tensor, list[Tensor]]:
        """Logits [B, C] and, if kept, probabilities per layer [B, h, T, T] of the input itself."""
        call = self.call(keep_probs=keep)
        with torch.no_grad():
            logits = self.clf.forward(self.rows(self.end), call)
        return self.choose(logits), call.probs

    def layer_by_layer(self) -> tuple[Tensor, list[Tensor]]:
        """The same with probabilities. What enters each layer is kept where the model can start at a layer."""
        if not starts_at_layers(self.clf, self.encodings):
            return self.at_input(keep=True)
        call, rows = self.call(keep_probs=True), self.rows(self.end)
        with torch.no_grad():
            *self.states, last = states_from(self.clf, 0, embedded(self.clf, self.inputs), rows, call)
            logits = outputs_of(self.clf, last, rows)
        return self.choose(logits), call.probs

    def copies(self, count: int, call: HeadCall, layer: int) -> Tensor:
        """The outputs of so many copies of the input, node by node, in which nothing changes below this layer."""
        if not self.states:
            return self.clf.forward(self.rows(self.end.repeat(count, 1, 1)), call)
        rows = self.rows(self.states[layer].repeat(count, 1, 1))  # the states stand in the place of embeddings
        *_, last = states_from(self.clf, layer, rows["inputs_embeds"], rows, call)
        return outputs_of(self.clf, last, rows)

    def choose(self, logits: Tensor) -> Tensor:
        """Fix the outputs to explain, from the logits at the input; gives the logits back.

        On a processor, logits that are not finite are refused here. On a GPU that would wait: there, who fetches the
        results does it.
        """
        if not runs_by_itself(logits.device):
            answers_of(self.clf, logits.detach().float().cpu().numpy())
        self.chosen = self.clf.answer.chosen(logits, self.target_table)
        return logits

    def pick(self, logits: Tensor) -> Tensor:
        """The number to explain of each row [N·B]."""
        assert self.chosen is not None
        nodes = (len(logits) // self.size, *[1] * (self.chosen.dim() - 1))
        return self.clf.answer.explained(logits, self.chosen.repeat(nodes))

    def swept(self, logits: Tensor, attention: list[Tensor], values: list[Tensor], errors: list[Tensor]) -> Swept:
        """The result of a sweep, from tables [B, h, T, T] of each layer; without ``errors`` there is no estimate."""
        assert self.chosen is not None
        if runs_by_itself(self.clf.device):
            attention, values, errors = (side_by_side(tables) for tables in (attention, values, errors))
        norms = [self._norm(error) for error in errors]
        return Swept(self.clf, self.lengths, attention, values, norms, logits, self.chosen)

    def _norm(self, error: Tensor) -> Tensor:
        """[B, h] the L2 norm of an error map, padding left out."""
        if min(self.lengths) < error.shape[-1]:
            tokens = self.batch["attention_mask"][:, : error.shape[-1]] != 0
            error = error * (tokens[:, None, :, None] & tokens[:, None, None, :])
        return torch.linalg.vector_norm(exact(error), dim=(2, 3))


def baseline_ids(clf: Classifier, encodings: Sequence[Encoding], ids: Tensor) -> Tensor:
    """Every token replaced by padding, except [CLS] and [SEP], which stay where they are."""
    pad = clf.tokenizer.pad_token_id
    if pad is None:
        raise ModelError(f"The tokenizer of '{clf.name}' has no padding token, which the baseline is made of.")
    stay = np.zeros(ids.shape, dtype=bool)
    for i, e in enumerate(encodings):
        stay[i, : len(e)] = e.special
    return ids.where(put(torch.from_numpy(stay), ids.device), int(pad))
