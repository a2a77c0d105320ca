"""``headviz run``: pruning runs in the background, and other long work."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import plugins
from ..display.numbers import fixed, share, size, span
from ..display.table import Column, Table
from ..errors import INTERNAL, LARGEST_SEED, OptionError, RunError
from ..evaluation.verdict import MARGIN, MARGIN_OPTION
from ..options import Option, add_flags, add_options, from_flags
from ..pruning.algorithms import ALGORITHMS, DEFAULT
from ..pruning.baselines import WORDS, finding
from ..pruning.options import FinetuneOptions
from ..pruning.plan import SPEC_ONLY, PruningPlan
from ..results import to_json
from ..runs import reading, service, sweep
from ..runs.kinds import EXECUTORS
from ..runs.prepare import estimate, prepare, prepare_all
from ..runs.process import BUSY
from ..runs.reading import Row
from ..runs.record import DONE, FAULT, LOCAL, PRUNE, RunRecord
from ..runs.step_models import save_model
from ..runs.tables import step_table, sweep_table
from ..storage.paths import new_folder, outside_path, read_small
from .common import add_subcommand, table, table_text, warn
from .finetune import add_training, training_options

if TYPE_CHECKING:
    from ..runs.prepare import Prepared


# The options of a pruning plan on the command line, and the plan read back from them -----------


AXES = ("task", "algorithm", "score")  # of which a sweep has several


def add_plan(parser: argparse.ArgumentParser) -> None:
    """The flags of a plan. One that is not given keeps the plan's own default."""
    add_flags(parser, PruningPlan)
    add_training(parser)


def read_plan(args: argparse.Namespace, spec: dict[str, Any] | None = None, **chosen: str) -> PruningPlan:
    """The plan of these flags; ``spec`` is a plan as JSON which the flags override."""
    options: dict[str, Any] = {k: v for k, v in (spec or {}).items() if k not in SPEC_ONLY}
    options |= from_flags(args, PruningPlan) | chosen
    for name in ("model", "task", "algorithm"):
        if not options.get(name):
            raise OptionError(f"--{name} is needed. See: headviz run start --help")
    for name in AXES:
        if "," in str(options.get(name, "")):
            raise OptionError(
                f"A run has one {name}. For several, such as --{name} {options[name]}, use headviz run sweep."
            )
    if from_flags(args, FinetuneOptions):
        finetune = options.get("finetune")
        recipe = _recipe(options) if finetune is None else FinetuneOptions.from_dict(finetune)
        options["finetune"] = training_options(args, recipe)
    only_score = ALGORITHMS[options["algorithm"]].only_score if options["algorithm"] in ALGORITHMS else None
    if only_score and "score" not in options:
        options["score"] = only_score
    return PruningPlan.from_options(options)


def _recipe(options: dict[str, Any]) -> FinetuneOptions | None:
    """The base model's own recipe: a flag changes one number of it, not all."""
    from ..pruning.context import base_of
    from ..pruning.finetuning import recipe_of

    base = base_of(PruningPlan.from_dict({k: v for k, v in options.items() if k != "finetune"}))
    return None if base is None else recipe_of(base)


# Runs as text for people at a terminal ---------------------------------------------------------


def show(result: dict[str, Any]) -> str:
    if "runs" in result:
        return _show_list(result["runs"])
    if "report" in result:
        return f"written: {result['report']}"
    if "saved" in result:
        return table([("model", _saved(result["step"])), *result["saved"].items()])
    if "freed" in result:
        return f"{result['id']}: {size(result['freed'])} freed"
    if "plan" in result:
        return _columns(_plan_rows(result["plan"]))
    return _show_run(result)


def _saved(step: dict[str, Any]) -> str:
    """Which step's model it is, and what it is worth."""
    name, value = next(iter(step["metrics"].items()))
    return (
        f"seed {step['seed']}, step {step['step']}: {share(step['sparsity'])} of the heads off, {name} {fixed(value)}"
    )


