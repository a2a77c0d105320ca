"""Record the results that come with the demo: `python -m tools.demo.record` (half an hour on two cores).

One pruning run, one sweep and one distillation, so that no page is empty on a first visit. They are made by the
commands below in a home of their own, and what the pages read of them goes into recorded.json. The dashboard shows
them as recorded, and no longer once the user has runs of that kind.
"""

import argparse
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
    "pruning": "headviz run start --model demo --task demo --algorithm one-importance --score magnitude",
    "sweep": "headviz run sweep --model demo --task demo --algorithm one-importance "
    "--score magnitude,ablation,taylor,conductance-spearman,random --seeds 0,1,2 --samples 128 --dev-limit 500",
}
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
    from headviz.distillation.plan import DistillationPlan
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
    parser.add_argument("--only", nargs="*", default=[*COMMANDS, "distillation"], help="which to make; others stay")
    given = parser.parse_args()
    kept = json.loads(PLACE.read_text())["runs"] if PLACE.is_file() else []
    with tempfile.TemporaryDirectory() as home:
        os.environ["HEADVIZ_HOME"] = str(Path(home))
        fresh = [recorded(name) for name in given.only]
    for one in fresh:
        one |= {"version": __version__, "date": time.strftime("%Y-%m-%d")}
    runs = [r for r in kept if r["name"] not in given.only] + fresh
    PLACE.write_text(json.dumps({"runs": runs}, separators=(",", ":"), ensure_ascii=False) + "\n")
    print(f"{PLACE.name}: {PLACE.stat().st_size / 1024:.0f} KiB")


if __name__ == "__main__":
    main()
