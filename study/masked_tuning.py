"""Is masked fine-tuning worse than pruning θ0 first? The thesis's appendix .3 at one mask, in each reading of the word.

    python -m study.masked_tuning            # does what is missing in masked_tuning.json, one cell after the other
    python -m study.masked_tuning --page     # writes the table of study/masked_tuning.md from that file alone

Equal in all: the mask (Taylor scores of the shipped θ*), the training examples, their order, the new head. θ0 is
``demo-pretrained``, which has no dropout; in the ways that say so, hidden states and attention get 0.1.
"""

import argparse
import dataclasses
import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

import headviz
from headviz.evaluation.verdict import verdict
from headviz.heads import lowest
from headviz.pruning.finetuning import fine_tune, recipe_of
from headviz.storage.writing import replace_file
from study.demo_pruning.cells import over_seeds_and_examples

HERE = Path(__file__).resolve().parent
FILE, PAGE = HERE / "masked_tuning.json", HERE / "masked_tuning.md"
BEGIN, END = "<!-- masked tuning: written by study/masked_tuning.py -->", "<!-- end of masked tuning -->"
BASE, MODEL, TASK = "demo-pretrained", "demo", "demo"
OFF, EXAMPLES, BATCH, SCORED, SEEDS = 72, 16_000, 32, 200, (0, 1, 2)
EARLY = (5, 50)  # updates after which rounding is looked at
WAYS = {
    "whole": "θ0 with every head, fine-tuned: θ*",
    "pruned": "θ0 pruned, fine-tuned",
    "masked": "θ0 fine-tuned with the mask on all through",
    "as it is": "θ* under the mask, not trained further",
    "again": "θ* pruned, fine-tuned once more",
    "longer": "θ0 pruned, fine-tuned for as many updates as the line above has had in all",
    "pruned, dropout": "θ0 pruned, fine-tuned with dropout",
    "masked, dropout": "θ0 fine-tuned with dropout and the mask on all through",
}
# what is compared: the second minus the first
PAIRS = (
    ("pruned", "masked"),
    ("pruned, dropout", "masked, dropout"),
    ("pruned", "as it is"),
    ("pruned", "again"),
    ("longer", "again"),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--work", type=Path, default=Path("cache/masked-tuning"), help="where θ* of each seed is kept")
    parser.add_argument("--page", action="store_true", help="only write the table")
    args = parser.parse_args()
    if not args.page:
        torch.set_num_threads(1)
        compute(args.work)
    page = PAGE.read_text(encoding="utf-8")
    before, after = page.split(BEGIN)[0], page.split(END)[1]
    replace_file(PAGE, f"{before}{BEGIN}\n{table(read())}\n{END}{after}")


def read() -> dict[str, Any]:
    record: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return record


def compute(work: Path) -> None:
    """Every cell that the file lacks; the file is written after each."""
    train, dev = headviz.load_task(TASK, "train", limit=EXAMPLES), headviz.load_task(TASK, "dev")
    clf = headviz.load(MODEL, device="cpu")
    scores = headviz.score_heads(clf, headviz.sample(train, SCORED, seed=0, length_filter="quantile"), score="taylor")
    mask = clf.full_mask.without(lowest(scores.values, OFF, clf.full_mask.kept, seed=0))
    recipe = recipe_of(BASE)
    assert recipe is not None
    options = dataclasses.replace(recipe, batch=BATCH, group_lengths=True, checkpoint_steps=None)
    about = {"mask": mask.hex, "model": clf.digest, "train": train.digest, "dev": dev.digest, "n": len(dev)}
    about |= {"examples": EXAMPLES, "options": options.to_dict(), "scored": SCORED, "headviz": headviz.__version__}
    result = read() if FILE.is_file() else {**about, "cells": []}
    if {k: result.get(k) for k in about} != about:
        raise SystemExit(f"{FILE} was made with other weights, data or options. Remove it to begin anew.")
    done = {(cell["way"], cell["seed"]) for cell in result["cells"]}
    for seed in SEEDS:
        for way in WAYS:
            if (way, seed) in done:
                continue
            began = time.process_time()
            model, updates, under = make(way, seed, mask, train, options, work)
            right = headviz.evaluate(model, dev, under).predictions == dev.gold
            cell = {"way": way, "seed": seed, "updates": updates, "accuracy": float(right.mean())}
            cell["right"] = np.packbits(right).tobytes().hex()
            cell["seconds"] = round(time.process_time() - began, 1)
            result["cells"].append(cell)
            replace_file(FILE, json.dumps(result, indent=1) + "\n")
            print(f"{way}, seed {seed}: {cell['accuracy']:.4f} ({cell['seconds']:.0f} s)", flush=True)
    if "rounding" not in result:
        result["rounding"] = [rounding(count, mask, train, dev, options) for count in EARLY]
        replace_file(FILE, json.dumps(result, indent=1) + "\n")


def rounding(updates: int, mask: Any, train: Any, dev: Any, options: Any) -> dict[str, float]:
    """How far *pruned* and *masked* are apart after few updates, of the first seed: the largest logit's difference."""
    few = train.subset(range(BATCH * updates))
    answers = []
    for under in (None, mask):
        base = headviz.load(BASE, fresh_labels=train.label_names, seed=SEEDS[0], device="cpu")
        begun = headviz.prune(base, mask) if under is None else base
        trained = fine_tune(begun, few, options, SEEDS[0], mask=under)
        assert trained.updates == updates
        answers.append(headviz.evaluate(trained.classifier, dev, under).logits)
    return {"updates": updates, "difference": float(np.abs(answers[0] - answers[1]).max())}


def make(way: str, seed: int, mask: Any, train: Any, options: Any, work: Path) -> tuple[Any, int, Any]:
    """The model of one way, its updates in this training, and the mask under which it is evaluated."""
    place = work / f"whole-{seed}"
    if way in ("as it is", "again"):
        whole = headviz.load(place, device="cpu")
        if way == "as it is":
            return whole, 0, mask
        done = fine_tune(headviz.prune(whole, mask), train, options, seed)
        return done.classifier, done.updates, None
    base = headviz.load(BASE, fresh_labels=train.label_names, seed=seed, device="cpu")
    if "dropout" in way:
        with_dropout(base.model)
    under = mask if way.startswith("masked") else None
    if way.startswith(("pruned", "longer")):
        base = headviz.prune(base, mask)
    if way == "longer":
        options = dataclasses.replace(options, epochs=2 * options.epochs)
    done = fine_tune(base, train, options, seed, mask=under)
    if way == "whole":
        done.classifier.save(place)
    return done.classifier, done.updates, under


def with_dropout(model: Any, share: float = 0.1) -> None:
    """Switch dropout on, as BERT's own configuration has it; where the demo was trained, it was off."""
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = share


def table(result: Mapping[str, Any]) -> str:
    """What the file says, as Markdown."""
    cells = result["cells"]
    n = result["n"]
    right = {
        way: np.array([_right(c, n) for c in sorted(cells, key=lambda c: c["seed"]) if c["way"] == way]) for way in WAYS
    }
    lines = ["| way | updates | accuracy, mean ± sd over the seeds |", "|---|---|---|"]
    for way, what in WAYS.items():
        values = 100 * right[way].mean(axis=1)
        updates = next(c["updates"] for c in cells if c["way"] == way)
        lines.append(f"| {what} | {updates:,} | {values.mean():.1f} ± {values.std(ddof=1):.1f} |")
    lines += ["", "| points | difference | 95 % interval | | seeds below 0 | right or wrong alike |"]
    lines += ["|---|---|---|---|---|---|"]
    for first, second in PAIRS:
        change = 100.0 * (right[second].astype(float) - right[first])
        mean, low, high = over_seeds_and_examples(change)
        same = (right[second] == right[first]).mean()
        below = int((change.mean(axis=1) < 0).sum())
        told = {"loss": "worse", "gain": "better"}.get(verdict(low, high), "not significant")
        said = f"{mean:+.1f} | [{low:+.1f}, {high:+.1f}] | {told} | {below} of {len(change)} | {100 * same:.1f} %"
        lines.append(f"| *{second}* minus *{first}* | {said} |".replace("-", "−"))
    among = right["pruned, dropout"]
    pairs = [(i, j) for i in range(len(among)) for j in range(i)]
    same = 100 * np.mean([(among[i] == among[j]).mean() for i, j in pairs])
    lines += ["", f"Two seeds of *pruned, dropout* are right or wrong alike on {same:.1f} % of the examples."]
    early = ", ".join(f"{r['difference']:.1g} after {r['updates']}" for r in result["rounding"])
    lines += [f"Largest difference of a logit between *pruned* and *masked*, by the number of updates: {early}."]
    seconds = sum(c["seconds"] for c in cells)
    lines += ["", f"{len(cells)} cells, {seconds / 60:.0f} minutes of one processor thread."]
    return "\n".join(lines)


def _right(cell: Mapping[str, Any], n: int) -> np.ndarray:
    """[n] whether each dev answer is right."""
    return np.unpackbits(np.frombuffer(bytes.fromhex(cell["right"]), np.uint8))[:n].astype(bool)


if __name__ == "__main__":
    main()
