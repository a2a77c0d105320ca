"""headviz: look into attention heads, switch them off, see what it costs, prune for real.

``import headviz`` is light: torch and transformers load at the first call that needs them.
"""

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from . import plugins
from .errors import UserError
from .heads import HeadId, HeadMask, HeadScores
from .models.opening import register_with_transformers
from .results import shown_by

__version__ = "0.2.0.dev0"

# module -> its public names, loaded at first use. No name here may be that of a module on this level:
# importing the module anywhere would put it in the function's place.
_MODULES = {
    "models.base": "Model",
    "models.classifier": "Classifier",
    "models.loading": "load wrap",
    "models.convert": "convert",
    "models.in_place": "masked prune_heads",
    "pruning.export": "Exported export",
    "pruning.removal": "prune",
    "tasks": "Dataset SampleReport Task load_task sample",
    "answers.comparison": "Comparison Delta",
    "evaluation.dispatch": "evaluate evaluator_of",
    "evaluation.stand_ins": "standing_in",
    "evaluation.evaluator": "Evaluator",
    "evaluation.evaluator_options": "EvaluatorOptions",
    "evaluation.mask_evaluator": "MaskEvaluator",
    "evaluation.paired": "Paired paired",
    "evaluation.plain": "Evaluation",
    "attribution.attattr": "attattr",
    "attribution.conductance": "conductance",
    "attribution.contributions": "contributions head_reading",
    "attribution.maps": "Maps",
    "attribution.patching": "patch patch_pairs",
    "attribution.paths": "paths",
    "attribution.token_explanations": "token_explanations",
    "attribution.tokens": "TokenAttributions token_attributions",
    "scores.scoring": "score_heads score_progressive",
    "analyses.ablation": "Ablation ablate",
    "analyses.all_but_one": "all_but_one",
    "analyses.by_slice": "by_slice",
    "analyses.correlation": "correlation_grids",
    "analyses.cross_dataset": "cross_dataset",
    "analyses.dynamics": "dynamics",
    "analyses.pruning_curve": "pruning_curves",
    "analyses.redundant": "redundant",
    "analyses.interactions": "interactions",
    "analyses.grading": "grade",
    "analyses.roles": "roles",
    "analyses.speed": "speed",
    "demo": "demo_folder",
    "demo.pairs": "minimal_pairs",
    "pruning.faster": "prune_faster",
    "pruning.plan": "PruningPlan",
    "runs.prepare": "prepare",
    "progress": "progress_bar",
    "notebook.board": "show",
    "storage.exchange": "pruned_heads read_ablation read_mask read_scores write_mask write_scores",
}
register_with_transformers()

_LAZY = {name: module for module, names in _MODULES.items() for name in names.split()}

__all__ = ["HeadId", "HeadMask", "HeadScores", "UserError", "__version__", *_LAZY, *plugins.public_names()]

if TYPE_CHECKING:
    from .analyses.ablation import Ablation as Ablation
    from .analyses.ablation import ablate as ablate
    from .analyses.all_but_one import all_but_one as all_but_one
    from .analyses.by_slice import by_slice as by_slice
    from .analyses.correlation import correlation_grids as correlation_grids
    from .analyses.cross_dataset import cross_dataset as cross_dataset
    from .analyses.dynamics import dynamics as dynamics
    from .analyses.grading import grade as grade
    from .analyses.interactions import interactions as interactions
    from .analyses.pruning_curve import pruning_curves as pruning_curves
    from .analyses.redundant import redundant as redundant
    from .analyses.roles import roles as roles
    from .analyses.speed import speed as speed
    from .answers.comparison import Comparison as Comparison
    from .answers.comparison import Delta as Delta
    from .attribution.attattr import attattr as attattr
    from .attribution.conductance import conductance as conductance
    from .attribution.contributions import contributions as contributions
    from .attribution.contributions import head_reading as head_reading
    from .attribution.maps import Maps as Maps
    from .attribution.patching import patch as patch
    from .attribution.patching import patch_pairs as patch_pairs
    from .attribution.paths import paths as paths
    from .attribution.token_explanations import token_explanations as token_explanations
    from .attribution.tokens import TokenAttributions as TokenAttributions
    from .attribution.tokens import token_attributions as token_attributions
    from .demo import demo_folder as demo_folder
    from .demo.pairs import minimal_pairs as minimal_pairs
    from .evaluation.dispatch import evaluate as evaluate
    from .evaluation.dispatch import evaluator_of as evaluator_of
    from .evaluation.evaluator import Evaluator as Evaluator
    from .evaluation.evaluator_options import EvaluatorOptions as EvaluatorOptions
    from .evaluation.mask_evaluator import MaskEvaluator as MaskEvaluator
    from .evaluation.paired import Paired as Paired
    from .evaluation.paired import paired as paired
    from .evaluation.plain import Evaluation as Evaluation
    from .evaluation.stand_ins import standing_in as standing_in
    from .extras.distillation.job import distil as distil
    from .extras.distillation.plan import DistillationPlan as DistillationPlan
    from .extras.tickets.transfer_spec import transfer as transfer
    from .extras.translation.evaluation import TranslationEvaluation as TranslationEvaluation
    from .extras.translation.evaluation import TranslationEvaluator as TranslationEvaluator
    from .extras.translation.evaluation import translate as translate
    from .extras.translation.recurrent import RnnTranslator as RnnTranslator
    from .extras.translation.stacks import stack_report as stack_report
    from .extras.translation.translator import Translator as Translator
    from .models.base import Model as Model
    from .models.classifier import Classifier as Classifier
    from .models.convert import convert as convert
    from .models.in_place import masked as masked
    from .models.in_place import prune_heads as prune_heads
    from .models.loading import load as load
    from .models.loading import wrap as wrap
    from .notebook.board import show as show
    from .progress import progress_bar as progress_bar
    from .pruning.export import Exported as Exported
    from .pruning.export import export as export
    from .pruning.faster import prune_faster as prune_faster
    from .pruning.plan import PruningPlan as PruningPlan
    from .pruning.removal import prune as prune
    from .runs.prepare import prepare as prepare
    from .scores.scoring import score_heads as score_heads
    from .scores.scoring import score_progressive as score_progressive
    from .storage.exchange import pruned_heads as pruned_heads
    from .storage.exchange import read_ablation as read_ablation
    from .storage.exchange import read_mask as read_mask
    from .storage.exchange import read_scores as read_scores
    from .storage.exchange import write_mask as write_mask
    from .storage.exchange import write_scores as write_scores
    from .tasks import Dataset as Dataset
    from .tasks import SampleReport as SampleReport
    from .tasks import Task as Task
    from .tasks import load_task as load_task
    from .tasks import sample as sample


def _display(way: str) -> Callable[..., Any]:
    return lambda value, **options: getattr(import_module(".notebook.display", __name__), way)(value, **options)


shown_by(html=_display("html"), text=_display("text"), figure=_display("figure"))


def __getattr__(name: str) -> Any:
    module = f"{__name__}.{_LAZY[name]}" if name in _LAZY else plugins.module_of(name)
    value = getattr(import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
