"""Freeze what headviz does, and compare later: for changes that must not change behaviour.

    python tools/freeze record FOLDER [--only names,pages] [--root CHECKOUT]
    python tools/freeze compare BEFORE AFTER [--only …] [--tolerance 1e-5] [--ignore REGEX] [--most LINES]

``record`` needs an environment with headviz's dependencies; ``--root`` records another checkout than this. Every part
runs in a process of its own and becomes one JSON file. ``compare`` prints every difference and ends with 0 if there is
none. Times, dates, identifiers of runs and temporary folders are not compared.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from differences import compare

NAMES = "names commands masks saved scores algorithms distillation pages".split()
ENV = {
    "HEADVIZ_WARM": "0",
    "HEADVIZ_NICENESS": "0",
    "HF_HUB_OFFLINE": "1",
    "OMP_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "COLUMNS": "120",
}


def record(out: Path, only: list[str], root: Path) -> int:
    out.mkdir(parents=True, exist_ok=True)
    paths = os.pathsep.join(str(root / name) for name in ("", "tests", "src"))
    failed = 0
    for part in only:
        began = time.monotonic()
        words = [sys.executable, str(Path(__file__).parent), "part", part, str(out.resolve())]
        ended = subprocess.run(words, cwd=root, env={**os.environ, **ENV, "PYTHONPATH": paths})
        print(f"{part}: {'FAILED' if ended.returncode else 'recorded'} ({time.monotonic() - began:.0f} s)", flush=True)
        failed |= ended.returncode
    return 1 if failed else 0


def record_part(part: str, out: Path) -> int:
    """In a process of its own, with the checkout as its folder."""
    import parts
    from recording import Record

    import headviz
    import pages

    assert Path(headviz.__file__).is_relative_to(Path.cwd()), headviz.__file__
    work = Path(tempfile.gettempdir()).resolve() / "headviz-freeze"  # always the same: digests of plans contain paths
    work.mkdir()  # fails while another recording runs
    os.environ["HEADVIZ_HOME"] = str(work / "home")
    made = Record(work)
    try:
        getattr(pages if part == "pages" else parts, part)(made)
        made.write(out / f"{part}.json")
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    doing = parser.add_subparsers(dest="doing", required=True)
    recording, comparing, part = (doing.add_parser(name) for name in ("record", "compare", "part"))
    recording.add_argument("folder", type=Path)
    recording.add_argument("--root", type=Path, default=Path(__file__).resolve().parents[2])
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    comparing.add_argument("--tolerance", type=float, default=1e-5, help="relative, of numbers")
    comparing.add_argument("--ignore", default="", help="leave out differences that match this expression")
    comparing.add_argument("--most", type=int, default=10, help="lines per item")
    for each in (recording, comparing):
        each.add_argument("--only", default=",".join(NAMES))
    part.add_argument("part", choices=NAMES)
    part.add_argument("folder", type=Path)
    options = parser.parse_args()
    if options.doing == "part":
        return record_part(options.part, options.folder)
    only = options.only.split(",")
    if unknown := [name for name in only if name not in NAMES]:
        parser.error(f"no part {', '.join(unknown)}; there are: {', '.join(NAMES)}")
    if options.doing == "record":
        return record(options.folder, only, options.root.resolve())
    return compare(options.before, options.after, only, options.tolerance, options.ignore, options.most)


if __name__ == "__main__":
    raise SystemExit(main())
