"""The published experiments on real encoders: one cell after the other, in order of value, each one JSON file.

    python -m study --encoder minilm=FOLDER --encoder mpnet=FOLDER --data GLUE --work cache/findings --plan
    python -m study …  --minutes 60          # does what is missing; stop it whenever you like
    python -m study …  & python -m study …   # share the work, on many cores or a GPU (--device cuda)
    python -m study.page                     # writes study/results.md from study/results/*.json

Encoders are folders with pre-trained weights. GLUE is a folder with a folder for each task (MRPC, SST-2, …). Trained
models and states of runs stay in the work folder; the JSON files hold figures only, never a sentence of the data.
"""

import argparse
import json
import platform
import time
from pathlib import Path

import torch
from filelock import FileLock, Timeout

import headviz
from headviz import plugins
from headviz.progress import Cancel
from headviz.storage.writing import replace_file
from study import author_code_score
from study.gates import SHIPPED, gated
from study.models import AGREED, RESULTS, Cell, training
from study.orders import agreement, broken_off, orders
from study.papers import MORE_SEEDS, SEEDS, crossed, heads_one_by_one, retraining
from study.shared import board, shared
from study.tables import whole


def cells() -> list[Cell]:
    """All cells, most valuable first: a tier of all models, before the longer cells of the next."""
    tasks = ("mrpc", "sst2", "wnli", "rte", "cola")
    small = [cell for seed in range(3) for task in tasks for cell in _of_model("minilm", task, seed)]
    more = [cell for s in (3, 4) for t in AGREED for cell in (training("minilm", t, s), agreement("minilm", t, s))]
    over = [gated(SHIPPED, SHIPPED), gated("minilm", "sst2"), gated("minilm", "mrpc")]
    over += [board("minilm", "mrpc"), board("minilm", "sst2"), shared("minilm"), *crossed("minilm", "mnli")]
    again = [
        cell for s in SEEDS for t in ("mrpc", "wnli", "cola", "rte", "sst2") for cell in retraining("minilm", t, s)
    ]
    tickets = [cell for seed in MORE_SEEDS for cell in retraining("minilm", "mrpc", seed)]
    large = [cell for task in ("mrpc", "rte", "wnli") for cell in _of_model("mpnet", task, 0)]
    large += [
        cell for s in range(5) for t in AGREED for cell in (training("mpnet", t, s, 1), agreement("mpnet", t, s, 1))
    ]
    large += [board("mpnet", "mrpc"), *retraining("mpnet", "rte", 0), *retraining("mpnet", "wnli", 0)]
    planned: dict[str, Cell] = {}
    for cell in (*small, *more, *over, *again, *large, *tickets):
        planned.setdefault(cell.name, cell)
    return sorted(planned.values(), key=lambda cell: cell.tier)


def _of_model(encoder: str, task: str, seed: int) -> list[Cell]:
    agreed = [agreement(encoder, task, seed)] if task in AGREED else []
    return [training(encoder, task, seed), *agreed, *orders(encoder, task, seed), heads_one_by_one(encoder, task, seed)]


def run(args: argparse.Namespace) -> None:
    """Do what is missing. What a cell needs and an earlier call left elsewhere is made again, without its file."""
    until = time.monotonic() + 60 * args.minutes
    for folder in (args.work / "made", args.work / "taken", args.out):
        folder.mkdir(parents=True, exist_ok=True)
    if args.as_is:
        for cell in _left(args):
            if broken_off(args, cell):
                with FileLock(args.work / "taken" / cell.name):
                    write(args, cell, lambda: False)
        return
    planned = {cell.name: cell for cell in cells()}

    def follow(cell: Cell) -> bool:
        """Whether something was computed: the cell, or what it needs. What another process is at is left to it."""
        computed = False
        for name in (*cell.needs, cell.name):
            lock = FileLock(args.work / "taken" / name)
            try:
                taken = lock.acquire(timeout=0)
            except Timeout:
                return computed
            with taken:
                if not _there(args, cell, name) and time.monotonic() < until:
                    write(args, planned[name], lambda: time.monotonic() > until + 60 * args.grace)
                    computed = True
            if not _there(args, cell, name):
                return computed
        return computed

    while (left := _left(args)) and time.monotonic() < until:
        if not any(follow(cell) for cell in left):  # other processes are at all that is left
            time.sleep(1)