def _show_list(runs: list[dict[str, Any]]) -> str:
    if not runs:
        start = f"headviz run start --model demo --task demo --algorithm {DEFAULT} --score taylor"
        return f"No runs yet. Start one: {start}"
    rows = []
    for r in runs:
        rows += [r, *({**child, "id": f"  {child['id']}"} for child in r.get("children", []))]
    return table_text(Table.of("runs", (*RUN[:3], STARTED, RUN[3]), rows))


def _show_run(record: dict[str, Any]) -> str:
    rows = [("run", record["id"]), ("what", record["title"]), ("state", record["state"])]
    if record["error"]:
        rows.append(("error", record["error"]))
    if record["state"] in ("running", "cancelling"):
        rows.append(("now", doing(record)))
    if record["position"]:
        rows.append(("queue", f"place {record['position']}"))
    parts = [_columns(rows)]
    if record.get("children"):
        parts.append(table_text(Table.of("runs", (*RUN, ERROR), record["children"])))
    if record.get("results"):
        parts.append(table_text(sweep_table([Row(**row) for row in record["results"]])))
    if (steps := step_table(record.get("kind", ""), record.get("spec", {}), record["baseline"], record["steps"])).rows:
        parts.append(table_text(steps))
        if record.get("kind") == PRUNE and record["steps"]:
            parts.append(
                finding(record["steps"], next(iter(record["steps"][0]["metrics"])), record.get("margin", MARGIN))
            )
            parts.append(f"changes are against {WORDS[record['steps'][0]['against']]}")
    parts += [f"Note: {note}" for note in (record.get("outcome") or {}).get("notes") or ()]
    if record["state"] in ("failed", "lost") and record["log"]:
        parts.append("\n".join(["end of the log:", *(f"  {line}" for line in record["log"][-12:])]))
    return "\n\n".join(parts)


# seconds of one piece of work -> how many of it the plan has
_TIMED = {"scoring_seconds": "scorings", "finetuning_seconds": "finetunings", "evaluation_seconds": "evaluations"}


def _plan_rows(plan: dict[str, Any]) -> list[tuple[str, str]]:
    """What a plan would do, and its time: of each kind of work, to start, and in all."""
    rows = []
    start_seconds = plan.get("total_seconds", 0.0)
    for name, value in plan.items():
        if value is None or name == "drawn":
            continue
        if name in _TIMED:
            count = plan[_TIMED[name]]
            start_seconds -= count * value
            rows.append((f"time of {_TIMED[name]}", f"{count:,} × {span(value)} = {span(count * value)}"))
        elif name == "total_seconds":
            rows += [("time to start", span(max(0.0, start_seconds))), ("time in all", f"about {span(value)}")]
        elif name == "calibration_seconds":
            rows.append(("measured in", span(value)))
        elif name in ("seconds", "serial_seconds"):  # of a sweep
            rows.append(("time" if name == "seconds" else "one after the other", f"about {span(value)}"))
        else:
            text = _samples(value, plan["drawn"]) if name == "samples" else _short(value)
            rows.append((name.replace("_", " "), text))
    return rows


def _samples(samples: int, drawn: list[int]) -> str:
    """How many examples the heads are scored on; the training examples of a class may be fewer than its share."""
    if not drawn:
        return "none: the score needs no examples"
    least, most = min(drawn), max(drawn)
    if least == samples:
        return f"{samples:,}"
    return f"{least:,}{f' to {most:,}' if most > least else ''} drawn, up to {samples:,} asked for"


def _steps(record: dict[str, Any]) -> str:
    """How many steps are done; for a sweep, how many runs."""
    if record.get("children"):
        return f"{sum(c['state'] == 'done' for c in record['children'])}/{len(record['children'])} runs"
    done, total = record["count"]
    return f"{done}/{total or '?'}"


def _columns(rows: list[tuple[str, str]]) -> str:
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"{name:<{width}}  {text}" for name, text in rows)


