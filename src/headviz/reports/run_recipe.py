"""The Python and the command that start a run again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from .. import plugins
from ..pruning.algorithms import ALGORITHMS
from ..pruning.plan import ADDED, BESIDE_THE_PLAN
from ..recipes.structure import Call, Command, Import, Let, Name, Recipe
from ..runs.record import PRUNE

_NAMED = ("model", "task", "algorithm", "score")  # what every plan says
# these go into --spec
_WITHOUT_FLAG = ("finetune", "score_options", "retrain_full", "flops_length", "train_split", "dev_split", "ties")
_START = ("run", "start")
_SERVICE = Import("headviz.runs", ("service",))


def recipe_of(run: Mapping[str, Any]) -> Recipe | None:
    """The recipe of a run; None for kinds without a plan."""
    spec, kind = run["spec"], run["kind"]
    if kind != PRUNE:
        if not spec:
            return None
        command = Command(_START, (("kind", kind), ("spec", json.dumps(spec))))
        return Recipe((_SERVICE, Call("service.start", (kind, spec))), command)
    changed, files = _changed(spec), list(plugins.files_of(spec))
    plan = {name: spec[name] for name in _NAMED} | changed
    rest = {name: value for name, value in changed.items() if name in _WITHOUT_FLAG or _holds_commas(value)}
    flags = {name.replace("_", "-"): value for name, value in plan.items() if name not in rest}
    more = json.dumps(rest, ensure_ascii=False) if rest else None
    options = (*(("plugin", file) for file in files), *flags.items(), ("spec", more))
    loading = (Import("headviz", ("plugins",)), Call("plugins.load", (files,))) if files else ()
    return Recipe((*loading, *lines_of(plan)), Command(_START, options), folded=True)


def _holds_commas(value: Any) -> bool:
    """Whether a list cannot be written with commas between its parts."""
    return isinstance(value, list) and any("," in str(part) for part in value)


def lines_of(plan: Mapping[str, Any]) -> tuple[Any, ...]:
    """The lines of Python that start a pruning run, with the options that differ from their defaults."""
    from ..pruning.options import FinetuneOptions

    said = dict(plan)
    if said.get("finetune"):
        default = FinetuneOptions().to_dict()
        said["finetune"] = {k: v for k, v in said["finetune"].items() if v != default.get(k)}
    words = {"title": Name("plan.title"), "device": Name("plan.device")}
    return (
        Import("headviz"),
        _SERVICE,
        Let("plan", Call("headviz.prepare", (Call("headviz.PruningPlan", (), said, folded=True),))),
        Call("service.start", (PRUNE, Name("plan.spec")), words),
    )


def _changed(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a pruning plan that differ from their defaults."""
    from ..pruning.plan import PruningPlan

    named = {name: spec[name] for name in _NAMED}
    if named["algorithm"] not in ALGORITHMS:  # of a plugin that is not loaded here
        named["algorithm"] = next(iter(ALGORITHMS))
    default = PruningPlan(**named).to_dict()
    return {k: v for k, v in {**ADDED, **spec}.items() if k not in BESIDE_THE_PLAN and v != default.get(k)}
