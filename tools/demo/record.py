"""Record the results that come with the demo: `python -m tools.demo.record` (half an hour on two cores).

One pruning run, one sweep, one distillation and one set of analyses, so that no page is empty on a first visit. They
are made by the commands below in a home of their own. What the pages read of the runs goes into recorded.json, the
analyses into analyses.json. The dashboard shows them as recorded, until the user has own ones. Speed is left out,
because a timing tells of the machine that it was taken on.
"""

import argparse
import contextlib
import io
import json
import os
import shlex
import tempfile
import time
from pathlib import Path
from typing import Any

from headviz.demo import DATA

PLACE = DATA / "recorded.json"
COMMANDS = {
    "pruning": "headviz run start --model demo --task demo --algorithm one-importance --score gates",
    "sweep": "headviz run sweep --model demo --task demo --algorithm one-importance "
    "--score gates,magnitude,taylor,conductance-spearman,random --seeds 0,1,2 --samples 512 --dev-limit 500",
}
ON_DEMO = "--model demo --task demo --limit 500"  # the dashboard's own view of the demo
ORDERS = ",".join(t["score"] for t in json.loads((DATA / "scores.json").read_text())["scores"])
ANALYSES = {
    "ablation": f"headviz analyse ablation {ON_DEMO}",
    "by-slice": f"headviz analyse by-slice {ON_DEMO}",
    "roles": f"headviz roles {ON_DEMO} --samples 500",
    "all-but-one": f"headviz analyse all-but-one {ON_DEMO} --select other --margin 2 --samples 500 --seed 0",
    "cross-dataset": f"headviz analyse cross-dataset {ON_DEMO} --other-split unseen",
    "dynamics": f"headviz analyse dynamics --task demo --limit 500 --checkpoints {DATA / 'checkpoints'} "
    "--samples 500 --seed 0",
    "redundant": f"headviz analyse redundant {ON_DEMO} --seconds 20",
    "interactions": f"headviz analyse interactions {ON_DEMO} --samples 64 --seconds 60 --seed 0",
    "pruning-curves": f"headviz analyse pruning-curves {ON_DEMO} "
    "--scores gates,attattr-max,taylor,ablation,magnitude,random,oracle --margin 2 --samples 500 --seed 0",
}
ANALYSED = DATA / "analyses.json"
TOLD_FOLDER = "…/headviz/demo/data"  # what the records say in place of the folder that they were made in
DISTIL = {
    "model": "demo",
    "task": "demo",
    "remove": "layers:11",
    "inits": ("random", "copy"),
    "seeds": (0, 1, 2),
    "dev_limit": 500,
    "training": {"steps": 150, "every": 25},
}
DISTIL_COMMAND = (
    "headviz distill --model demo --task demo --remove layers:11 --init random,copy --seeds 0,1,2 --limit 500 "
    "--steps 150 --every 25 --out student"
)


def recorded(name: str) -> dict[str, Any]:
    """Make one of the runs and wait for it."""
    from headviz.cli import main as headviz
    from headviz.extras.distillation.plan import DistillationPlan
    from headviz.runs import service
    from headviz.runs.registry import Registry

    began, known = time.monotonic(), {r.id for r in Registry().records()}
    if name == "distillation":
        command = DISTIL_COMMAND
        plan = DistillationPlan.from_dict(DISTIL)
        service.start("distill", plan.to_dict(), title="demo without layer 11", owner="headviz")
        while any(r.state not in ("done", "failed", "lost", "cancelled") for r in service_records(known)):
            time.sleep(1)
    else:
        command = COMMANDS[name]
        headviz([*shlex.split(command)[1:], "--wait"])
    parent = next(r for r in service_records(known) if r.parent is None)
    if parent.state not in ("done", "queued"):
        raise SystemExit(f"The {name} ended as {parent.state}: {parent.error}")
    print(f"{name}: {time.monotonic() - began:.0f} s", flush=True)
    return {"name": name, "command": command, "run": packed(parent.id)}


