"""Maps of one head over the same tokens, with one cross-hair, one zoom and one order for all of them.

A component of its own: a plotly heatmap takes four bytes a number, and no two of them share a hover. Here a number
takes two bytes or less, compressed, and a map never more than ``LIMIT``.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import streamlit as st

from ...display.figures.style import scale_for
from . import component, words_of_file

LIMIT = 85_000  # bytes of one map on the wire
LEVELS = (32767, 2047, 127, 63, 31, 15, 7, 3, 1)  # steps from zero to the largest: the finest that fits
SCALES = ("power", "linear")
ORDERS = ("text", "strongest")


@dataclass(frozen=True)
class Panel:
    """One map [queries, keys] and what is written around it."""

    name: str
    values: np.ndarray
    signed: bool
    caption: str


def linked_maps(
    key: str,
    panels: Sequence[Panel],
    queries: Sequence[str],
    keys: Sequence[str],
    edges: tuple[Sequence[bool], Sequence[bool]],
    *,
    label: str,
    scale: str,
    order: str,
    on_look: Callable[[str, str], None],
) -> None:
    """Draw the maps. ``edges`` says which queries and keys stand at the edge and do not set the colours.

    ``on_look`` gets the scale and the order that the user chose in the browser.
    """

    def looked() -> None:
        sent = st.session_state[key].get("look")
        if sent and sent["scale"] in SCALES and sent["order"] in ORDERS:
            on_look(sent["scale"], sent["order"])

    about = {
        "label": label,
        "queries": list(queries),
        "keys": list(keys),
        "scale": scale,
        "order": order,
        "apart": [[int(x) for x in side] for side in edges],
    }
    component("maps")(key=key, data=message(about, panels), on_look_change=looked)


def message(about: dict[str, Any], panels: Sequence[Panel]) -> bytes:
    """The length of a JSON text, the text, and the maps one after the other."""
    maps, bodies = [], []
    for p in panels:
        top, levels, body = pack(p.values)
        bodies.append(body)
        colours = scale_for([1.0], signed=p.signed)
        maps.append(
            {
                "name": p.name,
                "signed": p.signed,
                "caption": p.caption,
                "save": words_of_file(f"headviz-{p.name}", f"{about['label']}: {p.name}. {p.caption}"),
                "top": top,
                "levels": levels,
                "size": len(body),
                "light": colours.light,
                "dark": colours.dark,
            }
        )
    text = zlib.compress(json.dumps({**about, "maps": maps}).encode())
    return len(text).to_bytes(4, "little") + text + b"".join(bodies)


def pack(values: np.ndarray) -> tuple[float, int, bytes]:
    """The largest size, the number of steps up to it, and the compressed steps, low bytes before high bytes.

    A step is taken on the square root, so that small values keep their digits. NaN becomes zero.
    """
    values = np.nan_to_num(np.asarray(values, dtype=np.float64))
    top = float(np.abs(values).max(initial=0.0)) or 1.0
    root = np.sign(values) * np.sqrt(np.abs(values) / top)
    for levels in LEVELS:
        steps = np.rint(root * levels).astype("<i2" if levels > 127 else "i1")
        body = zlib.compress(steps.reshape(-1, 1).view(np.uint8).T.tobytes(), 6)
        if len(body) <= LIMIT:
            break
    return top, levels, body
