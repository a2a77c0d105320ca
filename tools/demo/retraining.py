"""How a pruned copy of the demo is trained anew: the shipped model's rates, without the gates that made it sparse."""

from typing import Any

from .recipe import Recipe

UPDATES = 2000  # a run trains many networks, the full one among them, and compares them at equal length


def retraining(recipe: Recipe) -> dict[str, Any]:
    """The content of ``recipe.json`` beside θ0: options of a fine-tuning, and how many training pairs it reads.

    Every pair is read once. Never longer than the shipped model's own fine-tuning.
    """
    updates = min(UPDATES, recipe.finetune_steps)
    return {
        "examples": updates * recipe.batch,
        "finetune": {
            "epochs": 1.0,
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
