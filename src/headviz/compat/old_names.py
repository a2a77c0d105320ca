"""Module paths of version 0.1 lead to the modules as they are now called. This goes with version 0.3."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from operator import attrgetter
from types import ModuleType
from typing import Any

# the old path, the new one; both below headviz
MOVED: dict[str, str] = dict(
    line.split()
    for line in """
tables storage.tables
store storage.store
strictdisk storage.strict_disk
home storage.home
progressbar progress
waiting models.fast.thread_spinning
fastlinear models.fast.linear
models.kernels models.fast.kernels
models.packing models.fast.packing
models.stages models.fast.stages
models.layouts models.families.sheet
models.memory models.decoding_cache
models.sums models.families.sheet
models.trunks models.families.sheet
models.trimming models.layer_removal
models.rnn models.recurrent_network
models.fresh models.fresh_weights
models.position models.position_tables
tasks.table tasks.catalogue
evaluator evaluation.evaluator
translating evaluation.translation
comparison evaluation.comparison
significance evaluation.significance
resampling evaluation.resampling
statecache evaluation.state_cache
path attribution.integration
rules attribution.rules
conductance_maps attribution.conductance
attattr_maps attribution.attattr
tokens attribution.tokens
maps attribution.maps
connections attribution.arcs
attentionshift attribution.attention_shift
restore attribution.which_head
explaining attribution.explaining
inputs attribution.inputs
scores.table scores.catalogue
analyses.masked_place scores.masked_place
scores.fresh scores.fresh_heads
scores.taskloss scores.task_loss
scores.threads scores.spare_core
analyses.table analyses.catalogue
analyses.bench analyses.given
analyses.doing analyses.common
pruning.table pruning.algorithms
pruning.gradients scores.scoring
pruning.igspf pruning.algorithms
pruning.igspp pruning.algorithms
pruning.isp pruning.algorithms
pruning.iterative pruning.algorithms
pruning.mask_search pruning.algorithms
pruning.one_importance pruning.algorithms
pruning.one_shot_isp pruning.algorithms
pruning.callbacks pruning.finetune.callbacks
pruning.recipe pruning.finetune.recipe
pruning.initialising pruning.finetune.initialising
pruning.sharing pruning.finetune.sharing
pruning.repairing pruning.repair.apply
pruning.compensation pruning.repair.bias
pruning.refit pruning.repair.refit
pruning.tuning pruning.repair.tune
pruning.moments pruning.repair.moments
pruning.streams pruning.repair.streams
pruning.sentence_streams pruning.repair.sentence_streams
pruning.layouts pruning.tickets.thesis_tables
pruning.together pruning.tickets.seeds_together
pruning.transfer pruning.tickets.transfer
pruning.scoring pruning.step_scores
distillation.translating distillation.recurrent
distillation.rnn distillation.recurrent_partition
distillation.seq2seq distillation.sentences
distillation.state distillation.run_state
charts_analyses analyses.catalogue
charts_curves analyses.catalogue
charts_distil charts.distil
charts_heads charts.heads
charts_maps charts.maps
charts_parts charts.style
charts_runs runs.curves
palette charts.palette
report reports.run_report
report_heads reports.heads
report_steps reports.steps
htmlpage reports.html_page
maskedit ui.shell.mask_edit
runs.heart runs.heartbeat
runs.stepmaps runs.step_maps
runs.jobs.scoring runs.jobs.score
runs.jobs.pruning runs.jobs.prune
runs.jobs.finetuning runs.jobs.finetune
runs.jobs.distilling runs.jobs.distill
runs.jobs.ablation runs.jobs.ablate
analyses.progress progress
""".strip().splitlines()
)

# names that are elsewhere now than their old module: the old module and the name, and where it is; both below headviz
NAMES: dict[str, str] = dict(
    line.split()
    for line in """
