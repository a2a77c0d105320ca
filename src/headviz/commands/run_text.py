"""Runs as text for people at a terminal."""

from __future__ import annotations

import time
from operator import itemgetter
from typing import Any

from ..display.numbers import fixed, share, size, span
from ..display.table import Column, Table
from ..evaluation.verdict import MARGIN
from ..pruning.algorithms import DEFAULT
from ..pruning.baselines import WORDS, finding
from ..runs.reading import Row
from ..runs.record import PRUNE
from ..runs.tables import step_table, sweep_table
from .common import table, table_text


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
        return _columns(_plan(result["plan"]))
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
    members = [(r, [{**c, "id": f"  {c['id']}"} for c in r.get("children", [])]) for r in runs]
    return table_text(Table.of("runs", (*RUN[:3], STARTED, RUN[3]), [one for r, of in members for one in (r, *of)]))


def _show_run(r: dict[str, Any]) -> str:
    rows = [("run", r["id"]), ("what", r["title"]), ("state", r["state"])]
    if r["error"]:
        rows.append(("error", r["error"]))
    if r["state"] in ("running", "cancelling"):
        rows.append(("now", doing(r)))
    if r["position"]:
        rows.append(("queue", f"place {r['position']}"))
    parts = [_columns(rows)]
    if r.get("children"):
        parts.append(table_text(Table.of("runs", (*RUN, ERROR), r["children"])))
    if r.get("results"):
        parts.append(table_text(sweep_table([Row(**row) for row in r["results"]])))
    if (made := step_table(r.get("kind", ""), r.get("spec", {}), r["baseline"], r["steps"])).rows:
        parts.append(table_text(made))
        if r.get("kind") == PRUNE and r["steps"]:
            parts.append(finding(r["steps"], next(iter(r["steps"][0]["metrics"])), r.get("margin", MARGIN)))
            parts.append(f"changes are against {WORDS[r['steps'][0]['against']]}")
    if r["state"] in ("failed", "lost") and r["log"]:
        parts.append("\n".join(["end of the log:", *(f"  {line}" for line in r["log"][-12:])]))
    return "\n\n".join(parts)


# seconds of one piece of work -> how many of it the plan has
_TIMED = {"scoring_seconds": "scorings", "finetuning_seconds": "finetunings", "evaluation_seconds": "evaluations"}


def _plan(plan: dict[str, Any]) -> list[tuple[str, str]]:
    """What a plan would do, and its time: of each kind of work, to start, and in all."""
    rows = []
    rest = plan.get("total_seconds", 0.0)
    for name, value in plan.items():
        if value is None or name == "drawn":
            continue
        if name in _TIMED:
            count = plan[_TIMED[name]]
            rest -= count * value
            rows.append((f"time of {_TIMED[name]}", f"{count:,} × {span(value)} = {span(count * value)}"))
        elif name == "total_seconds":
            rows += [("time to start", span(max(0.0, rest))), ("time in all", f"about {span(value)}")]
        elif name == "calibration_seconds":
            rows.append(("measured in", span(value)))
        elif name in ("seconds", "serial_seconds"):  # of a sweep
            rows.append(("time" if name == "seconds" else "one after the other", f"about {span(value)}"))
        else:
            shown = _samples(value, plan["drawn"]) if name == "samples" else _short(value)
            rows.append((name.replace("_", " "), shown))
    return rows


def _samples(asked: int, drawn: list[int]) -> str:
    """How many examples the heads are scored on; the training examples of a class may be fewer than its share."""
    if not drawn:
        return "none: the score needs no examples"
    least, most = min(drawn), max(drawn)
    if least == asked:
        return f"{asked:,}"
    return f"{least:,}{f' to {most:,}' if most > least else ''} drawn, up to {asked:,} asked for"


def _steps(r: dict[str, Any]) -> str:
    """How many steps are done; for a sweep, how many runs."""
    if r.get("children"):
        return f"{sum(c['state'] == 'done' for c in r['children'])}/{len(r['children'])} runs"
    made, wanted = r["count"]
    return f"{made}/{wanted or '?'}"


def _columns(rows: list[tuple[str, str]]) -> str:
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"{name:<{width}}  {text}" for name, text in rows)


def doing(r: dict[str, Any]) -> str:
    now = r["progress"]
    if r["state"] == "queued":
        return f"place {r['position']} in the queue" if r["position"] else "starting"
    made, wanted = r["count"]
    words = [f"{made} of {wanted} steps done" if wanted else "starting"]
    if now["phase"]:
        words.append(now["phase"] + (f" {now['done']} of {now['total']}" if now["total"] else ""))
    if now["remaining"] is not None:
        words.append(f"about {span(now['remaining'])} left")
    if now["memory"]:
        words.append(f"{now['cpu_percent']:.0f} % processor, {size(now['memory'])} memory")
    if not now["responsive"]:
        words.append(f"has not reported for {span(now['silent'])}")
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
