"""How a pruned copy of the demo is trained anew: the shipped model's rates, without the gates that made it sparse."""

import math
from typing import Any

from .corpus import MANY
from .recipe import Recipe

UPDATES = 2000  # a run trains many networks, the full one among them, and compares them at equal length


def retraining(recipe: Recipe) -> dict[str, Any]:
    """The content of ``recipe.json`` beside θ0: options of a fine-tuning, and how many training pairs it reads.

    It reads as many of the shipped pairs as fill batches, several times. Never longer than the shipped model's own
    fine-tuning.
    """
    updates, batches = min(UPDATES, recipe.finetune_steps), MANY // recipe.batch
    return {
        "examples": batches * recipe.batch,
        "finetune": {
            "epochs": math.floor(100 * updates / batches) / 100,
            "batch": recipe.batch,
            "learning_rate": recipe.finetune_rate,
            "weight_decay": recipe.weight_decay,
            "beta2": 0.98,
            "warmup": min(1.0, recipe.warmup / updates),
            "schedule": "plateau",
            "fall": recipe.fall,
            "group_lengths": False,
            "checkpoint_steps": 500,
        },
    }
