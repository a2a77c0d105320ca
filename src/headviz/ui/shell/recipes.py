"""A view's model, data and mask as lines of Python and as options of a command: parts that all pages' recipes share."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ...display.recipes import Code, Options, call
from ...heads import HeadMask
from ...models.stand_in import ZERO, StandIn
from .view import View

HEADVIZ = "import headviz"
TEXT_ONLY = ("limit", "limit-seed")  # of the reported data, not of the training examples


def load(view: View) -> str:
    return f"clf = {call('headviz.load', view.model, **view.loading)}"


def model_options(view: View) -> Options:
    return (("model", view.model), *((name, view.loading.get(name)) for name in ("revision", "dtype", "device", "job")))


def task(view: View, split: str = "dev", name: str = "data") -> str:
    return f"{name} = {call('headviz.load_task', view.task, **view.reading(split))}"


def data_options(view: View) -> Options:
    return (
        ("task", view.task),
        ("data", view.data),
        ("limit", view.limit or None),
        ("limit-seed", (view.seed or None) if view.limit else None),
        ("text-columns", view.columns),
        ("label-column", view.label),
        ("slice-column", view.groups),
        ("separator", view.separator),
        ("skip-bad", view.skip_bad or None),
        ("thresholds", view.thresholds),
        ("label-order", view.classes),
    )


def mask_of(mask: HeadMask) -> str:
    full = call("headviz.HeadMask.full", mask.num_layers, mask.num_heads)
    return f"mask = {call(f'{full}.without', [tuple(h) for h in mask.off]) if mask.off else full}"


def mask_options(mask: HeadMask) -> Options:
    return (("off", [h.dotted for h in mask.off]),)


def model_filled(view: View, chosen: StandIn) -> tuple[tuple[str, ...], Options]:
    """The model with a choice in the place of heads that are off: lines after ``clf``, and the command's options."""
    drawn, keywords, options = stand_in(view, chosen)
    if not drawn:
        return (), ()
    filled = call("headviz.standing_in", Code("clf"), *keywords.values())
    data = (option for option in data_options(view) if option[0] not in TEXT_ONLY)
    return (*drawn, f"clf = {filled}"), (*data, *options)


def stand_in(view: View, chosen: StandIn) -> tuple[tuple[str, ...], dict[str, Any], Options]:
    """What stands in a head's place: the lines that draw its reference, and the arguments in code and command."""
    if chosen.kind == ZERO:
        return (), {}, ()
    train = task(replace(view, limit=0), "train", "train")
    reference = call("headviz.sample", Code("train"), chosen.examples, seed=chosen.seed, length_filter=None)
    keywords = {"ablation": chosen.kind, "reference": Code("reference")}
    options = (("ablation", chosen.kind), ("reference", chosen.examples))
    return (train, f"reference = {reference}"), keywords, options
