"""The fine-tuning recipe that a model's folder may carry: what its makers trained it with."""

from __future__ import annotations

import json
from pathlib import Path

from ..errors import OptionError
from ..models.loading import locate
from .options import FinetuneOptions

FILE = "recipe.json"  # {"finetune": {options of FinetuneOptions}}


def recipe_of(model: str | Path) -> FinetuneOptions | None:
    """The options in ``recipe.json`` of a model's folder, or None: then the thesis's defaults apply."""
    file = locate(model) / FILE
    if not file.exists():
        return None
    try:
        given = json.loads(file.read_text(encoding="utf-8"))["finetune"]
    except (ValueError, KeyError, TypeError) as error:
        raise OptionError(
            f"{FILE} of '{model}' holds no fine-tuning recipe: {error!r}. Remove or mend it."
        ) from error
    return FinetuneOptions.from_dict(given)