def doing(record: dict[str, Any]) -> str:
    progress = record["progress"]
    if record["state"] == "queued":
        return f"place {record['position']} in the queue" if record["position"] else "starting"
    done, total = record["count"]
    words = [f"{done} of {total} steps done" if total else "starting"]
    if progress["phase"]:
        words.append(progress["phase"] + (f" {progress['done']} of {progress['total']}" if progress["total"] else ""))
    if progress["remaining"] is not None:
        words.append(f"about {span(progress['remaining'])} left")
    if progress["memory"]:
        words.append(f"{progress['cpu_percent']:.0f} % processor, {size(progress['memory'])} memory")
    if (progress["others_percent"] or 0.0) >= BUSY:
        words.append(f"the machine is busy: other programs take {progress['others_percent']:.0f} % of it")
    if not progress["responsive"]:
        words.append(f"has not reported for {span(progress['silent'])}")
    return ", ".join(words)


def _when(seconds: float | None) -> str:
    return "–" if seconds is None else time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))


def _short(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.3g}"
    if isinstance(value, list):
        return ", ".join(map(str, value[:12])) + (" …" if len(value) > 12 else "")
    return str(value)


RUN = (
    Column("id", value=itemgetter("id")),
    Column("state", value=itemgetter("state")),
    Column("steps", value=_steps),
    Column("what", value=itemgetter("title")),
)
STARTED = Column("started", value=lambda run: _when(run["started"]))
ERROR = Column("error", value=lambda run: run["error"] or "")


# -----------------------------------------------------------------------------------------------


START = (
    Option("kind", PRUNE, "prune, or another kind with --spec", metavar="K"),
    Option("spec", help="the whole plan as JSON, or a file with it", metavar="JSON"),
)
WHERE = (
    Option("title", "", "what lists of runs call it", metavar="TEXT"),
    Option("threads", None, "processor threads", int, least=1, most=4096, usual="all", metavar="N"),
)
PLAN = Option("plan", False, "only show what would be done, and how long it may take")
WAIT = Option("wait", False, "stay until it has ended")
SWEEP_SPEC = Option("spec", help="further options of every run's plan as JSON, or a file", metavar="JSON")
WORKERS = Option(
    "workers", None, "runs at once, for the estimate", int, least=1, usual="as this machine allows", metavar="N"
)
USER = Option(
    "user", help="act as this user; for runs started in a dashboard behind a login", usual="you", metavar="NAME"
)
ARCHIVED = Option("archived", False, "the archived runs")
REPORT_FILE = Option(
    "out", help="a new file; its ending chooses: .html, .json, .csv or .tex", metavar="FILE", required=True
)
SAVE = (
    Option("out", help="a new folder", metavar="DIR", required=True),
    Option("seed", None, "which seed's model", int, most=LARGEST_SEED, usual="the plan's first", metavar="S"),
    Option("step", None, "after which step", int, least=1, usual="the last", metavar="K"),
)
BACK = Option("back", False, "take it out of the archive")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="WHAT")
    for name, (declare, _, about) in ACTIONS.items():
        add_subcommand(actions, name, about, declare)


def run(args: argparse.Namespace) -> dict[str, Any] | None:
    return ACTIONS[args.action][1](args)


# start ----------------------------------------------------------------------------------------


def _start_arguments(parser: argparse.ArgumentParser) -> None:
    add_plan(parser)
    add_options(parser, START)
    _where(parser)


def _where(parser: argparse.ArgumentParser) -> None:
    """What ``start`` and ``sweep`` share."""
    add_options(parser, WHERE)
    others = "".join(f", or {executor.about}" for executor in EXECUTORS.values())
    parser.add_argument(
        "--executor", default=LOCAL, metavar=f"{{{','.join((LOCAL, *EXECUTORS))}}}", help=f"this machine{others}"
    )
    add_options(parser, (PLAN, WAIT))


