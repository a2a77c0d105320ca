"""How many updates the teacher was trained with: a student that gets as many starts under equal conditions."""

from __future__ import annotations

import json
from pathlib import Path

from ...errors import ModelError
from ...models.loading import locate

# what tells it in a model's folder: headviz's own report, transformers' Trainer, the shipped models
FILES = {"training-report.json": "updates", "trainer_state.json": "global_step", "recipe.json": "steps"}


def teacher_updates(model: str | Path, revision: str | None = None) -> int | None:
    """The teacher's updates, where its folder names them.

    >>> teacher_updates("demo"), teacher_updates("demo-translation")
    (20500, 1000)
    """
    folder = locate(model, revision)
    for name, field in FILES.items():
        file = folder / name
        if not file.is_file():
            continue
        try:
            found = json.loads(file.read_text(encoding="utf-8"))
        except ValueError as error:
            raise ModelError(f"{name} of '{model}' is not JSON: {error}. Remove or correct it.") from error
        if isinstance(found, dict) and isinstance(found.get(field), int) and found[field] > 0:
            return int(found[field])
    return None
