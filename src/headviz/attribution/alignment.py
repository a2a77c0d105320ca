"""Which token of one text stands for which token of another."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import SequenceMatcher
from typing import TYPE_CHECKING

import numpy as np

from ..errors import OptionError, shown, unknown_choice

if TYPE_CHECKING:
    from ..models.classifier import Encoding

ALL, CHANGED, FIRST = "all", "changed", "first"
POSITIONS = (ALL, CHANGED, FIRST)
Alignment = tuple[int | None, ...]  # for each token of the text its token of the donor; None = it has none


def aligned_by(alignment: Mapping[int, int] | None, text: Encoding, donor: Encoding) -> Alignment:
    """The caller's own alignment, checked; without one, that of ``align``."""
    return align(text, donor) if alignment is None else checked(alignment, text, donor)


def align(text: Encoding, donor: Encoding) -> Alignment:
    """Texts of equal shape are aligned place by place; others by the tokens that they have in common, in order.

    Between two common tokens, a stretch of the same length in both is aligned place by place as well: a word that was
    exchanged. The first tokens always belong together. Raises ``OptionError`` where no word is common.
    """
    if text.special == donor.special and text.types == donor.types:
        return tuple(range(len(text)))
    aligned: list[int | None] = [None] * len(text)
    for tag, a, b, c, d in SequenceMatcher(None, text.ids, donor.ids, autojunk=False).get_opcodes():
        if tag == "equal" or (tag == "replace" and b - a == d - c):
            for i, j in zip(range(a, b), range(c, d), strict=True):
                if text.special[i] == donor.special[j]:
                    aligned[i] = j
    aligned[0] = 0
    if not any(j is not None and not text.special[i] for i, j in enumerate(aligned)):
        raise OptionError("The two texts have no word in common, so no token of one stands for one of the other.")
    return tuple(aligned)


def checked(alignment: Mapping[int, int], text: Encoding, donor: Encoding) -> Alignment:
    """An alignment of the caller's own, {token of the text: token of the donor}."""
    if not isinstance(alignment, Mapping):
        raise OptionError(f"alignment is {{token of the text: token of the donor}}, not {shown(alignment)}.")
    for i, j in alignment.items():
        if not (_is_place(i, len(text)) and _is_place(j, len(donor))):
            raise OptionError(
                f"The alignment {i}: {j} is outside the texts, which have {len(text)} and {len(donor)} tokens."
            )
    return tuple(alignment.get(i) for i in range(len(text)))


def places(positions: str | Sequence[int], text: Encoding, donor: Encoding, alignment: Alignment) -> tuple[int, ...]:
    """The tokens of the text that take the donor's values: all that have a partner, those that differ, or the first."""
    if isinstance(positions, np.ndarray):
        positions = positions.tolist()
    partnered = [i for i, j in enumerate(alignment) if j is not None]
    if positions == ALL:
        return tuple(partnered)
    if positions == FIRST:
        chosen = [0]
    elif positions == CHANGED:
        chosen = [i for i, j in enumerate(alignment) if j is not None and text.ids[i] != donor.ids[j]]
        if not chosen:
            added = len(donor) - len(partnered)
            why = f": the donor only adds {added} token{'s' if added != 1 else ''}" if added else ""
            raise OptionError(f"No token has another one in its place in the donor{why}. Choose other positions.")
    elif isinstance(positions, str):
        raise OptionError(unknown_choice("choice of positions", positions, POSITIONS))
    elif not isinstance(positions, Iterable):
        raise OptionError(f"Positions are numbers of tokens, or one of {', '.join(POSITIONS)}, not {shown(positions)}.")
    else:
        chosen = list(positions)
        for i in chosen:
            if not _is_place(i, len(text)):
                raise OptionError(f"There is no token {i}: the text has {len(text)}, numbered from 0.")
    alone = [i for i in chosen if alignment[i] is None]
    if alone:
        raise OptionError(f"Token {alone[0]} of the text has no partner in the donor. Give an alignment for it.")
    return tuple(sorted(set(chosen)))


def _is_place(i: object, length: int) -> bool:
    return isinstance(i, int | np.integer) and not isinstance(i, bool) and bool(0 <= i < length)