def _start(args: argparse.Namespace) -> dict[str, Any] | None:
    about = {"executor": args.executor, "threads": args.threads}
    if args.kind != PRUNE:
        if args.plan:
            raise OptionError(f"--plan is for pruning runs; one of kind '{args.kind}' has no plan to show.")
        record = service.start(args.kind, _spec(args.spec or "{}"), title=args.title, **about)
        return _after_start(args, record)

    prepared = prepare(read_plan(args, None if args.spec is None else _spec(args.spec)))
    for note in prepared.notes:
        warn(note)
    if args.plan:
        return {"plan": _plan(prepared, args.threads)}
    record = service.start(PRUNE, prepared.spec, title=args.title or prepared.title, device=prepared.device, **about)
    return _after_start(args, record)


def _spec(text: str) -> dict[str, Any]:
    try:
        body = text if text.lstrip().startswith("{") else read_small(outside_path(text, "--spec"), 2**24, "--spec")
        spec = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise OptionError(f"--spec is not JSON: {error}.") from error
    if not isinstance(spec, dict):
        raise OptionError("--spec is a JSON object with the options of the plan.")
    return spec


def _plan(prepared: Prepared, threads: int | None) -> dict[str, Any]:
    guess = estimate(prepared, threads or service.default_threads())
    about = {name: prepared.spec[name] for name in ("model", "task", "algorithm", "score", "samples")}
    about["drawn"] = list(prepared.drawn)
    return {**about, **prepared.amount.__dict__, "heads_off": list(prepared.sizes), **guess.to_dict()}


def _after_start(args: argparse.Namespace, record: RunRecord) -> dict[str, Any] | None:
    if args.wait:
        return _wait(args, record.id)
    return reading.show(record.id).to_dict()


def _wait(args: argparse.Namespace, run_id: str) -> dict[str, Any] | None:
    """Wait until the run has ended. Ctrl-C ends the waiting, not the run."""
    bar = _Bar()
    try:
        service.wait_for(run_id, watch=bar.show)
    except KeyboardInterrupt:
        bar.close()
        warn(f"run {run_id} goes on. See it: headviz run show {run_id}. Stop it: headviz run cancel {run_id}")
        raise
    bar.close()
    result = reading.show(run_id).to_dict()
    if result["state"] == DONE:
        return result
    # the steps so far are printed even though the run did not succeed
    sys.stdout.write((to_json(result) if args.json else show(result)).rstrip() + "\n")
    sys.stdout.flush()
    reason = result["error"] or f"Run {run_id} was {result['state']}."
    if result["code"] == FAULT:
        sys.stderr.write(f"headviz: {reason}\n")
        raise SystemExit(INTERNAL)
    raise RunError(reason)


class _Bar:
    """A line on stderr that shows how far a run is; nothing where stderr is not a terminal."""

    def __init__(self) -> None:
        self.live = sys.stderr.isatty()
        self.next = 0.0

    def show(self, record: RunRecord) -> None:
        if self.live and time.monotonic() >= self.next:
            self.next = time.monotonic() + 0.5
            view = reading.show(record.id, log_lines=0)
            sys.stderr.write(f"\r\x1b[K{view.state}: {doing(view.to_dict())}")
            sys.stderr.flush()

    def close(self) -> None:
        if self.live:
            sys.stderr.write("\r\x1b[K")


# sweep ----------------------------------------------------------------------------------------


def _sweep_arguments(parser: argparse.ArgumentParser) -> None:
    add_plan(parser)
    SWEEP_SPEC.add_to(parser)
    _where(parser)
    WORKERS.add_to(parser)


def _sweep(args: argparse.Namespace) -> dict[str, Any] | None:
    axes = {n: tuple(part.strip() for part in (getattr(args, n) or "").split(",") if part.strip()) for n in AXES}
    for name, values in axes.items():
        if not values:
            raise OptionError(f"--{name} is needed, one or several with commas. See: headviz run sweep --help")
    first = {n: values[0] for n, values in axes.items()}
    plan = read_plan(args, None if args.spec is None else _spec(args.spec), **first)
    base = {**plan.before(), **plan.to_dict()}
    tasks, algorithms, scores = axes.values()
    plans = sweep.expand(base, tasks, algorithms, scores, base["seeds"])
    prepared = prepare_all(plans)
    for note in dict.fromkeys(n for p in prepared for n in p.notes):
        warn(note)
    if args.plan:
        planned = sweep.plan_of(prepared, args.threads or service.default_threads(), args.workers)
        return {"plan": planned.to_dict()}
    members = [sweep.Member(PRUNE, p.spec, f"{p.title} · seed {p.spec['seeds'][0]}"[:200], p.device) for p in prepared]
    title = args.title or sweep.title_for(tasks, algorithms, scores, base["seeds"])
    spec = {**{f"{n}s": list(values) for n, values in axes.items()}, "seeds": list(base["seeds"]), "model": args.model}
    record = sweep.start_sweep(members, title=title, spec=spec, executor=args.executor, threads=args.threads)
    return _after_start(args, record)


