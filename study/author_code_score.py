"""A plugin: the score ``thesis-2024-code``, conductance as the thesis author's code computes it.

For comparing with published tables only: ``--plugin study/author_code_score.py --score thesis-2024-code``. Preset
``thesis-2024`` follows the thesis's text. The code differs from it so:

- it explains the highest logit at each node of the path; the text explains the predicted class
- attributions are made without token types, attentions with them
- the baseline has one [SEP], at the padded end; the text's own [SEP]s become [PAD]
- padding takes part in the correlation: every text has the tokens of the longest
- one example without a correlation voids the head
- not part of the score: steps of 14 of 144 heads (98 at “70 %”; rounded down in ISP, too), and the full model's sd over
  seeds divides by n, not n − 1

``study/author_code.py`` measures what each of them changes.

Shapes: B examples, N nodes of the path, t tokens of the longest one that shares their pass, width: tokens of the
longest text of all, C classes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from headviz.attribution.integration import BUDGET, sweep_walk
from headviz.attribution.rules import AUTO, PRECISIONS, PathOptions
from headviz.attribution.walk import Swept, Walk
from headviz.errors import ModelError, OptionError
from headviz.options import option
from headviz.progress import Cancel, tracked
from headviz.scores import Score
from headviz.scores.map_values import map_values
from headviz.scores.measures import Inputs

if TYPE_CHECKING:
    from headviz.heads import HeadMask
    from headviz.models.classifier import Classifier, Encoding

TYPES = "token_type_ids"


@dataclass(frozen=True)
class CodeOptions(PathOptions):
    """What the author's code leaves to choose."""

    steps: int = option(50, "intervals of the integration path")
    rule: str = option("captum", "integration rule", ("captum",))
    precision: str = option(AUTO, "auto: float32, on a GPU TF32 where it agrees; bfloat16 is a preview", PRECISIONS)
    padded: int = option(0, "tokens that every text is padded to; 0 = those of the longest")


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

    def swept(
        self, logits: Tensor, attention: list[Tensor], values: list[Tensor], errors: list[Tensor] | None
    ) -> Swept:
        """As they are, padding included."""
        whole = super().swept(logits, attention, [squared(value, self.width) for value in values], errors)
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


def width_for(options: CodeOptions, lengths: Sequence[int], most: int) -> int:
    """Tokens that every text is padded to: those of the longest one, or more if the options say so."""
    longest = max(lengths)
    if options.padded and options.padded < longest:
        raise OptionError(f"'padded' is {options.padded}, below the {longest} tokens of the longest text.")
    if options.padded > most:
        raise OptionError(f"'padded' is {options.padded}, above the {most} tokens that this model reads.")
    return options.padded or longest


def swept(
    clf: Classifier,
    encodings: Sequence[Encoding],
    options: PathOptions,
    mask: HeadMask,
    width: int,
    walk: Callable[..., Walk] = AuthorWalk,
    cancel: Cancel | None = None,
) -> Iterator[Swept]:
    """Maps [width, width] of every example, one after the other, padding included."""
    for encoding in encodings:
        yield sweep_walk(walk(clf, [encoding], [None], mask, width), options, BUDGET, cancel=cancel)


def measure(given: Inputs, options: CodeOptions) -> np.ndarray:
    """Spearman's correlation of each example and head [n, L, H]. An example without one voids the head."""
    whole = given.whole
    width = width_for(options, [len(e) for e in whole.encodings], whole.clf.max_length)
    rows = []
    for encoding in tracked(whole.encodings, whole.progress, whole.cancel):
        (one,) = swept(whole.clf, [encoding], options, whole.mask, width, cancel=whole.cancel)
        (value,) = map_values(one, whole.mask.array(), ("spearman",))
        rows.append(value()["spearman"])
    values = np.stack(rows)
    return np.where(np.isnan(values).any(axis=0), np.nan, values)


SCORES = [
    Score(
        name="thesis-2024-code",
        title="Conductance, the thesis author's code",
        meaning="The same correlation as conductance-spearman, as the thesis author's code computes it.",
        formula="mean over examples of Spearman(A, Attr(A)) over all connections, padding included, signed",
        source="“Integrated Gradients for Structured Pruning on BERT” (2024), its code",
        measure=measure,
        needs="sample",
        options=CodeOptions,
        caution="for comparing with published tables only; values depend on how long the longest text is",
        explained_only="explains the class that a model predicts",
    )
]
