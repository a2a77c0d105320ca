"""``headviz run``: pruning runs in the background, and other long work."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..cli import to_json
from ..errors import INTERNAL, LARGEST_SEED, OptionError, RunError
from ..options import Option, add_options
from ..reports.run_report import write_run
from ..runs import reading, service, sweep
from ..runs.kinds import EXECUTORS
from ..runs.prepare import estimate, prepare, prepare_all
from ..runs.record import DONE, FAULT, LOCAL, RunRecord
from ..runs.step_models import save_model
from ..storage.paths import new_folder, outside_path, read_small
from . import run_text
from .common import add_margin, warn
from .planning import AXES, add_plan, read_plan

if TYPE_CHECKING:
    from ..runs.prepare import Prepared

# what -> (its arguments, what it does, help)
ACTIONS: dict[str, tuple[Callable[[Any], None], Callable[[Any], dict[str, Any] | None], str]]


START = (
    Option("kind", "prune", "prune, or another kind with --spec", metavar="K"),
    Option("spec", help="the whole plan as JSON, or a file with it", metavar="JSON"),
)
WHERE = (
    Option("title", "", "what lists of runs call it", metavar="TEXT"),
    Option("threads", None, "processor threads", int, least=1, most=4096, usual="all", metavar="N"),
)
PLAN = Option("plan", False, "only show what would be done, and how long it may take")
WAIT = Option("wait", False, "stay until it has ended")
SWEEP = (
    Option("spec", help="further options of every run's plan as JSON, or a file", metavar="JSON"),
    Option(
        "workers", None, "runs at once, for the estimate", int, least=1, usual="as this machine allows", metavar="N"
    ),
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
    for name, (arguments, _, text) in ACTIONS.items():
        sub = actions.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.", allow_abbrev=False)
        arguments(sub)
        sub.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="print the result as JSON")


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
    if args.kind != "prune":
        if args.plan:
            raise OptionError(f"--plan is for pruning runs; one of kind '{args.kind}' has no plan to show.")
        record = service.start(args.kind, _spec(args.spec or "{}"), title=args.title, **about)
        return _after_start(args, record)

    prepared = prepare(read_plan(args, None if args.spec is None else _spec(args.spec)))
    for note in prepared.notes:
        warn(note)
    if args.plan:
        return {"plan": _plan(prepared, args.threads)}
    record = service.start("prune", prepared.spec, title=args.title or prepared.title, device=prepared.device, **about)
    return _after_start(args, record)


def _spec(text: str) -> dict[str, Any]:
    try:
        body = text if text.lstrip().startswith("{") else read_small(outside_path(text, "--spec"), 2**24, "--spec")
        found = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise OptionError(f"--spec is not JSON: {error}.") from error
    if not isinstance(found, dict):
        raise OptionError("--spec is a JSON object with the options of the plan.")
    return found


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

    sys.stdout.write((to_json(result) if args.json else run_text.show(result)).rstrip() + "\n")
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
            sys.stderr.write(f"\r\x1b[K{view.state}: {run_text.doing(view.to_dict())}")
            sys.stderr.flush()

    def close(self) -> None:
        if self.live:
            sys.stderr.write("\r\x1b[K")


# sweep ----------------------------------------------------------------------------------------


def _sweep_arguments(parser: argparse.ArgumentParser) -> None:
    add_plan(parser)
    SWEEP[0].add_to(parser)
    _where(parser)
    SWEEP[1].add_to(parser)


def _sweep(args: argparse.Namespace) -> dict[str, Any] | None:

    axes = {n: tuple(part.strip() for part in (getattr(args, n) or "").split(",") if part.strip()) for n in AXES}
    for name, given in axes.items():
        if not given:
            raise OptionError(f"--{name} is needed, one or several with commas. See: headviz run sweep --help")
    first = {n: given[0] for n, given in axes.items()}
    plan = read_plan(args, None if args.spec is None else _spec(args.spec), **first)
    base = {**plan.before(), **plan.to_dict()}
    plans = sweep.expand(base, axes["task"], axes["algorithm"], axes["score"], base["seeds"])
    prepared = prepare_all(plans)
    for note in dict.fromkeys(n for p in prepared for n in p.notes):
        warn(note)
    if args.plan:
        found = sweep.plan_of(prepared, args.threads or service.default_threads(), args.workers)
        return {"plan": found.to_dict()}
    members = [
        sweep.Member("prune", p.spec, f"{p.title} · seed {p.spec['seeds'][0]}"[:200], p.device) for p in prepared
    ]
    title = args.title or sweep.title_for(axes["task"], axes["algorithm"], axes["score"], base["seeds"])
    spec = {**{f"{n}s": list(g) for n, g in axes.items()}, "seeds": list(base["seeds"]), "model": args.model}
    record = sweep.start_sweep(members, title=title, spec=spec, executor=args.executor, threads=args.threads)
    return _after_start(args, record)


# look, cancel, resume, report -----------------------------------------------------------------


def _id_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID", help="the run, or the beginning of its id")


def _user_argument(parser: argparse.ArgumentParser) -> None:
    _id_argument(parser)
    USER.add_to(parser)


def _list_arguments(parser: argparse.ArgumentParser) -> None:
    ARCHIVED.add_to(parser, False)


def _list(args: argparse.Namespace) -> dict[str, Any]:
    return {"runs": [v.to_dict() for v in reading.overview(archived=args.archived)]}


def _show_arguments(parser: argparse.ArgumentParser) -> None:
    _id_argument(parser)
    add_margin(parser)


def _show(args: argparse.Namespace) -> dict[str, Any]:
    return {**reading.show(args.id).to_dict(), "margin": args.margin}


def _cancel(args: argparse.Namespace) -> dict[str, Any]:
    return reading.show(service.cancel(args.id, args.user).id).to_dict()


def _resume_arguments(parser: argparse.ArgumentParser) -> None:
    _user_argument(parser)
    WAIT.add_to(parser, False)


def _resume(args: argparse.Namespace) -> dict[str, Any] | None:
    return _after_start(args, service.resume(args.id, args.user))


def _report_arguments(parser: argparse.ArgumentParser) -> None:
    _id_argument(parser)
    REPORT_FILE.add_to(parser)


def _report(args: argparse.Namespace) -> dict[str, Any]:
    return {"report": str(write_run(reading.show(args.id, log_lines=200), outside_path(args.out, "--out")))}


def _save_arguments(parser: argparse.ArgumentParser) -> None:
    _id_argument(parser)
    add_options(parser, SAVE)


def _save(args: argparse.Namespace) -> dict[str, Any]:
    from ..pruning.outcome import REPORT

    places = save_model(args.id, new_folder(args.out), args.seed, args.step)
    report = json.loads(Path(places[REPORT]).read_text(encoding="utf-8"))
    which = report["saved"]
    step = next(s for s in report["steps"] if (s["seed"], s["step"]) == (which["seed"], which["step"]))
    return {"saved": places, "step": {name: step[name] for name in ("seed", "step", "sparsity", "metrics")}}


def _archive_arguments(parser: argparse.ArgumentParser) -> None:
    _user_argument(parser)
    BACK.add_to(parser, False)


def _archive(args: argparse.Namespace) -> dict[str, Any]:
    return {"id": args.id, "freed": service.archive(args.id, args.user, back=args.back)}


def _delete(args: argparse.Namespace) -> dict[str, Any]:
    return {"id": args.id, "freed": service.delete(args.id, args.user)}


ACTIONS = {
    "start": (_start_arguments, _start, "start a run; it waits in the queue while others use its device"),
    "sweep": (_sweep_arguments, _sweep, "tasks × algorithms × scores × seeds as one parent with a run for each"),
    "list": (_list_arguments, _list, "all runs, newest first"),
    "show": (_show_arguments, _show, "one run: its steps, what it is doing, the end of its log"),
    "cancel": (_user_argument, _cancel, "stop a run; its finished steps stay"),
    "resume": (_resume_arguments, _resume, "continue a cancelled, failed or lost run after its last step"),
    "report": (_report_arguments, _report, "write a run down as HTML, JSON, CSV or LaTeX"),
    "save": (_save_arguments, _save, "save a step's pruned model, its masked export, report and curve"),
    "archive": (_archive_arguments, _archive, "move an ended run to the archived runs; steps and results stay"),
    "delete": (_user_argument, _delete, "delete an ended run with everything it kept"),
}


def show(result: dict[str, Any]) -> str:
    return run_text.show(result)
