"""A view's model, data and mask as parts of recipes: code and commands that give the page's result again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ...heads import HeadMask
from ...models.stand_in import ZERO, StandIn
from ...recipes.structure import Call, Get, Import, Let, Name
from .view import View

HEADVIZ = Import("headviz")
Options = tuple[tuple[str, Any], ...]
TEXT_ONLY = ("limit", "limit-seed")  # of the reported data, not of the training examples


def load(view: View) -> Let:
    device = "" if view.device == "auto" else view.device
    given = {"revision": view.revision, "device": device, "dtype": view.dtype, "class_names": view.class_names}
    return Let("clf", Call("headviz.load", (view.model,), {k: v for k, v in given.items() if v}))


def model_given(view: View) -> Options:
    device = "" if view.device == "auto" else view.device
    return ("model", view.model), ("revision", view.revision), ("dtype", view.dtype), ("device", device)


def task(view: View, split: str = "dev", name: str = "data") -> Let:
    given = {
        "data": view.data,
        "limit": view.limit,
        "text_columns": view.columns,
        "label_column": view.label,
        "slice_column": view.groups,
        "seed": view.seed,
    }
    words = {"split": split, **{k: v for k, v in given.items() if v}}
    return Let(name, Call("headviz.load_task", (view.task,), words))


def data_given(view: View) -> Options:
    return (
        ("task", view.task),
        ("data", view.data),
        ("limit", view.limit or None),
        ("limit-seed", (view.seed or None) if view.limit else None),
        ("text-columns", view.columns),
        ("label-column", view.label),
        ("slice-column", view.groups),
        ("label-order", view.classes),
    )


def mask_of(mask: HeadMask) -> Let:
    full = Call("headviz.HeadMask.full", (mask.num_layers, mask.num_heads))
    return Let("mask", Call(Get(full, "without"), ([tuple(h) for h in mask.off],)) if mask.off else full)


def mask_given(mask: HeadMask) -> Options:
    return (("off", [h.dotted for h in mask.off]),)


def model_filled(view: View, chosen: StandIn) -> tuple[tuple[Let, ...], Options]:
    """The model with a choice in the place of heads that are off: the lines behind ``clf``, and the command's words."""
    drawn, given, words = stand_in(view, chosen)
    if not drawn:
        return (), ()
    made = Call("headviz.standing_in", (Name("clf"), given["ablation"], given["reference"]))
    return (*drawn, Let("clf", made)), (*(one for one in data_given(view) if one[0] not in TEXT_ONLY), *words)


def stand_in(view: View, chosen: StandIn) -> tuple[tuple[Let, ...], dict[str, Any], Options]:
    """What stands in a head's place: the lines that draw its reference, and the arguments in code and command."""
    if chosen.kind == ZERO:
        return (), {}, ()
    train = task(replace(view, limit=0), "train", "train")
    drawn = Call("headviz.sample", (Name("train"), chosen.examples), {"seed": chosen.seed, "length_filter": None})
    given = {"ablation": chosen.kind, "reference": Name("reference")}
    return (train, Let("reference", drawn)), given, (("ablation", chosen.kind), ("reference", chosen.examples))
