"""The Python and the command that start a run again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from .. import plugins
from ..display.recipes import Options, call, command, keyword_arguments
from ..options import declared
from ..pruning.algorithms import ALGORITHMS
from ..pruning.options import FinetuneOptions
from ..pruning.plan import BESIDE_THE_PLAN, PruningPlan
from ..runs.record import PRUNE

_NAMED = ("model", "task", "algorithm", "score")  # what every plan says
# these go into --spec: they have no flag, or one that takes something else
_WITHOUT_FLAG = {name for name, one in declared(PruningPlan).items() if one.flag is not None}
_SERVICE = "from headviz.runs import service"


def recipe_of(run: Mapping[str, Any]) -> tuple[str, str] | None:
    """The Python and the command that start a run again; None for kinds without a plan."""
    options = options_of(run)
    return None if options is None else (_python(run), command("run start", options, folded=run["kind"] == PRUNE))


def options_of(run: Mapping[str, Any]) -> Options | None:
    """The options of ``headviz run start`` for the same run; None for kinds without a plan."""
    spec, kind = run["spec"], run["kind"]
    if kind != PRUNE:
        return (("kind", kind), ("spec", json.dumps(spec))) if spec else None
    changed = _changed(spec)
    rest = {name: value for name, value in changed.items() if name in _WITHOUT_FLAG or _holds_commas(value)}
    flags = {name.replace("_", "-"): value for name, value in (_named(spec) | changed).items() if name not in rest}
    more = json.dumps(rest, ensure_ascii=False) if rest else None
    return (*(("plugin", file) for file in plugins.files_of(spec)), *flags.items(), ("spec", more))


def _python(run: Mapping[str, Any]) -> str:
    spec, kind = run["spec"], run["kind"]
    if kind != PRUNE:
        return f"{_SERVICE}\n{call('service.start', kind, spec)}"
    files = list(plugins.files_of(spec))
    loading = f"from headviz import plugins\n{call('plugins.load', files)}\n" if files else ""
    return loading + start(_named(spec) | _changed(spec))


def _named(spec: Mapping[str, Any]) -> dict[str, Any]:
    return {name: spec[name] for name in _NAMED}


def _holds_commas(value: Any) -> bool:
    """Whether a list cannot be written with commas between its parts."""
    return isinstance(value, list) and any("," in str(part) for part in value)


def start(plan: Mapping[str, Any]) -> str:
    """The Python that starts a pruning run, with the options that differ from their defaults."""
    said = dict(plan)
    if said.get("finetune"):
        default = FinetuneOptions().to_dict()
        said["finetune"] = {k: v for k, v in said["finetune"].items() if v != default.get(k)}
    fields = "".join(f"    {word},\n" for word in keyword_arguments(said))
    return (
        f"import headviz\n{_SERVICE}\n"
        f"plan = headviz.prepare(headviz.PruningPlan(\n{fields}))\n"
        f"service.start({PRUNE!r}, plan.spec, title=plan.title, device=plan.device)"
    )


def _changed(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a pruning plan that differ from their defaults."""
    named = _named(spec)
    if named["algorithm"] not in ALGORITHMS:  # of a plugin that is not loaded here
        named["algorithm"] = next(iter(ALGORITHMS))
    default = PruningPlan(**named).to_dict()
    return {
        k: v for k, v in {**PruningPlan.before(), **spec}.items() if k not in BESIDE_THE_PLAN and v != default.get(k)
    }
