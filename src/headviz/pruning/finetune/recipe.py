"""The fine-tuning recipe in a model's folder: the options that its makers used."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ...errors import OptionError, whole_number
from ...models.loading import locate
from ..options import FinetuneOptions

FILE = "recipe.json"  # {"finetune": {options of FinetuneOptions}, "examples": how many to train on}


def recipe_of(model: str | Path) -> FinetuneOptions | None:
    """The options in ``recipe.json`` of a model's folder; None = there is none, and the thesis's defaults apply."""
    found = _read(model)
    return None if found is None else FinetuneOptions.from_dict(found["finetune"])


def examples_of(model: str | Path) -> int | None:
    """How many examples the recipe trains on; None = all of the training split."""
    found = _read(model)
    if found is None or found.get("examples") is None:
        return None
    whole_number(found["examples"], f"'examples' in {FILE} of '{model}'", 1)
    return int(found["examples"])


def _read(model: str | Path) -> dict[str, Any] | None:
    file = locate(model) / FILE
    if not file.exists():
        return None
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise OptionError(f"{FILE} of '{model}' is not JSON: {error}. Remove or correct it.") from error
    if not isinstance(found, dict):
        raise OptionError(f"{FILE} of '{model}' holds no recipe. Remove or correct it.")
    # without these options it is a recipe for something else, such as a training from scratch
    return found if "finetune" in found else None