translating.evaluator_of evaluation.dispatch:evaluator_of
significance.accuracy_intervals evaluation.intervals:accuracy_intervals
rules.PathSum attribution.path_sum:PathSum
path.Options attribution.rules:Options
path.PRECISIONS attribution.rules:PRECISIONS
attattr_maps.RULES attribution.rules:RULES
attattr_maps.DEFAULT_STEPS attribution.rules:DEFAULT_STEPS
evaluator.GIB evaluation.evaluator_options:GIB
inputs.NUM_TEXTS models.classifier:NUM_TEXTS
scores.table.Given scores.measures:Given
scores.table.ablation scores.measures:ablation
scores.table.attattr_max scores.measures:attattr_max
scores.table.conductance_kendall scores.measures:conductance_kendall
scores.table.conductance_max scores.measures:conductance_max
scores.table.conductance_pearson scores.measures:conductance_pearson
scores.table.conductance_spearman scores.measures:conductance_spearman
scores.table.fisher scores.measures:fisher
scores.table.magnitude scores.measures:magnitude
scores.table.random scores.measures:random
scores.table.taylor scores.measures:taylor
analyses.table.MICHEL analyses.analysis:MICHEL
analyses.table.THESIS scores.catalogue:THESIS
analyses.bench.Bench analyses.given:Given
analyses.doing.ablation analyses.ablation:run
analyses.doing.all_but_one analyses.all_but_one:run
analyses.doing.by_slice analyses.by_slice:run
analyses.doing.correlation analyses.correlation:run
analyses.doing.cross analyses.cross_dataset:run
analyses.doing.curves analyses.pruning_curve:run
analyses.doing.dynamics analyses.dynamics:run
analyses.doing.harmful analyses.harmful:run
analyses.doing.redundant analyses.redundant:run
analyses.doing.scatter analyses.scatter:run
analyses.doing.speed analyses.speed:run
analyses.doing.stacks analyses.stacks:run
charts_analyses.write_html charts.style:write_html
charts_curves.all_but_one analyses.all_but_one:figure
charts_curves.dynamics analyses.dynamics:figure
charts_curves.pruning_curves analyses.pruning_curve:figure
charts_curves.speed analyses.speed:figure
charts_heads.ablation analyses.ablation:figure
charts_heads.by_slice analyses.by_slice:figure
charts_heads.correlation_grids analyses.correlation:figure
charts_heads.cross_dataset analyses.cross_dataset:figure
charts_heads.harmful analyses.harmful:figure
charts_heads.redundant analyses.redundant:figure
charts_heads.scatter analyses.scatter:figure
charts_runs.learning_curve charts.training:learning_curve
distillation.translating.require_translation evaluation.translation:require_translation
pruning.gradients.gate_gradients scores.gate_scores:gate_gradients
pruning.transfer.Matrix pruning.tickets.transfer_matrix:Matrix
pruning.transfer.matrix pruning.tickets.transfer_matrix:matrix
runs.kinds.Tools runs.protocol:Tools
runs.stepmaps.open_run runs.saving:open_run
runs.sweep.Row runs.sweep_table:Row
runs.sweep.full_models runs.sweep_table:full_models
runs.sweep.results runs.reading:RunView.results
""".strip().splitlines()
)


def warn(old: str, new: str, stacklevel: int) -> None:
    warnings.warn(f"{old} is now {new}; the old name goes with version 0.3", DeprecationWarning, stacklevel + 1)


class OldPaths:
    """A finder of modules. It is asked last, so a module that exists is never hidden by an old name."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: Any = None) -> ModuleSpec | None:
        package, _, old = name.partition(".")
        if package != "headviz" or old not in MOVED:
            return None
        warn(name, f"headviz.{MOVED[old]}", 2)
        module = import_module(f"headviz.{MOVED[old]}")
        if any(known.rpartition(".")[0] == old for known in NAMES):
            _old_paths.setdefault(module.__name__, []).append(old)
            vars(module).setdefault("__getattr__", moved_names(module.__name__))
        return ModuleSpec(name, SameModule(module))


class SameModule(Loader):
    """A loader that hands out a module that is there already, so both names are one module."""

    def __init__(self, module: ModuleType) -> None:
        self.module, self.spec = module, module.__spec__

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self.module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self.spec  # the import system has put the old name's there


def names_of(package: str, *modules: str) -> Callable[[str], Any]:
    """``__getattr__`` of a package that has the name of an old module: the old names are found in ``modules``."""

    def getattribute(name: str) -> Any:
        if not name.startswith("__") and find_spec(f"{package}.{name}") is None:
            for module in modules:
                held = import_module(f"{package}.{module}")
                if name in vars(held):
                    warn(f"{package}.{name}", f"{held.__name__}.{name}", 2)
                    return vars(held)[name]
        raise AttributeError(f"module '{package}' has no attribute '{name}'")

    return getattribute


_old_paths: dict[str, list[str]] = {}  # of a module of today: the old paths by which it was imported


def moved_names(module: str) -> Callable[[str], Any]:
    """``__getattr__`` of a module: names that it had under an old path, or has given to another module, are found."""

    def getattribute(name: str) -> Any:
        for old in (*_old_paths.get(module, ()), module.removeprefix("headviz.")):
            if (place := NAMES.get(f"{old}.{name}")) is not None:
                where, _, path = place.partition(":")
                warn(f"headviz.{old}.{name}", f"headviz.{where}.{path}", 2)
                return attrgetter(path)(import_module(f"headviz.{where}"))
        raise AttributeError(f"module '{module}' has no attribute '{name}'")

    return getattribute


def install() -> None:
    if not any(isinstance(finder, OldPaths) for finder in sys.meta_path):
        sys.meta_path.append(OldPaths())
