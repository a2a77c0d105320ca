"""A report of a run: one HTML file that needs no network, or JSON, CSV or LaTeX."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from plotly.subplots import make_subplots

from .. import plugins
from ..analyses import ablation
from ..answers.metrics import constant_name, continued
from ..display.figures.bars import learning_curve
from ..display.figures.style import frame, grid
from ..display.numbers import span
from ..display.recipes import Options, call, command, keyword_arguments
from ..display.table import REPORT, Table, View
from ..errors import RunError
from ..heads import HeadId, HeadMask, head_name, in_order, order_note
from ..options import declared
from ..pruning import baselines
from ..pruning.algorithms import ALGORITHMS
from ..pruning.baselines import SECTIONS, finding, one_class
from ..pruning.options import FinetuneOptions
from ..pruning.plan import SPEC_ONLY, PruningPlan
from ..runs.files import RunFiles, write_json
from ..runs.kinds import RUNS
from ..runs.reading import RunView, state_of
from ..runs.record import PRUNE, SWEEP
from ..runs.tables import curve_of, run_curves, step_table, sweep_curves, sweep_table
from ..storage.paths import out_file
from ..storage.tables import to_csv, to_latex
from ..storage.writing import disk_errors, replace_file
from .html_page import Page

if TYPE_CHECKING:
    import plotly.graph_objects as go


# The Python and the command that start a run again ---------------------------------------------


_NAMED = ("model", "task", "algorithm", "score")  # fields that every plan has
# options without a flag, or whose flag has another name: they go into --spec
_SPEC_OPTIONS = {name for name, option in declared(PruningPlan).items() if option.flag is not None}
_SERVICE = "from headviz.runs import service"
RUNTIMES = "runtimes"  # the folder of a run's results with a file for each model that was compared


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
    flagless = {name: value for name, value in changed.items() if name in _SPEC_OPTIONS or _holds_commas(value)}
    flags = {name.replace("_", "-"): value for name, value in (_named(spec) | changed).items() if name not in flagless}
    as_json = json.dumps(flagless, ensure_ascii=False) if flagless else None
    return (*(("plugin", file) for file in plugins.files_of(spec)), *flags.items(), ("spec", as_json))


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
    """Whether a list cannot be written with commas between its items."""
    return isinstance(value, list) and any("," in str(item) for item in value)


def start(plan: Mapping[str, Any]) -> str:
    """The Python that starts a pruning run, with the options that differ from their defaults."""
    options = dict(plan)
    if options.get("finetune"):
        default = FinetuneOptions().to_dict()
        options["finetune"] = {k: v for k, v in options["finetune"].items() if v != default.get(k)}
    fields = "".join(f"    {argument},\n" for argument in keyword_arguments(options))
    return (
        f"import headviz\n{_SERVICE}\n"
        f"plan = headviz.prepare(headviz.PruningPlan(\n{fields}))\n"
        f"service.start({PRUNE!r}, plan.spec, title=plan.title, device=plan.device)"
    )


def _changed(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a pruning plan that differ from their defaults."""
    required = _named(spec)
    if required["algorithm"] not in ALGORITHMS:  # of a plugin that is not loaded here
        required["algorithm"] = next(iter(ALGORITHMS))
    default = PruningPlan.before() | PruningPlan(**required).to_dict()
    options = PruningPlan.before() | dict(spec)
    return {k: v for k, v in options.items() if k not in SPEC_ONLY and v != default.get(k)}


# The report in each format ----------------------------------------------------------------------


def write_run(view: RunView, path: Path) -> Path:
    """Write a run into a new file, whose ending chooses the format. The run need not be finished."""
    suffix = path.suffix.lower()
    if suffix not in FORMATS:
        raise RunError(f"'{path.name}' has no ending of a report. Choose one of: {', '.join(FORMATS)}.")
    path = out_file(path, f"report{suffix}")
    if path.exists():
        raise RunError(f"'{path}' exists. Choose another name or remove it first.")
    body = FORMATS[suffix](view).encode()
    with disk_errors(path, len(body)):
        replace_file(path, body)
    return path


