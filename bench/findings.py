"""The published experiments on real encoders: one cell after the other, in order of value, each one JSON file.

    python bench/findings.py --encoder minilm=FOLDER --encoder mpnet=FOLDER --data GLUE --work cache/findings --plan
    python bench/findings.py …  --minutes 60          # does what is missing; stop it whenever you like
    python bench/findings_page.py                     # writes docs/study.md from docs/study/*.json

Encoders are folders with pre-trained weights. GLUE is a folder with a folder for each task (MRPC, SST-2, …). Trained
models and states of runs stay in the work folder; the JSON files hold figures only, never a sentence of the data.
"""

import argparse
import copy
import json
import platform
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file

import headviz
from headviz.errors import RunError
from headviz.evaluation.plain import class_order, gold_for
from headviz.progress import Cancel
from headviz.pruning import PruningPlan, State, open_context, run_plan, start
from headviz.pruning.context import Context
from headviz.pruning.finetune.training import fine_tune
from headviz.pruning.options import FinetuneOptions
from headviz.pruning.outcome import summary
from headviz.storage.writing import replace_file
from study_cells import interval, right_answers

FOLDERS = {"mrpc": "MRPC", "sst2": "SST-2", "rte": "RTE", "cola": "CoLA", "wnli": "WNLI"}
LIMITS = {"sst2": 16_000}  # training examples; the others are used whole
EPOCHS, BATCH = 3, 32
STEP, UNTIL, SAMPLES = 7 / 72, 0.98, 300  # 14 heads a step of 144, 7 of 72
# processor seconds to score 300 MRPC examples of a 6×12 encoder with each score, roughly
PRICES = {
    "random": 20.0,
    "taylor": 60.0,
    "ablation": 200.0,
    "gates": 300.0,
    "shapley": 900.0,
    "thesis-2024": 600.0,
    "thesis-2024-code": 600.0,
}
AGREED = ("mrpc", "sst2", "cola")  # the tasks of the agreement before and after
CHECKPOINTS = 5
PAGE = Path(__file__).resolve().parents[1] / "docs" / "study"
KEPT = ("sparsity", "heads_off", "mask", "metrics", "intervals", "deltas", "predicted", "constant")


@dataclass(frozen=True)
class Cell:
    """One result: its name, the experiment, what it needs first, and rough processor seconds on a common machine."""

    name: str
    experiment: str
    needs: tuple[str, ...]
    tier: int  # lower ones of all models come first
    price: float
    compute: Callable[[argparse.Namespace, Cancel], dict[str, Any]]


def cells() -> list[Cell]:
    """All cells, most valuable first: one model after the other, all orders without iteration before the long ones."""
    small = [_group("minilm", task, seed) for seed in range(3) for task in ("mrpc", "sst2", "wnli", "rte", "cola")]
    more = [_group("minilm", task, seed) for seed in (3, 4) for task in AGREED]
    large = [_group("mpnet", task, 0) for task in ("mrpc", "rte", "wnli")]
    found = []
    for groups in (small, more, large):
        for tier in range(3):
            found += [cell for group in groups for cell in group if cell.tier == tier]
    return found


def _group(encoder: str, task: str, seed: int) -> list[Cell]:
    """The cells of one fine-tuned model. Seeds beyond the third are for the agreement alone."""
    size = (8.0 if encoder == "mpnet" else 1.0) * {"sst2": 0.5, "cola": 0.25, "wnli": 0.6}.get(task, 1.0)
    updates = {"sst2": 4.4, "cola": 2.3, "rte": 0.7, "wnli": 0.2}.get(task, 1.0)  # against MRPC's
    where = f"{encoder}-{task}-{seed}"
    model = f"train-{where}"
    learn = partial(train, encoder=encoder, task=task, seed=seed)
    found = [Cell(model, "training", (), 0, 500 * size * updates, learn)]
    if task in AGREED:
        compare = partial(agree, encoder=encoder, task=task, seed=seed)
        found.append(Cell(f"agree-{where}", "E1", (model,), 0, 1100 * size, compare))
    for algorithm, times in (("one-importance", 1), ("iterative", 10)) if seed < 3 else ():
        for choice, price in PRICES.items():
            tier = 0 if times == 1 else 1 if price <= PRICES["ablation"] else 2
            compute = partial(prune, encoder=encoder, task=task, seed=seed, algorithm=algorithm, choice=choice)
            needs = (model,) if choice == "random" else (model, f"prune-{where}-{algorithm}-random")
            name = f"prune-{where}-{algorithm}-{choice}"
            found.append(Cell(name, "E2", needs, tier, price * times * size, compute))
    return found


