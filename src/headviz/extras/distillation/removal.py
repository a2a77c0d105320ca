"""What is to be removed, as users write it: ``heads:3.5,7.0``, ``layers:4``, ``ffn:2``, ``attention``.

Several parts are joined by ``+``. Layers and heads of translation models name their stack: ``layers:decoder.1``,
``heads:cross.1.5`` (``heads:4.5`` is the head in that row of the grid). ``in_rows`` turns stacks into rows of a model's
grid. ``heads-v:``, ``heads-qkv:``, ``heads-all:``, ``attention-keys``, ``attention:2`` and ``attention:4`` remove the
same, but set other weights to zero (``BY``). ``attention:3`` is ``attention``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ...errors import OptionError, unknown_choice
from ...heads import ENCODER, HeadId, parse_heads

if TYPE_CHECKING:
    from ...models.feed_forward import StackLayer

PARTS = ("heads", "layers", "ffn", "attention", "heads-v", "heads-qkv", "heads-all", "attention-keys")
THEOREMS = ("2", "3", "4")  # of the paper, about an attention; the third is the usual one
# which weights are zeroed: the usual ones (W_O's columns, v_a), or these
BY = {"heads": ("v", "qkv", "all"), "attention": ("keys", "2", "4")}
NAMED = re.compile(r"[a-z]{2,}\.[0-9]{1,6}\.[0-9]{1,6}")


@dataclass(frozen=True)
class Removal:
    """The part to remove: heads, whole layers, feed-forward blocks, or the attention of a recurrent translator."""

    heads: tuple[HeadId, ...] = ()
    layers: tuple[StackLayer, ...] = ()
    ffn: tuple[StackLayer, ...] = ()
    attention: bool = False
    named: tuple[str, ...] = ()  # heads with their stack, such as cross.1.5
    by: str = ""  # of ``BY``, for heads or for the attention

    def __post_init__(self) -> None:
        object.__setattr__(self, "heads", tuple(sorted({HeadId(*h) for h in self.heads})))
        for name in ("layers", "ffn", "named"):
            object.__setattr__(self, name, tuple(sorted(set(getattr(self, name)))))
        if not (self.heads or self.named or self.layers or self.ffn or self.attention):
            raise OptionError("Nothing to remove. Name heads, layers or feed-forward blocks, such as heads:3.5.")
        if self.by and self.by not in BY["attention" if self.attention else "heads"]:
            raise OptionError(f"Nothing is removed by '{self.by}' here. Choose one of: {', '.join(PARTS)}.")
        if self.by and not (self.heads or self.named or self.attention):
            raise OptionError(f"'{self.by}' says how heads are removed, and no head is named.")
        if self.attention and (self.heads or self.named or self.layers or self.ffn):
            raise OptionError("'attention' is for recurrent models, which have no heads or layers. Name only one.")
        lost = [h.dotted for h in self.heads if (ENCODER, h.layer) in self.layers]
        lost += [name for name in self.named if _layer_of(name) in self.layers]
        if lost:
            raise OptionError(f"Head {lost[0]} goes with its layer already. Name one of the two.")
        covered = [p for p in self.ffn if p in self.layers]
        if covered:
            raise OptionError(
                f"The feed-forward block of {_written(covered)} is removed with its layer. Name one of the two."
            )

    @classmethod
    def parse(cls, text: str | Iterable[str]) -> Removal:
        """Read one text, or several that are joined."""
        parts = [p.strip() for t in ([text] if isinstance(text, str) else text) for p in t.split("+") if p.strip()]
        heads: list[HeadId] = []
        named: list[str] = []
        places: dict[str, list[StackLayer]] = {"layers": [], "ffn": []}
        attention, ways = False, set()
        for part in parts:
            kind, _, names = part.partition(":")
            if kind not in PARTS:
                raise OptionError(
                    unknown_choice("part", kind, PARTS) + " Write for example heads:3.5,7.0 or layers:4 or ffn:2."
                )
            kind, _, by = kind.partition("-")
            if kind == "attention":
                if names and (by or names not in THEOREMS):
                    raise OptionError(
                        "'attention' takes no names: it removes the whole attention of a recurrent model. "
                        f"attention:{', attention:'.join(THEOREMS)} choose a theorem of the paper."
                    )
                attention = True
                ways.add(by or names.replace("3", ""))
                continue
            if not names.strip():
                raise OptionError(f"'{part}' names nothing. Write for example heads:3.5,7.0 or layers:4 or ffn:2.")
            items = [name.strip() for name in names.split(",") if name.strip()]
            if kind == "heads":
                ways.add(by)
                for name in items:
                    if NAMED.fullmatch(name):
                        named.append(name)
                    else:
                        heads += parse_heads(name)
            else:
                places[kind] += [_place(name, kind) for name in items]
        if len(ways) > 1:
            raise OptionError("All heads of a removal are removed in one way: heads, heads-v, heads-qkv or heads-all.")
        layers, ffn = tuple(places["layers"]), tuple(places["ffn"])
        return cls(tuple(heads), layers, ffn, attention, tuple(named), ways.pop() if ways else "")

    def in_rows(self, stacks: Mapping[str, range]) -> Removal:
        """The same removal with every head as a row of a model's grid."""
        heads = [*self.heads, *(h for name in self.named for h in parse_heads(name, stacks))]
        return replace(self, heads=tuple(heads), named=())

    @property
    def text(self) -> str:
        """The canonical form; ``parse`` reads it back to an equal removal."""
        parts = []
        if self.heads or self.named:
            parts.append(_by("heads", self.by) + ":" + ",".join([*(h.dotted for h in self.heads), *self.named]))
        for name in ("layers", "ffn"):
            if getattr(self, name):
                parts.append(f"{name}:" + _written(getattr(self, name)))
        return "+".join([*parts, *([_by("attention", self.by)] if self.attention else [])])


def _by(part: str, by: str) -> str:
    return f"{part}{':' if by in THEOREMS else '-'}{by}" if by else part


def _layer_of(name: str) -> StackLayer:
    """The layer that a head named with its stack belongs to: cross-attention lies in the decoder's layers."""
    stack, layer, _ = name.split(".")
    return "decoder" if stack == "cross" else stack, int(layer)


def _place(text: str, kind: str) -> StackLayer:
    match = re.fullmatch(r"(?:([a-z]+)\.)?([0-9]{1,6})", text)
    if match is None:
        raise OptionError(f"'{text}' is not a layer. Write {kind}:4, or {kind}:decoder.4 for a translator.")
    return match[1] or ENCODER, int(match[2])


def _written(places: Sequence[StackLayer]) -> str:
    return ",".join(str(i) if stack == ENCODER else f"{stack}.{i}" for stack, i in places)