def run_json(view: RunView) -> str:
    """A run as JSON, with the summary of its state if it has one."""
    return (
        json.dumps(view.to_dict() | {"summary": _summary(view)}, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    )


def run_csv(view: RunView) -> str:
    return to_csv(*run_table(view).for_files())


def run_tex(view: RunView) -> str:
    table, record = run_table(view), view.record
    caption = f"{record.title} (headviz {record.version}, run {record.id})"
    caption = f"{caption}. {table.caption}" if table.caption else caption
    return to_latex(*table.for_paper(), caption, label=f"run-{record.id}")


def run_table(view: RunView) -> Table:
    """One row per step, full models first; of a sweep per sparsity and metric, of a table of heads per head."""
    if view.record.kind == SWEEP:
        return sweep_table(view.results())
    return heads_table(view) or step_table(view.record.kind, view.record.spec, view.baseline, view.steps)


def keep_runtimes(run_id: str, model: str, compared: View) -> None:
    """Keep the table of runtimes of one of a run's models, for its report."""
    (table,) = (part for part in compared.parts if isinstance(part, Table))
    folder = RunFiles(run_id).results / RUNTIMES
    with disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    texts = {"titles": table.titles(REPORT), "rows": table.texts(REPORT), "caption": table.caption}
    write_json(folder / f"{model}.json", {"finding": compared.finding, **texts})


def run_html(view: RunView) -> str:
    """The HTML report."""
    record = view.record
    page = Page(record.title, f"headviz {record.version} · run {record.id} · {view.state}")
    if record.error:
        page.text(record.error)
    summary = _summary(view)
    for sentence in findings(view):
        page.text(sentence)
    if (content := figure(view)) is not None:
        heading, fig, caption = content
        page.heading(heading)
        page.figure(fig)
        page.text(caption, soft=True)
    table = run_table(view)
    if table.rows:
        page.heading("Heads" if table.key == "heads" else "Steps" if record.kind != SWEEP else "Results over seeds")
        page.table(table.titles(REPORT), table.texts(REPORT))
        if table.caption:
            page.text(table.caption, soft=True)
    for section in SECTIONS.values() if summary else ():
        if (section_table := plugins.function(section.report)(summary)) is not None:
            header, rows, note = section_table
            page.heading(section.title)
            page.table(header, rows)
            page.text(note, soft=True)
    files = RunFiles(record.id)
    for file in sorted((files.results / RUNTIMES).glob("*.json")):
        if runtimes := files.read_json(file):
            page.heading(f"Runtimes: {file.stem}")
            page.text(runtimes["finding"])
            page.table(runtimes["titles"], runtimes["rows"])
            page.text(runtimes["caption"], soft=True)
    if masks := _masks(view, summary):
        page.heading("Masks")
        page.masks(masks)
        page.text("Rows are layers, columns heads, both counted from zero; pale heads are removed.", soft=True)
    page.heading("How it was made")
    page.facts(_facts(view, summary))
    if recipe := recipe_of(view.to_dict()):
        page.heading("The same again")
        page.code(recipe[1])
    if view.log and view.state != "done":
        page.heading("End of the log")
        page.code("\n".join(view.log))
    return page.html()


def findings(view: RunView) -> list[str]:
    """What the steps of a pruning run show; of a sweep, which runs predict (nearly) one class."""
    if view.record.kind == SWEEP:
        return [
            f"{c.record.title}: {continued(remark.strip())}" for c in view.children if (remark := one_class(c.steps))
        ]
    if view.record.kind != PRUNE or not view.steps:
        return []
    return [finding(list(view.steps), next(iter(view.steps[-1]["metrics"])))]


def figure(view: RunView) -> tuple[str, Any, str] | None:
    """Heading, figure and caption of what a run is about; None without one."""
    kind = view.record.kind
    if kind in WITHOUT_PRUNING:
        return WITHOUT_PRUNING[kind](view)
    if kind in RUNS and RUNS[kind].side_by_side:
        return None
    curve = curve_of(view.to_dict()) if not view.children else None
    curves = sweep_curves(view.children) if curve is None else [curve]
    if not curves:
        return None
    full_models = {c.against: baselines.WORDS[c.against] for c in curves}
    sentence = f"Dashed: {' or '.join(full_models.values())}."
    if any(len(c.by_seed) > 1 for c in curves):
        sentence += " Bands: one standard deviation over the seeds."
    if constants := dict.fromkeys(constant_name(c.metric) for c in curves if c.constant is not None):
        sentence += f" Dotted: {' or '.join(constants)}."
    return "Metric against heads pruned", run_curves(curves), sentence


def _summary(view: RunView) -> dict[str, Any]:
    """What the pruning package says about a run's state; empty for other kinds and before the first step."""
    if view.record.kind != PRUNE:
        return {}
    from ..pruning.outcome import summary  # imports torch, which other kinds of runs must not wait for

    state = state_of(view.record)
    return {} if state is None else summary(state)


def _masks(view: RunView, summary: Mapping[str, Any]) -> list[tuple[str, HeadMask]]:
    if not summary.get("grid"):
        return []
    layers, heads = summary["grid"]
    several = len({s.get("seed") for s in view.steps}) > 1
    return [
        (
            f"{s['sparsity']:.0%}" + (f", seed {s['seed']}" if several else ""),
            HeadMask.from_hex(s["mask"], layers, heads),
        )
        for s in view.steps
        if s.get("mask")
    ]


def _facts(view: RunView, summary: Mapping[str, Any]) -> list[tuple[str, Any]]:
    record, spec = view.record, view.record.spec
    versions = summary.get("versions") or {}
    times = (summary.get("seconds") or {}).get("by_phase") or {}
    return [
        ("model", spec.get("model")),
        ("weights", summary.get("model_digest")),
        ("base", spec.get("base")),
        ("base weights", summary.get("base_digest")),
        ("task", spec.get("task")),
        ("data", summary.get("data_digest")),
        ("algorithm", spec.get("algorithm")),
        ("score", spec.get("score")),
        ("seeds", ", ".join(map(str, spec.get("seeds") or []))),
        ("fine-tuning", _training(summary["finetune"]) if summary.get("finetune") else None),
        ("started", _when(record.started)),
        ("ended", _when(record.ended)),
        ("time by phase", ", ".join(f"{k} {span(v)}" for k, v in times.items() if v)),
        ("device", f"{record.device}, {record.threads} threads"),
        ("versions", ", ".join(f"{k} {v}" for k, v in versions.items()) or f"headviz {record.version}"),
        ("notes", " ".join(summary.get("notes") or [])),
    ]


def _training(options: Mapping[str, Any]) -> str:
    """The options of a fine-tuning in one sentence, without those that are not used."""
    rows = ((k.replace("_", " "), v) for k, v in options.items() if v not in (None, False, "", [], ()))
    return ", ".join(k if v is True else f"{k} {v:g}" if isinstance(v, float) else f"{k} {v}" for k, v in rows)


def _when(seconds: float | None) -> str | None:
    return None if seconds is None else time.strftime("%Y-%m-%d %H:%M:%S %z", time.localtime(seconds))


FORMATS: dict[str, Callable[[RunView], str]] = {".html": run_html, ".json": run_json, ".csv": run_csv, ".tex": run_tex}


def _score(view: RunView) -> tuple[str, go.Figure, str] | None:
    outcome = view.outcome
    if not outcome:
        return None
    values = np.array(outcome["values"], dtype=float)
    fig = make_subplots(1, 1)
    grid(fig, values, outcome["score"], 1, 1)
    sentence = f"{outcome['score']} of every head, on {outcome['samples']:,} examples; high = keep."
    sentence += order_note(outcome.get("tied", 0), int(np.isfinite(values).sum()))
    return "Score of every head", frame(fig, 110 + max(220, 26 * len(values))), sentence


def _ablation(view: RunView) -> tuple[str, go.Figure, str] | None:
    if not view.outcome:
        return None
    result = ablation.Ablation.from_dict(view.outcome)
    subject = result.subject
    sentence = f"Points of {subject.called} that {subject.model} loses without each head, on {subject.n:,} examples."
    sentence += order_note(result.tied, len(result.base.kept))
    return "Cost of every head", ablation.figure(result), sentence


def _learning_curve(view: RunView) -> tuple[str, go.Figure, str] | None:
    points = view.steps[0].get("curve") if view.steps else None
    if not points:
        return None
    metric = next(iter(view.steps[0]["metrics"]), "")
    return "Learning curve", learning_curve(points, metric), "Training loss by update, and dev after each epoch."


# how the runs that do not prune are drawn; all others are shown by their steps
WITHOUT_PRUNING = {"score": _score, "ablation": _ablation, "finetune": _learning_curve}


def heads_table(view: RunView) -> Table | None:
    """The heads of a score or an ablation, highest first; None for other runs and unfinished ones."""
    outcome, kind = view.outcome, view.record.kind
    if kind not in ("score", "ablation") or not outcome:
        return None
    bounds = {"low": "interval_low", "high": "interval_high"}
    fields = {"value": "values", **bounds}
    if kind == "ablation":
        fields = {"cost": "values", **bounds, "p": "p_value", "q": "q_value"}
    tables = [outcome[field] for field in fields.values()]
    row_names = outcome.get("subject", {}).get("rows") or None
    rows = [
        [head_name(HeadId(layer, head), row_names), *(table[layer][head] for table in tables)]
        for layer, values in enumerate(outcome["values"])
        for head, value in enumerate(values)
        if value is not None
    ]
    return Table("heads", ("head", *fields), in_order(rows, [-row[1] for row in rows], seed=0))