def train(args: argparse.Namespace, cancel: Cancel, encoder: str, task: str, seed: int) -> dict[str, Any]:
    """Fine-tune a whole encoder; save it, and for the agreement its checkpoints."""
    data, dev = _data(args, task, "train", LIMITS.get(task)), _data(args, task, "dev")
    every = max(1, EPOCHS * -(-len(data) // BATCH) // CHECKPOINTS)
    options = FinetuneOptions(epochs=EPOCHS, batch=BATCH, learning_rate=5e-5, warmup=0.1, checkpoint_steps=every)
    fresh = headviz.load(str(args.encoder[encoder]), fresh_labels=data.label_names, seed=seed, device="cpu")
    folder = args.work / "training" / f"{encoder}-{task}-{seed}"
    kept = _checkpoints(args, encoder, task, seed)

    def keep(done: int, total: int) -> None:
        """Training keeps its last two checkpoints; the agreement needs the weights of all."""
        if task in AGREED and done > every and done % every == 1:
            kept.mkdir(parents=True, exist_ok=True)
            replace_file(kept / f"{done - 1}", (folder / f"checkpoint-{done - 1}" / "model.safetensors").read_bytes())

    done = fine_tune(fresh, data, options, seed, dev=dev, folder=folder, progress=keep, cancel=cancel)
    shutil.rmtree(_model(args, encoder, task, seed), ignore_errors=True)  # of a call that was broken off after saving
    done.classifier.save(_model(args, encoder, task, seed))
    shutil.rmtree(folder)
    result = headviz.evaluate(done.classifier, dev)
    return {
        "metrics": result.metrics,
        "n": len(dev),
        "examples": len(data),
        "updates": done.updates,
        "options": options.to_dict(),
        "digest": done.classifier.digest,
    }


def prune(
    args: argparse.Namespace, cancel: Cancel, encoder: str, task: str, seed: int, algorithm: str, choice: str
) -> dict[str, Any]:
    """Mask heads step by step without retraining. ``choice`` is a score or a preset of one."""
    plan = PruningPlan(
        model=str(_model(args, encoder, task, seed)),
        task=task,
        data=str(args.data / FOLDERS[task]),
        algorithm=algorithm,
        score=choice,  # a preset is a score, too
        step=STEP,
        until=UNTIL,
        samples=SAMPLES,
        seeds=tuple(range(3)) if choice == "random" else (seed,),
        train_limit=LIMITS.get(task),
        device="cpu",
    )
    folder = args.work / "runs" / f"{encoder}-{task}-{seed}-{algorithm}-{choice}"
    context = open_context(plan, folder)
    try:
        state = State.load(folder)
    except RunError:
        state = start(context, plan, cancel=cancel)
    for state in run_plan(plan, context, state, cancel=cancel):  # noqa: B020 - each state is the next one
        print(f"  {len(state.records)} of {len(state.sizes)} steps", flush=True)
    found = summary(state)
    return {
        "algorithm": algorithm,
        "score": choice,
        "seed": seed,
        "samples": SAMPLES,
        "n": len(context.dev),
        "metric": context.dev.task.primary_metric,
        "full": state.reference.metrics,
        "steps": [{"seed": s["seed"], **{k: s[k] for k in KEPT}} for s in found["steps"]],
        "ahead": _ahead(context, state, folder.with_name(f"{folder.name[: -len(choice)]}random")),
        "digest": state.model_digest,
    }


def _ahead(context: Context, state: State, random: Path) -> list[dict[str, float]]:
    """By step: accuracy ahead of the random orders, with its interval over their seeds and over examples."""
    chance, gold, found = State.load(random), gold_for(context.dev, class_order(context.clf, context.dev)), []
    assert gold is not None
    for step, size in enumerate(state.sizes, 1):
        own = next(iter(right_answers(state, gold, step).values())).astype(float)
        lead = own - np.array(list(right_answers(chance, gold, step).values()))
        low, high = interval(lead, np.random.default_rng(0))
        share = size / (state.num_layers * state.num_heads)
        found.append({"sparsity": share, "mean": float(lead.mean()), "low": low, "high": high})
    return found


def agree(args: argparse.Namespace, cancel: Cancel, encoder: str, task: str, seed: int) -> dict[str, Any]:
    """Spearman of attention and attribution, head by head, before, during and after fine-tuning, on the same texts."""
    data = _data(args, task, "train", LIMITS.get(task))
    sample = headviz.sample(data, SAMPLES, seed=seed)
    after = headviz.load(str(_model(args, encoder, task, seed)), device="cpu")
    before = headviz.load(str(args.encoder[encoder]), fresh_labels=data.label_names, seed=seed, device="cpu")
    grids = {
        name: headviz.score_heads(clf, sample, score="conductance-spearman", cancel=cancel).values
        for name, clf in (("before", before), ("after", after))
    }
    means = {
        name: {"signed": float(np.nanmean(g)), "absolute": float(np.nanmean(np.abs(g)))} for name, g in grids.items()
    }
    course = []
    for path in sorted(_checkpoints(args, encoder, task, seed).iterdir(), key=lambda p: int(p.name)):
        model = copy.deepcopy(after.model)
        model.load_state_dict(load_file(path))
        grid = headviz.score_heads(replace(after, model=model), sample, cancel=cancel, score="conductance-spearman")
        signed, absolute = float(np.nanmean(grid.values)), float(np.nanmean(np.abs(grid.values)))
        course.append({"updates": int(path.name), "signed": signed, "absolute": absolute})
    return {
        "samples": len(sample),
        "source": "fresh head of the same seed",
        **means,
        "course": course,
        "grids": {
            name: [[None if np.isnan(v) else round(float(v), 6) for v in row] for row in g] for name, g in grids.items()
        },
        "digest": after.digest,
    }


def _data(args: argparse.Namespace, task: str, split: str, limit: int | None = None) -> Any:
    return headviz.load_task(task, split=split, data=str(args.data / FOLDERS[task]), limit=limit)


def _checkpoints(args: argparse.Namespace, encoder: str, task: str, seed: int) -> Path:
    """Weights during training, each file named by its updates."""
    return Path(args.work / "checkpoints" / f"{encoder}-{task}-{seed}")


def _model(args: argparse.Namespace, encoder: str, task: str, seed: int) -> Path:
    return Path(args.work / "models" / f"{encoder}-{task}-{seed}")


def run(args: argparse.Namespace) -> None:
    """Do what is missing. What a cell needs and an earlier call left elsewhere is made again, without its file."""
    until = time.monotonic() + 60 * args.minutes
    for folder in (args.work / "made", args.out):
        folder.mkdir(parents=True, exist_ok=True)
    planned = {cell.name: cell for cell in cells()}
    for cell in planned.values():
        if _file(args, cell.name).exists() or not _asked(args, cell):
            continue
        for name in (*cell.needs, cell.name):
            if time.monotonic() > until:
                return
            if name == cell.name or not _made(args, name).exists():
                write(args, planned[name], lambda: time.monotonic() > until + 60 * args.grace)


def write(args: argparse.Namespace, cell: Cell, cancel: Cancel) -> None:
    """Compute a cell. A file that is there stays, and must be of the same weights."""
    began, cpu = time.perf_counter(), time.process_time()
    print(f"{cell.name} …", flush=True)
    found = cell.compute(args, cancel)
    print(f"{cell.name}: {time.perf_counter() - began:.0f} s", flush=True)
    replace_file(_made(args, cell.name), "")
    path = _file(args, cell.name)
    if path.exists():
        there = json.loads(path.read_text(encoding="utf-8"))
        if there["digest"] != found["digest"]:
            print(f"{cell.name}: other weights than in {path.name}; this machine rounds differently", flush=True)
        return
    found = {
        "cell": cell.name,
        "experiment": cell.experiment,
        **found,
        "seconds": round(time.perf_counter() - began, 1),
        "processor_seconds": round(time.process_time() - cpu, 1),
        "made_by": {
            "command": f"python bench/findings.py --only {cell.name}",
            "headviz": headviz.__version__,
            "torch": torch.__version__,
            "threads": torch.get_num_threads(),
            "machine": platform.machine(),
        },
    }
    replace_file(path, json.dumps(found, indent=1, allow_nan=False) + "\n")


def _asked(args: argparse.Namespace, cell: Cell) -> bool:
    return cell.name.split("-")[1] in args.encoder and (not args.only or any(part in cell.name for part in args.only))


def show_plan(args: argparse.Namespace) -> None:
    left = [c for c in cells() if not _file(args, c.name).exists() and _asked(args, c)]
    for cell in left:
        print(f"{cell.name:60} {cell.price / 60:8.1f} min")
    print(f"{len(left)} cells are missing: some {sum(c.price for c in left) / 3600:.1f} hours of one processor.")


def _made(args: argparse.Namespace, name: str) -> Path:
    """There once the models and states of a cell are whole in the work folder."""
    return Path(args.work / "made" / name)


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
    parser.add_argument("--out", type=Path, default=PAGE, help="where the JSON files go")
    parser.add_argument("--only", action="append", metavar="PART", help="cells with this in their names; several times")
    parser.add_argument("--threads", type=int, default=1, help="1 gives the same weights on every number of cores")
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--grace", type=float, default=10, help="minutes that a begun cell may go on")
    parser.add_argument("--plan", action="store_true", help="say what is missing and what it takes; compute nothing")
    args = parser.parse_args()
    args.encoder = dict(args.encoder)
    torch.set_num_threads(args.threads)
    show_plan(args) if args.plan else run(args)


if __name__ == "__main__":
    main()
