"""Train the family and grade every head score on it: `python -m study.planted --out FOLDER`. See `README.md`."""

import argparse
import json
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch

import headviz
from headviz.analyses.grading import auroc, precision
from headviz.heads import HeadId
from headviz.scores.catalogue import SCORES
from headviz.tasks import Dataset, get_task
from tools.demo.training_state import write_whole

from .page import page, summary
from .planting import CLASSES, FAMILY, HARMFUL, Planting, texts
from .train import STEPS, train

EXAMPLES = 300
SHIPPED = Path(__file__).resolve().parents[1] / "planted.json"
SEEDS = 20  # of the random score


def data_of(planting: Planting, skip: int = 0) -> Dataset:
    """Texts that training has not read, with the ability that each needs."""
    some = list(islice(texts(planting.seed, "dev"), skip, skip + EXAMPLES))
    labels = np.array([t.label for t in some])
    names = tuple(f"ability {t.ability}" for t in some)
    task = replace(get_task("custom"), label_names=CLASSES)
    return Dataset(task, "dev", tuple(t.words for t in some), None, labels, slices=names)


def checked(planting: Planting, clf: Any, data: Dataset) -> list[str]:
    """Where exact ablation disagrees with the planting; an ability's own texts decide, for harmful heads all texts."""
    evaluator, said = headviz.Evaluator(clf, data), []
    kinds = np.array(data.slices)

    def right(off: tuple[HeadId, ...], ability: int | None = None) -> float:
        rows = slice(None) if ability is None else kinds == f"ability {ability}"
        return float((evaluator.predictions(clf.full_mask.without(off)) == data.gold)[rows].mean())

    for ability, heads in enumerate(planting.needed):
        whole, without = right((), ability), right(heads, ability)
        if whole - without < 0.3:
            said.append(f"ability {ability}: {whole:.2f} whole, {without:.2f} without its heads")
        if planting.is_backup(ability):
            said += [
                f"ability {ability}: {right((h,), ability):.2f} without {h} alone"
                for h in heads
                if whole - right((h,), ability) > 0.1
            ]
        elif idle_alone := [str(h) for h in heads if right((h,), ability) >= whole]:
            said.append(f"ability {ability}: {', '.join(idle_alone)} alone cost nothing")
    if no_gain := [str(h) for h in planting.harmful_heads if right((h,)) <= right(())]:
        said.append(f"harmful {', '.join(no_gain)} alone: nothing is gained")
    idle = float((evaluator.predictions(clf.full_mask.without(planting.loud)) != evaluator.predictions(None)).mean())
    if idle > 0.01:
        said.append(f"idle heads change {idle:.1%} of the answers")
    return said


def graded(planting: Planting, clf: Any, data: Dataset, name: str) -> dict[str, float]:
    """AUROC of every kind of planting against the idle heads, of all needed heads, and precision."""
    seeds = [{"seed": seed} for seed in range(SEEDS)] if name == "random" else [{}]
    tables = [headviz.score_heads(clf, data, name, cache=False, **more).values for more in seeds]  # type: ignore[arg-type]
    needed = frozenset(h for heads in planting.needed for h in heads)
    out = {"needed": _mean(auroc(_only(v, needed | set(planting.idle)), needed) for v in tables)}
    out["needed or loud"] = _mean(auroc(_only(v, needed | set(planting.loud)), needed) for v in tables)
    for kind, heads in planting.kinds.items():
        # harmful heads should stand below the idle ones
        turned = [-v if kind == HARMFUL else v for v in tables]
        out[kind] = _mean(auroc(_only(v, heads | set(planting.idle)), heads) for v in turned)
    out["precision"] = _mean(precision(v, needed) for v in tables)
    rng = np.random.default_rng(planting.seed)
    every = clf.full_mask.kept
    shuffled = [{every[i] for i in rng.choice(len(every), len(needed), replace=False)} for _ in range(SEEDS)]
    result = [auroc(tables[0], heads) for heads in shuffled]
    out["shuffled"] = _mean(v for v in result if v == v)  # where heads without a value were drawn there is none
    return out


def _only(values: np.ndarray, heads: Any) -> np.ndarray:
    out = np.full(values.shape, np.nan)
    for head in heads:
        out[head] = values[head]
    return out


def _mean(values: Any) -> float:
    return round(float(np.mean(list(values))), 4)


def member(planting: Planting, out: Path, names: list[str], steps: int) -> dict[str, Any]:
    """Train one model and grade each score once; what is there already is not done again."""
    train(planting, out, steps, told=lambda text: print(text, flush=True))
    clf, data = headviz.load(out / "model", device="cpu"), data_of(planting)
    path = out / "result.json"
    record = json.loads(path.read_text()) if path.exists() else {"scores": {}}
    if "accuracy" not in record:
        record["accuracy"] = round(headviz.evaluate(clf, data).metrics["accuracy"], 4)
        record["disagreements"] = checked(planting, clf, data)
    for name in names:
        if name not in record["scores"]:
            record["scores"][name] = graded(planting, clf, data, name)
            write_whole(path, json.dumps(record, indent=1) + "\n")
            print(planting.name, name, record["scores"][name], flush=True)
    return {"name": planting.name, "grid": [planting.layers, planting.heads], **record}


def main(arguments: list[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="the folder of models and figures")
    parser.add_argument("--page", action="store_true", help="write study/planted.md from study/planted.json")
    parser.add_argument("--members", help="names separated by commas (default: all)")
    parser.add_argument("--scores", help="names separated by commas (default: all but the slow ones)")
    parser.add_argument("--slow", action="store_true", help="the slow scores too")
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--threads", type=int)
    given = parser.parse_args(arguments)
    if given.page:
        record = json.loads(SHIPPED.read_text(encoding="utf-8"))
        SHIPPED.with_suffix(".md").write_text("\n".join(page(record)) + "\n", encoding="utf-8")
        return
    if given.out is None:
        parser.error("--out is missing: the folder of models and figures")
    if given.threads:
        torch.set_num_threads(given.threads)
    wanted = given.members.split(",") if given.members else [p.name for p in FAMILY]
    names = [name for name, score in SCORES.items() if given.slow or not score.slow]
    if given.scores:
        names = given.scores.split(",")
    members = []
    for planting in FAMILY:
        if planting.name in wanted:
            members.append(member(planting, given.out / planting.name, names, given.steps))
            content = {"members": members, "summary": summary(members)}
            write_whole(given.out / "family.json", json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
