"""``python -m headviz.runs.worker ID``: the process that works on one run. It needs no server and no dashboard."""

from __future__ import annotations

import argparse
import os
import secrets
import sys
import time
import traceback
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from .. import plugins
from ..engine import Workplace, run_here
from ..errors import Cancelled, RunError, UserError
from .carrier import Carrier, outcome_of
from .files import RunFiles
from .heartbeat import Heartbeat
from .kinds import executor_named
from .process import EXIT_DONE, EXIT_REFUSED, EXIT_SUPERSEDED, Identity, be_nice, kill_children
from .queue import dispatch, niceness
from .record import CLAIM, FAIL, IllegalTransition, RunRecord
from .registry import Registry, Superseded

PATIENCE = 600.0  # seconds to wait for a locked registry: a result is worth waiting for


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m headviz.runs.worker")
    parser.add_argument("run_id")
    parser.add_argument("--claim", default="")
    args = parser.parse_args(argv)
    be_nice(niceness())
    registry = Registry(wait=PATIENCE)
    claim = args.claim
    try:
        if not claim:
            claim = secrets.token_hex(8)
            registry.take_one(args.run_id, claim)
        me = Identity.own()
        record = registry.apply(args.run_id, CLAIM, claim=claim, worker=me, started=time.time(), words=f"pid {me.pid}")
    except (IllegalTransition, Superseded) as error:
        log(f"not started: {error}")
        return EXIT_REFUSED
    except UserError as error:
        log(str(error))
        return EXIT_REFUSED
    return carry(registry, record)


def carry(registry: Registry, record: RunRecord) -> int:
    """Work on a claimed run to its end, and record how it ended."""
    files = RunFiles(record.id, registry.folder)
    files.make_reserve()
    heartbeat = Heartbeat(registry, record, files)
    heartbeat.before_end = lambda: dispatch(Registry(registry.folder, wait=0.3)) if registry.path.exists() else None
    heartbeat.watch_signals()
    heartbeat.start()
    try:
        _work(registry, record, heartbeat)
        log(f"run {record.id} is done")
    except Superseded:
        log("another worker has taken this run; this one ends")
        return EXIT_SUPERSEDED
    except Cancelled:
        log("stopped")
        _end(registry, record, heartbeat.ending, error=heartbeat.reason)
    except BaseException as error:
        if isinstance(error, UserError):
            log(str(error))
        else:
            with suppress(OSError):
                traceback.print_exc()
        files.free_reserve()
        _end(registry, record, FAIL, **outcome_of(error))
    finally:
        heartbeat.stop()
        kill_children(record.pid or 0)
    with suppress(RunError):  # otherwise the next reader of the registry starts what is waiting
        dispatch(registry)
    return EXIT_DONE


def _work(registry: Registry, record: RunRecord, heartbeat: Heartbeat) -> None:
    if record.elsewhere:
        plugins.function(executor_named(record.executor).drive)(registry, record, heartbeat)
        return
    heartbeat.progress("loading", 0, 0)
    carrier = Carrier(registry, record)
    heartbeat.stepped(*carrier.counts)
    workplace = Workplace(carrier.job, carrier.files.results)
    for _ in run_here(carrier, workplace, heartbeat.progress, heartbeat.cancelled):
        heartbeat.stepped(*carrier.counts)
    heartbeat.progress("finishing", 0, 0)
    carrier.end()


def _end(registry: Registry, record: RunRecord, event: str, **outcome: Any) -> None:
    try:
        registry.apply(record.id, event, claim=record.claim, ended=time.time(), **outcome)
    except (Superseded, IllegalTransition) as error:
        log(f"the outcome was recorded by somebody else: {error}")
    except RunError as error:  # the next reader of the registry will record that the process is gone
        log(f"the outcome could not be recorded: {error}")


def log(line: str) -> None:
    """Write a line with the time to the run's log; a full disk does not stop the worker here."""
    with suppress(OSError):
        print(time.strftime("%Y-%m-%d %H:%M:%S"), line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    status = main()
    with suppress(OSError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(status)  # everything is on disk; a normal exit would wait for torch's threads