def write(args: argparse.Namespace, cell: Cell, cancel: Cancel) -> None:
    """Compute a cell. A file that is there stays; one of other weights, or of orders drawn otherwise, is a twin of it.

    One that was broken off goes for more steps of the same weights, or for a whole cell of others.
    """
    _made(args, cell.name).unlink(missing_ok=True)
    began, cpu = time.perf_counter(), time.process_time()
    print(f"{cell.name} …", flush=True)
    result = cell.compute(args, cancel)
    print(f"{cell.name}: {time.perf_counter() - began:.0f} s", flush=True)
    if whole(result):
        replace_file(_made(args, cell.name), "")
    path = _file(args, cell.name)
    if path.exists():
        known = json.loads(path.read_text(encoding="utf-8"))
        different = [key for key in ("digest", "draws") if known.get(key) != result.get(key)]
        if not different:
            if known.get("left", 0) <= result.get("left", 0):
                return
        elif whole(known) or not whole(result):
            ending = "" if "digest" in different else "-draws"
            path = args.out / "twins" / f"{cell.name}-{result['digest'][:8]}{ending}.json"
            path.parent.mkdir(exist_ok=True)
            print(f"{cell.name}: another {' and '.join(different)} than in its file; this one is {path}", flush=True)
    result = {
        "cell": cell.name,
        "experiment": cell.experiment,
        **result,
        "seconds": round(time.perf_counter() - began, 1),
        "processor_seconds": round(time.process_time() - cpu, 1),
        "made_by": {
            "command": " ".join(["python -m study --only", cell.name, *_flags(args)]),
            "headviz": headviz.__version__,
            "torch": torch.__version__,
            "threads": torch.get_num_threads(),
            "machine": platform.machine(),
            "device": torch.cuda.get_device_name() if args.device.startswith("cuda") else args.device,
            "products": torch.get_float32_matmul_precision(),
        },
    }
    replace_file(path, json.dumps(result, indent=1, allow_nan=False) + "\n")


def _flags(args: argparse.Namespace) -> list[str]:
    """The options that its figures may hang on, but for the threads, which stand beside."""
    device = [] if args.device == "cpu" else ["--device", args.device]
    return [*device, *(f"--{name}" for name in ("tf32", "as-is") if getattr(args, name.replace("-", "_")))]


def _asked(args: argparse.Namespace) -> list[Cell]:
    """The cells to do, in the order of the parts of names that were asked for."""
    able = [cell for cell in cells() if cell.name.split("-")[1] in (SHIPPED, *args.encoder)]
    result = {cell.name: cell for part in args.only or ("",) for cell in able if part in cell.name}
    return list(result.values())


def _left(args: argparse.Namespace) -> list[Cell]:
    return [cell for cell in _asked(args) if not _whole(args, cell.name)]


def _there(args: argparse.Namespace, cell: Cell, name: str) -> bool:
    """Of the cell itself its file; of what it needs, what lies in the work folder."""
    return _whole(args, name) if name == cell.name else _made(args, name).exists()


def show_plan(args: argparse.Namespace) -> None:
    left = _left(args)
    for cell in left:
        print(f"{cell.name:60} {cell.price / 60:8.1f} min")
    print(f"{len(left)} cells are missing: some {sum(c.price for c in left) / 3600:.1f} hours of one processor.")


def _made(args: argparse.Namespace, name: str) -> Path:
    """There once the models and states of a cell are whole in the work folder."""
    return Path(args.work / "made" / name)


def _whole(args: argparse.Namespace, name: str) -> bool:
    """Whether a cell's file is there and has all that was planned."""
    path = _file(args, name)
    return path.exists() and whole(json.loads(path.read_text(encoding="utf-8")))


def _file(args: argparse.Namespace, name: str) -> Path:
    return Path(args.out / f"{name}.json")


def _pair(text: str) -> tuple[str, Path]:
    name, _, folder = text.partition("=")
    if not folder:
        raise argparse.ArgumentTypeError("write NAME=FOLDER, such as minilm=models/minilm")
    return name, Path(folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--encoder", type=_pair, action="append", required=True, metavar="NAME=FOLDER")
    parser.add_argument("--data", type=Path, required=True, help="folder with MRPC, SST-2, … in it")
    parser.add_argument("--work", type=Path, default=Path("cache/findings"), help="models and states; continues there")
    parser.add_argument("--out", type=Path, default=RESULTS, help="where the JSON files go")
    parser.add_argument("--only", action="append", metavar="PART", help="cells with this in their names, in this order")
    parser.add_argument("--threads", type=int, default=1, help="1 gives the same weights on every number of cores")
    parser.add_argument("--device", default="cpu", help="where to compute; another device rounds otherwise")
    parser.add_argument("--tf32", action="store_true", help="on a GPU: products by its fast units, 10 bits of 23")
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--grace", type=float, default=10, help="minutes that a begun cell may go on")
    parser.add_argument("--as-is", action="store_true", help="of pruned cells: what their runs have; nothing goes on")
    parser.add_argument("--plan", action="store_true", help="say what is missing and what it takes; compute nothing")
    args = parser.parse_args()
    plugins.load([author_code_score.__file__])
    args.encoder = dict(args.encoder)
    torch.set_num_threads(args.threads)
    if args.tf32:
        torch.set_float32_matmul_precision("high")
    show_plan(args) if args.plan else run(args)


if __name__ == "__main__":
    main()
