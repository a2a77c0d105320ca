"""Draws cases in a process that imports once, with a limit on its memory and without root's rights.

What a case does wrong is a line of ``findings.jsonl``. A case that ends the process is named there by whoever reads the
file: its beginning is written before it is tried.
"""

from __future__ import annotations

import contextlib
import json
import resource
import shutil
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
ROOM = 3 * 2**30  # bytes of address space beyond what the imports take
WITHOUT_RIGHTS = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", "--"]


@dataclass
class Drawn:
    """What a draw came to."""

    kinds: Counter[str] = field(default_factory=Counter)
    findings: list[str] = field(default_factory=list)
    seconds: float = 0.0


def draw(count: int, seed: int, folder: Path) -> Drawn:
    """Try ``count`` cases in processes of their own: one, and another after each case that ends it."""
    result, start, begun = Drawn(), time.perf_counter(), 0
    log = folder / "findings.jsonl"
    while begun < count:
        words = [sys.executable, "-m", "hostile.worker", str(folder / str(begun)), str(count), str(seed), str(begun)]
        rights = WITHOUT_RIGHTS if shutil.which("setpriv") else []
        done = subprocess.run(
            [*rights, *words, str(log)], cwd=ROOT / "tests", capture_output=True, text=True, check=False
        )
        lines = lines_of(log)
        for line in lines:
            result.kinds[line["kind"]] += 1
            if line.get("wrong"):
                result.findings.append(f"{line['kind']}: {line['name']}\n    {line['wrong']}")
        begun += len(lines)
        if done.returncode:
            if not lines or lines[-1].get("wrong") is not None:
                raise RuntimeError(f"exit status {done.returncode}: {done.stderr[-3000:]}")
            last = lines[-1]
            result.findings.append(f"{last['kind']}: {last['name']}\n    ended the process: {done.returncode}")
        log.unlink(missing_ok=True)
    result.seconds = time.perf_counter() - start
    return result


def lines_of(log: Path) -> list[dict[str, str]]:
    """The cases in the log; one that did not end has no ``wrong``."""
    text = log.read_text() if log.is_file() else ""
    return [json.loads(line if line.endswith("}") else line + "}") for line in text.splitlines()]


class Log:
    """One line for each case: its beginning is there before it is tried."""

    def __init__(self, path: Path) -> None:
        self.file = path.open("a")

    def begin(self, case: Any) -> None:
        self.file.write(json.dumps({"kind": case.kind, "name": case.name})[:-1])
        self.file.flush()

    def end(self, wrong: str) -> None:
        self.file.write(f', "wrong": {json.dumps(wrong)}}}\n')
        self.file.flush()


def main(folder: Path, count: int, seed: int, begun: int, log: Path) -> None:
    """Draw the cases and try those from ``begun`` on."""
    import headviz
    from headviz import cli
    from hostile.command_lines import COMMANDS
    from hostile.generator import cases
    from hostile.judge import alone, finding
    from hostile.place import Place

    folder.mkdir()
    place = Place(folder)
    (place.out / "kept").write_text("so that this is no empty folder")
    for module in ("pyarrow.parquet", "headviz.ui.pages.data", *(cli.COMMANDS[c].module for c in COMMANDS)):
        import_module(module)
    clf = headviz.load(place.model)
    data = headviz.load_task("custom", data=place.data, text_columns="text", label_column="label")
    taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (taken + ROOM, taken + ROOM))
    record = Log(log)
    with contextlib.chdir(place.out), alone() as asked:
        for number, case in enumerate(cases(count, seed, place, clf, data)):
            if number < begun:
                continue
            record.begin(case)
            wrong = finding(case)
            if asked:
                wrong += f" asked {asked}"
                asked.clear()
            if touched := place.untouched() if number % 20 == 19 or number == count - 1 else []:
                wrong += f" changed by this or one of the 19 before: {touched}"
                place.before = place.state()
            if half := place.half_written():
                wrong += f" left behind: {half}"
                for path in half:
                    shutil.rmtree(path, ignore_errors=True)
            record.end(wrong)


if __name__ == "__main__":
    import os

    os.environ |= {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
    os.environ["HEADVIZ_HOME"] = f"{sys.argv[1]}-home"
    main(Path(sys.argv[1]), *map(int, sys.argv[2:5]), Path(sys.argv[5]))
