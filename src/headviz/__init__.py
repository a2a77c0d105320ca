"""headviz: look into attention heads, switch them off, see what it costs, prune for real.

``import headviz`` is light: torch and transformers load at the first call that needs them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .compat import old_names
from .errors import UserError
from .heads import HeadId, HeadMask

__version__ = "0.1.0"
old_names.install()

# public name -> module that holds it; loaded at first use. A module must not have the name of a function here:
# importing it anywhere would put the module in the function's place.
_LAZY = {
    "load": "models.loading",
    "wrap": "models.loading",
    "Classifier": "models.classifier",
    "prune": "models.pruning",
    "masked": "models.in_place",
    "prune_heads": "models.in_place",
    "load_task": "tasks",
    "sample": "tasks",
    "Dataset": "tasks",
    "evaluate": "evaluation.dispatch",
    "paired": "evaluation.paired",
    "TranslationEvaluator": "evaluation.translation",
    "Evaluator": "evaluation.evaluator",
    "EvaluatorOptions": "evaluation.evaluator",
    "ablate": "analyses.ablation",
    "roles": "analyses.roles",
    "conductance": "attribution.conductance",
    "attattr": "attribution.attattr",
    "patch": "attribution.patching",
    "token_attributions": "attribution.tokens",
    "score_heads": "scores.scoring",
    "score_progressive": "scores.scoring",
    "progress_bar": "progress",
}

__all__ = ["HeadId", "HeadMask", "UserError", "__version__", *_LAZY]

if TYPE_CHECKING:
    from .analyses.ablation import ablate as ablate
    from .analyses.roles import roles as roles
    from .attribution.attattr import attattr as attattr
    from .attribution.conductance import conductance as conductance
    from .attribution.patching import patch as patch
    from .attribution.tokens import token_attributions as token_attributions
    from .evaluation.dispatch import evaluate as evaluate
    from .evaluation.evaluator import Evaluator as Evaluator
    from .evaluation.evaluator import EvaluatorOptions as EvaluatorOptions
    from .evaluation.paired import paired as paired
    from .models.classifier import Classifier as Classifier
    from .models.in_place import masked as masked
    from .models.in_place import prune_heads as prune_heads
    from .models.loading import load as load
    from .models.loading import wrap as wrap
    from .models.pruning import prune as prune
    from .progress import progress_bar as progress_bar
    from .scores.scoring import score_heads as score_heads
    from .scores.scoring import score_progressive as score_progressive
    from .tasks import Dataset as Dataset
    from .tasks import load_task as load_task
    from .tasks import sample as sample


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'headviz' has no attribute '{name}'")
    value = getattr(import_module(f".{_LAZY[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