def analysed(name: str) -> dict[str, Any]:
    """The result of one analysis, as its command prints it."""
    import headviz

    began, out = time.monotonic(), io.StringIO()
    with contextlib.redirect_stdout(out):
        from headviz.cli import main as command

        if command([*shlex.split(ANALYSES[name])[1:], "--json"]):
            raise SystemExit(f"The analysis {name} failed.")
    print(f"{name}: {time.monotonic() - began:.0f} s", flush=True)
    model, data = headviz.load("demo", device="cpu"), headviz.load_task("demo", limit=500)
    result = json.loads(out.getvalue().replace(str(DATA), TOLD_FOLDER))
    names = {} if name != "roles" else {"names": named(result.pop("heads"))}
    return {
        **names,
        "command": ANALYSES[name].replace(str(DATA), TOLD_FOLDER),
        "digest": model.digest,
        "data": data.digest,
        "result": rounded(result),
    }


def rounded(value: Any) -> Any:
    """Four significant digits, which no table shows more of; whole files stay small."""
    if isinstance(value, dict):
        return {k: rounded(v) for k, v in value.items()}
    if isinstance(value, list):
        return [rounded(v) for v in value]
    return float(f"{value:.4g}") if isinstance(value, float) else value


def named(heads: dict[str, Any]) -> dict[str, list[Any]]:
    """The first role of each head that has one, with its share of attention: what the grids say."""
    firsts = {}
    for head, roles in heads.items():
        clear = [r for r in roles if r["q"] is not None and r["q"] < 0.05]
        if clear:
            best = max(clear, key=lambda r: r["share"] - r["baseline"])
            firsts[head] = [best["role"], round(best["share"], 4)]
    return firsts


def service_records(known: set[str]) -> list[Any]:
    """The records that are new, as they are now."""
    from headviz.runs.queue import look
    from headviz.runs.registry import Registry

    registry = Registry()
    return [look(registry, r.id) for r in registry.records() if r.id not in known]


def packed(run_id: str) -> dict[str, Any]:
    """What the pages read of a run: its record, its steps, its results."""
    from headviz.results import plain
    from headviz.runs import reading
    from headviz.runs.record import to_row

    view = reading.show(run_id, log_lines=0)
    row = {**to_row(view.record), "owner": "headviz", "place": None, "pid": None, "pid_start": None, "claim": ""}
    return {
        "record": row,
        "state": view.state,
        "steps": plain(view.steps),
        "baseline": plain(view.baseline),
        "outcome": plain(view.outcome),
        "children": [packed(c.record.id) for c in view.children],
    }


def main() -> None:
    """The command line."""
    from headviz import __version__

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--only", nargs="*", default=[*COMMANDS, "distillation", *ANALYSES], help="which to make; others stay"
    )
    options = parser.parse_args()
    now = {"version": __version__, "date": time.strftime("%Y-%m-%d")}
    kept = json.loads(PLACE.read_text())["runs"] if PLACE.is_file() else []
    with tempfile.TemporaryDirectory() as home:
        os.environ["HEADVIZ_HOME"] = str(Path(home))
        fresh = [recorded(name) | now for name in options.only if name not in ANALYSES]
        for name in options.only:
            if name in ANALYSES:
                made = json.loads(ANALYSED.read_text()) if ANALYSED.is_file() else {}
                made[name] = analysed(name) | now
                ANALYSED.write_text(json.dumps(made, separators=(",", ":"), ensure_ascii=False) + "\n")
    if not fresh:
        return
    shown = [*COMMANDS, "distillation"]  # the pages list them in this order
    runs = sorted([r for r in kept if r["name"] not in options.only] + fresh, key=lambda r: shown.index(r["name"]))
    PLACE.write_text(json.dumps({"runs": runs}, separators=(",", ":"), ensure_ascii=False) + "\n")
    print(f"{PLACE.name}: {PLACE.stat().st_size / 1024:.0f} KiB")


if __name__ == "__main__":
    main()
