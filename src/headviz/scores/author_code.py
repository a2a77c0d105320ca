"""Conductance as the thesis author's code computes it, where it differs from the thesis's text.

For comparing with published tables only. Padding counts here, so values depend on how long the longest text is; the
defaults of ``conductance-spearman`` follow the definition instead. ``scores.catalogue`` lists the differences.

Shapes: B examples, N nodes of the path, t tokens of the longest one that shares their pass, width: tokens of the
longest text of all, C classes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from ..attribution import integration as path
from ..attribution.rules import PathOptions
from ..attribution.swept import Swept
from ..attribution.walk import Walk
from ..errors import ModelError, OptionError
from .chunk import Chunk
from .options import ConductanceOptions

if TYPE_CHECKING:
    from ..heads import HeadMask
    from ..models.classifier import Classifier, Encoding

TYPES = "token_type_ids"


class AuthorWalk(Walk):
    """The path of the published code: another baseline, another target, padding, and no token types on the way.

    No token attends to padding, and none of its rows reaches the answer, so attributions of padding are exactly 0.
    The path is walked without it, and the zeros are added at the end.
    """

    def __init__(
        self,
        clf: Classifier,
        encodings: Sequence[Encoding],
        targets: Sequence[int | None],
        mask: HeadMask | None,
        width: int,
    ) -> None:
        super().__init__(clf, encodings, targets, mask)
        words = clf.model.get_input_embeddings()  # type: ignore[operator]
        batch = {k: padded(v, width) for k, v in clf.collate(encodings).items()}
        ids = torch.where(batch["attention_mask"] == 1, batch.pop("input_ids"), pad_of(clf))
        self.input = {"inputs_embeds": words(ids), **batch}  # [B, width, …]
        self.width = width
        self.end = self.input["inputs_embeds"][:, : self.length]
        self.start = words(baseline(clf, ids)[:, : self.length])
        self.batch = {k: v for k, v in self.batch.items() if k != TYPES}

    def at_input(self, keep: bool) -> tuple[Tensor, list[Tensor]]:
        """Logits and attentions come from a pass of their own, which has the token types and the padding."""
        call = self.clf.call(self.mask, "eager", keep_probs=keep)
        with torch.no_grad():
            logits = self.clf.forward(self.input, call)
        return self.choose(logits), call.probs

    def pick(self, logits: Tensor) -> Tensor:
        """The highest logit of each row [N·B]: at every node whichever class leads there."""
        return logits.max(dim=1, keepdim=True).values

    def found(
        self, logits: Tensor, attention: list[Tensor], values: list[Tensor], errors: list[Tensor] | None
    ) -> Swept:
        """As they are, padding included."""
        whole = super().found(logits, attention, [squared(value, self.width) for value in values], errors)
        return replace(whole, lengths=[self.width] * self.size)


def baseline(clf: Classifier, ids: Tensor) -> Tensor:
    """[CLS], then [PAD] everywhere, and one [SEP] at the padded end."""
    tokenizer = clf.tokenizer
    if tokenizer.cls_token_id is None or tokenizer.sep_token_id is None:
        raise ModelError(f"The tokenizer of '{clf.name}' has no [CLS] or no [SEP], which this baseline is made of.")
    out = torch.full_like(ids, pad_of(clf))
    out[:, 0], out[:, -1] = int(tokenizer.cls_token_id), int(tokenizer.sep_token_id)
    return out


def pad_of(clf: Classifier) -> int:
    if clf.tokenizer.pad_token_id is None:
        raise ModelError(f"The tokenizer of '{clf.name}' has no padding token, which the baseline is made of.")
    return int(clf.tokenizer.pad_token_id)


def padded(table: Tensor, width: int) -> Tensor:
    """[B, t] -> [B, width], zeros to the right."""
    return torch.nn.functional.pad(table, (0, width - table.shape[1]))


def squared(maps: Tensor, width: int) -> Tensor:
    """[B, h, t, t] -> [B, h, width, width], zeros to the right and below."""
    more = width - maps.shape[-1]
    return torch.nn.functional.pad(maps, (0, more, 0, more))


def width_for(options: ConductanceOptions, lengths: Sequence[int], most: int) -> int:
    """Tokens that every text is padded to: those of the longest one, or more if the options say so."""
    longest = max(lengths)
    if options.padded and options.padded < longest:
        raise OptionError(f"'padded' is {options.padded}, below the {longest} tokens of the longest text.")
    if options.padded > most:
        raise OptionError(f"'padded' is {options.padded}, above the {most} tokens that this model reads.")
    return options.padded or longest


def swept(chunk: Chunk) -> Iterator[Swept]:
    """Maps [T, T] of every example of a chunk, padding included."""
    options: ConductanceOptions = chunk.options
    how = PathOptions(steps=options.steps, rule=options.rule, precision=options.precision)
    return path.swept(
        chunk.clf,
        chunk.encodings,
        chunk.targets,
        how,
        chunk.mask,
        chunk.budget,
        chunk.cancel,
        walk=partial(AuthorWalk, width=options.padded),
        width=options.padded,
    )
