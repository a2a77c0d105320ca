"""How a pruned copy of the demo is trained anew: the shipped model's recipe, without the gates that made it sparse."""

from typing import Any

from .recipe import Recipe


def retraining(recipe: Recipe) -> dict[str, Any]:
    """The content of ``recipe.json`` beside θ0: options of a fine-tuning, and how many training pairs it reads.

    Every pair is read once, as in the shipped model's own training, which is no shorter.
    """
    return {
        "examples": recipe.finetune_steps * recipe.batch,
        "finetune": {
            "epochs": 1.0,
            "batch": recipe.batch,
            "learning_rate": recipe.finetune_rate,
            "weight_decay": recipe.weight_decay,
            "beta2": 0.98,
            "warmup": recipe.warmup / recipe.finetune_steps,
            "schedule": "plateau",
            "fall": recipe.fall,
            "group_lengths": False,
            "checkpoint_steps": 500,
        },
    }