# look, cancel, resume, report -----------------------------------------------------------------


def _of_a_run(*options: Option) -> Callable[[argparse.ArgumentParser], None]:
    """The arguments of what is done with one run."""

    def declare(parser: argparse.ArgumentParser) -> None:
        parser.add_argument("id", metavar="ID", help="the run, or the beginning of its id")
        add_options(parser, options)

    return declare


def _list(args: argparse.Namespace) -> dict[str, Any]:
    return {"runs": [v.to_dict() for v in reading.overview(archived=args.archived)]}


def _show(args: argparse.Namespace) -> dict[str, Any]:
    return {**reading.show(args.id).to_dict(), "margin": args.margin}


def _cancel(args: argparse.Namespace) -> dict[str, Any]:
    return reading.show(service.cancel(args.id, args.user).id).to_dict()


def _resume(args: argparse.Namespace) -> dict[str, Any] | None:
    return _after_start(args, service.resume(args.id, args.user))


def _report(args: argparse.Namespace) -> dict[str, Any]:
    write_run = plugins.function("headviz.reports.run_report:write_run")
    return {"report": str(write_run(reading.show(args.id, log_lines=200), outside_path(args.out, "--out")))}


def _save(args: argparse.Namespace) -> dict[str, Any]:
    from ..pruning.outcome import REPORT

    places = save_model(args.id, new_folder(args.out), args.seed, args.step)
    report = json.loads(Path(places[REPORT]).read_text(encoding="utf-8"))
    saved = report["saved"]
    step = next(s for s in report["steps"] if (s["seed"], s["step"]) == (saved["seed"], saved["step"]))
    return {"saved": places, "step": {name: step[name] for name in ("seed", "step", "sparsity", "metrics")}}


def _archive(args: argparse.Namespace) -> dict[str, Any]:
    return {"id": args.id, "freed": service.archive(args.id, args.user, back=args.back)}


def _delete(args: argparse.Namespace) -> dict[str, Any]:
    return {"id": args.id, "freed": service.delete(args.id, args.user)}


# what -> (its arguments, what it does, help)
ACTIONS: dict[str, tuple[Callable[[Any], None], Callable[[Any], dict[str, Any] | None], str]] = {
    "start": (_start_arguments, _start, "start a run; it waits in the queue while others use its device"),
    "sweep": (_sweep_arguments, _sweep, "tasks × algorithms × scores × seeds as one parent with a run for each"),
    "list": (partial(add_options, options=(ARCHIVED,)), _list, "all runs, newest first"),
    "show": (_of_a_run(MARGIN_OPTION), _show, "one run: its steps, what it is doing, the end of its log"),
    "cancel": (_of_a_run(USER), _cancel, "stop a run; its finished steps stay"),
    "resume": (_of_a_run(USER, WAIT), _resume, "continue a cancelled, failed or lost run after its last step"),
    "report": (_of_a_run(REPORT_FILE), _report, "write a run down as HTML, JSON, CSV or LaTeX"),
    "save": (_of_a_run(*SAVE), _save, "save a step's pruned model, its masked export, report and curve"),
    "archive": (_of_a_run(USER, BACK), _archive, "move an ended run to the archived runs; steps and results stay"),
    "delete": (_of_a_run(USER), _delete, "delete an ended run with everything it kept"),
}
