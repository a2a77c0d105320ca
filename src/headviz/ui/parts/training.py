"""The fields that say how to train: for fine-tuning, and for pruning algorithms that retrain."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import streamlit as st

from ...errors import OptionError
from ...models.named import NAMED
from ...pruning.options import PRECISIONS, SCHEDULES, FinetuneOptions
from ...tasks import TASKS
from ..shell import loaders, numbers
from ..shell.view import View

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

    from ...pruning.options import FinetuneOptions


@dataclasses.dataclass(frozen=True)
class Recipe:
    """What the fields start with: the recipe in a local model's folder, else the thesis's settings."""

    options: FinetuneOptions
    examples: int | None  # how many it trains on; None = all
    own: bool  # whether the model's folder has it

    def said(self, view: View) -> str:
        """Where the settings come from, and how many training examples they are for."""
        if not self.own:
            return "Settings: those of the 2024 thesis for BERT-base. A small model trained from scratch needs others."
        said = "Settings: the base model's own recipe."
        if self.examples is None or view.data or not (view.task in TASKS and TASKS[view.task].source.module):
            return said
        return (
            f"{said} It trains on {self.examples:,} of the shipped examples; 0 below takes the usual "
            f"{len(loaders.train(view)):,}."
        )


def recipe_for(name: str) -> Recipe:
    """The recipe to start from. A hub model is not downloaded for it."""
    from ...pruning.finetuning import examples_of, recipe_of

    local = name in NAMED or Path(name).is_dir()
    found = recipe_of(name) if local else None
    if found is None:
        return Recipe(FinetuneOptions(), None, False)
    return Recipe(found, examples_of(name), True)


def fields(key: str, recipe: Recipe, examples: int | None) -> tuple[Callable[[], FinetuneOptions], int, DeltaGenerator]:
    """One field for each option. Gives a function that reads and checks them, the number of examples (0 = all), and
    the place for one more field.

    The check comes later, so that a wrong number does not hide the fields after it. ``key`` names the base model too,
    so that another model starts with its own defaults.
    """
    start = recipe.options
    a, b, c = st.columns(3)
    epochs = numbers.field(a, "Epochs", 0.01, 1000.0, float(start.epochs), f"{key}_epochs", format="%g")
    batch = numbers.field(b, "Batch", 1, 4096, start.batch, f"{key}_batch")
    rate = c.text_input("Learning rate", f"{start.learning_rate:g}", key=f"{key}_rate")
    a, b, room = st.columns(3)
    limit = a.number_input("Training examples", value=examples or 0, key=f"{key}_limit", help="0 = all")
    stop = numbers.field(
        b,
        "Stop early after",
        0,
        100,
        start.early_stopping or 0,
        f"{key}_stop",
        help="Epochs without a better dev metric, then the best weights; 0 = never",
    )
    with st.expander("More about the training", icon=":material/tune:"):
        row = st.container(horizontal=True)
        schedule = row.selectbox(
            "Schedule", SCHEDULES, SCHEDULES.index(start.schedule), key=f"{key}_schedule", width=140
        )
        warmup = numbers.field(row, "Warm-up, share", 0.0, 1.0, float(start.warmup), f"{key}_warmup", width=130)
        decay = numbers.field(
            row, "Weight decay", 0.0, 10.0, float(start.weight_decay), f"{key}_decay", format="%g", width=130
        )
        precision = row.selectbox(
            "Training precision", PRECISIONS, PRECISIONS.index(start.precision), key=f"{key}_precision", width=150
        )
        batches = numbers.field(
            row, "Batches per update", 1, 1024, start.accumulation, f"{key}_accumulation", width=150
        )

    def checked() -> FinetuneOptions:
        numbers.within("Training examples", 0, 10_000_000, int(limit))
        return dataclasses.replace(
            start,
            epochs=epochs(),
            batch=batch(),
            learning_rate=number(rate),
            early_stopping=stop() or None,
            schedule=schedule,
            warmup=warmup(),
            weight_decay=decay(),
            precision=precision,
            accumulation=batches(),
        )

    return checked, int(limit), room


def number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise OptionError(f"A learning rate is a number such as 2e-5, not '{text[:20]}'.") from None
