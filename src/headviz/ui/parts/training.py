"""The fields that say how to train: for fine-tuning, and for pruning algorithms that retrain."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import streamlit as st

from ...models import NAMED
from ...options import Option, declared
from ...pruning.options import FinetuneOptions
from ...tasks import TASKS
from ..shell import controls, loaders
from ..shell.view import View

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator


EXAMPLES = Option("train_limit", None, "", int, least=1, most=10_000_000, usual="all", title="Training examples")


@dataclasses.dataclass(frozen=True)
class Recipe:
    """What the fields start with: the recipe in a local model's folder, else the thesis's settings."""

    options: FinetuneOptions
    examples: int | None  # how many it trains on; None = all
    of_model: bool  # whether the model's folder has it

    def sentence(self, view: View) -> str:
        """Where the settings come from, and how many training examples they are for."""
        if not self.of_model:
            return "Settings: those of the 2024 thesis for BERT-base. A small model trained from scratch needs others."
        sentence = "Settings: the base model's own recipe."
        if self.examples is None or view.data or not (view.task in TASKS and TASKS[view.task].source.module):
            return sentence
        return (
            f"{sentence} It trains on {self.examples:,} of the shipped examples; write 0 below to train on all "
            f"{len(loaders.train(view)):,} of the view's data."
        )


def recipe_for(name: str) -> Recipe:
    """The recipe to start from. A hub model is not downloaded for it."""
    from ...pruning.finetuning import examples_of, recipe_of

    local = name in NAMED or Path(name).is_dir()
    recipe = recipe_of(name) if local else None
    if recipe is None:
        return Recipe(FinetuneOptions(), None, False)
    return Recipe(recipe, examples_of(name), True)


FIRST = ("epochs", "batch", "learning_rate", "early_stopping")  # shown at once; the others unfold


def fields(
    key: str, recipe: Recipe, examples: int | None
) -> tuple[Callable[[], FinetuneOptions], Callable[[], int | None], DeltaGenerator]:
    """One field for each option. Gives a function that reads and checks them, one for the number of examples (None =
    all), and the place for one more field.

    The check comes later, so that a wrong number does not hide the fields after it. ``key`` names the base model too,
    so that another model starts with its own defaults.
    """
    start = recipe.options
    a, b, c = st.columns(3)
    d, e, room = st.columns(3)
    more = st.expander("More about the training", icon=":material/tune:").container(horizontal=True)
    places = dict(zip(FIRST, (a, b, c, e), strict=True))
    read = {
        name: controls.field(
            places.get(name, more),
            option,
            f"{key}_{name}",
            getattr(start, name),
            width="stretch" if name in places else 150,
        )
        for name, option in declared(FinetuneOptions).items()
        if option.title
    }
    limit = controls.field(d, EXAMPLES, f"{key}_limit", examples)
    return lambda: dataclasses.replace(start, **{name: value() for name, value in read.items()}), limit, room
