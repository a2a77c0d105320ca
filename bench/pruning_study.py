"""Do head scores beat random ones, and does retraining make them equal? A resumable study of pruning runs.

    python bench/pruning_study.py --out cache/study --minutes 60      # do as much as fits, cheap things first
    python bench/pruning_study.py --out cache/study --report docs/pruning-study.md

Every (algorithm, score) is one plan with a folder and a state of its own. Works are done one at a time over all plans
and saved one by one, so the study can be stopped at any moment and continued. The report says what has not been run.
"""

import argparse
import dataclasses
import json
import time
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from headviz.errors import RunError
from headviz.pruning import ALGORITHMS, PruningPlan, State, absorb, open_context, perform, ready, start
from headviz.pruning.check import same_run
from headviz.pruning.context import Context
from headviz.pruning.driver import works
from headviz.pruning.outcome import seconds
from headviz.pruning.recipe import recipe_of
from headviz.pruning.state import BUILD
from headviz.pruning.tickets import wins

SCORES = ("taylor", "conductance-spearman", "random")
MASKED = ("one-importance", "iterative")
RETRAINED = ("one-shot-isp", "igspp")
RESAMPLES = 4000
# random numbers do not depend on the model, so scoring it anew removes the same heads: one run serves both
SAME = {"igspp-random": "one-shot-isp-random"}


def plans(args: argparse.Namespace) -> dict[str, PruningPlan]:
    """One plan for each algorithm and score; only the first that retrains also trains the full model."""
    found = {}
    trains_full = None
    for algorithm, score in product((*MASKED, *RETRAINED), SCORES):
        retrains = ALGORITHMS[algorithm].retrains
        options: dict[str, Any] = {}
        if retrains:
            trains_full = trains_full or (algorithm, score)
            options["retrain_full"] = trains_full == (algorithm, score)
            if args.examples is not None:
                options["train_limit"] = args.examples
            recipe = recipe_of(args.base)
            if recipe is not None:
                options["finetune"] = dataclasses.replace(recipe, warmup=max(recipe.warmup, args.warmup))
        found[f"{algorithm}-{score}"] = PruningPlan(
            model=args.model,
            base=args.base if retrains else None,
            task=args.task,
            algorithm=algorithm,
            score=score,
            sparsities=tuple(args.sparsities),
            seeds=tuple(args.seeds),
            samples=args.samples,
            device="cpu",
            **options,
        )
    return found


def run(args: argparse.Namespace) -> None:
    """Do the next work, cheapest kind first, until time is up."""
    until = time.monotonic() + 60 * args.minutes
    todo = {name: p for name, p in plans(args).items() if p.algorithm in args.only and name not in SAME}
    contexts: dict[str, Any] = {}
    states: dict[str, State] = {}
    shared: dict[bool, Any] = {}
    for name, plan in todo.items():
        folder = args.out / name
        retrains = ALGORITHMS[plan.algorithm].retrains
        if retrains not in shared:
            shared[retrains] = open_context(plan, folder)
        one = shared[retrains]
        contexts[name] = Context(
            folder, one.clf, one.train, one.dev, one.load_base, one.load_masked_lm, None, one.recipe, one.pool
        )
        try:
            states[name] = State.load(folder)
            if states[name].plan_digest != plan.digest:
                raise SystemExit(f"{folder} holds a study with other options. Use another --out.")
            same_run(contexts[name], states[name])
        except RunError:
            states[name] = start(contexts[name], plan)
            states[name].save(folder)
    while time.monotonic() < until:
        waiting = [
            (_price(plan, work), name, work)
            for name, plan in todo.items()
            for work in ready(plan, states[name])
        ]
        if not waiting:
            break
        _, name, work = min(waiting, key=lambda w: (w[0], w[1]))
        began = time.perf_counter()
        done = perform(contexts[name], todo[name], states[name], work)
        states[name] = absorb(todo[name], states[name], done)
        states[name].save(contexts[name].folder)
        contexts[name].tidy(todo[name], states[name])
        told = "" if done.record is None else f" {done.record.metrics}"
        print(f"{name} {work.key}: {time.perf_counter() - began:.1f} s{told}", flush=True)


def _price(plan: PruningPlan, work: Any) -> tuple[Any, ...]:
    """No training before training, full models early, then seed by seed."""
    trains = ALGORITHMS[plan.algorithm].retrains
    return (
        trains,
        work.seed if trains else 0,
        RETRAINED.index(plan.algorithm) if trains else 0,
        work.step,
        work.kind,
    )


# results ----------------------------------------------------------------------------------------


def right_answers(state: State, gold: np.ndarray, step: int) -> dict[int, np.ndarray]:
    """By seed: [n] whether each dev answer is right. Seeds that were not run are left out."""
    found = {seed: state.record(seed, step) for seed in state.plan["seeds"]}
    return {k: state.logits[r.logits].argmax(axis=1) == gold for k, r in found.items() if r is not None}


def interval(right: np.ndarray, draw: np.random.Generator) -> tuple[float, float]:
    """95 % of the mean over seeds and examples [seeds, n]: both are resampled."""
    seeds, n = right.shape
    means = np.empty(RESAMPLES)
    for i in range(RESAMPLES):
        chosen = right[draw.integers(0, seeds, seeds)]
        means[i] = chosen[:, draw.integers(0, n, n)].mean()
    low, high = np.quantile(means, [0.025, 0.975])
    return float(low), float(high)


def collect(args: argparse.Namespace) -> dict[str, Any]:
    """Everything the report shows, from the states alone."""
    from headviz.evaluation import class_order, gold_for
    from headviz.models.loading import load
    from headviz.tasks import load_task

    clf, dev = load(args.model, device="cpu"), load_task(args.task)
    gold = gold_for(dev, class_order(clf, dev))
    assert gold is not None
    draw = np.random.default_rng(0)
    found: dict[str, Any] = {
        "cells": {},
        "missing": [],
        "seconds": {},
        "full": {},
        "right": {},
        "n": len(dev),
    }
    all_plans = plans(args)
    for name, plan in all_plans.items():
        if name in SAME:
            continue
        try:
            state = State.load(args.out / name)
        except RunError:
            found["missing"].append(f"{name}: not started")
            continue
        if state.plan_digest != plan.digest:
            raise SystemExit(
                f"{args.out / name} holds a study with other options. Give those that it was run with."
            )
        if state.model_digest != clf.digest:
            raise SystemExit(
                f"{args.out / name} holds a study of other weights than '{args.model}' has now. Run it anew."
            )
        reference = state.reference.metrics["accuracy"]
        found["reference"] = reference
        found["threads"] = state.versions["threads"]
        found["finetune"] = state.finetune or found.get("finetune")
        if state.steps:
            found["seconds"][name] = seconds(state)
        lacking = missing(plan, state)
        if lacking:
            found["missing"].append(f"{name}: {lacking}")
        if plan.retrain_full and ALGORITHMS[plan.algorithm].retrains:
            found["full"] = {
                seed: r.metrics["accuracy"] for seed in plan.seeds if (r := state.record(seed, 0)) is not None
            }
        found["sparsities"] = [size / (state.num_layers * state.num_heads) for size in state.sizes]
        for step, size in enumerate(state.sizes, 1):
            answers = right_answers(state, gold, step)
            if not answers:
                continue
            found["right"][plan.algorithm, plan.score, step] = answers
            right = np.array(list(answers.values()))
            low, high = interval(right, draw)
            values = right.mean(axis=1)
            found["cells"][plan.algorithm, plan.score, step] = {
                "sparsity": size / (state.num_layers * state.num_heads),
                "mean": float(values.mean()),
                "sd": float(values.std(ddof=1)) if len(values) > 1 else None,
                "low": low,
                "high": high,
                "seeds": len(values),
            }
    for name, other in SAME.items():
        own, there = all_plans[name], all_plans[other]
        for (algorithm, score, step), cell in list(found["cells"].items()):
            if (algorithm, score) == (there.algorithm, there.score):
                found["cells"][own.algorithm, own.score, step] = cell
    return found


def missing(plan: PruningPlan, state: State) -> str:
    """What of a plan was not run, by sparsity and seed; full models only where they are trained."""
    full = ALGORITHMS[plan.algorithm].retrains and plan.retrain_full
    by_step: dict[int, list[int]] = {}
    for work in works(plan, state):
        wanted = work.kind == BUILD and (work.step > 0 or full)
        if wanted and state.record(work.seed, work.step) is None:
            by_step.setdefault(work.step, []).append(work.seed)
    if len(by_step) == len(state.sizes) + full and all(len(s) == len(plan.seeds) for s in by_step.values()):
        return "nothing of it was run"
    heads = state.num_layers * state.num_heads
    return "; ".join(
        f"{'all heads' if step == 0 else f'{state.sizes[step - 1] / heads:.1%} off'}, seed"
        f"{'s' if len(seeds) > 1 else ''} {', '.join(map(str, seeds))}"
        for step, seeds in sorted(by_step.items())
    )


def report(args: argparse.Namespace) -> None:
    """Write the page and its picture."""
    found = collect(args)
    if "reference" not in found:
        raise SystemExit(f"{args.out} holds no study yet. Run it first, without --report.")
    cells = found["cells"]
    # all that were planned, so that an empty column shows what was not run
    sparsities = list(enumerate(found["sparsities"], 1))
    lines = [
        "# Which heads may go? A pruning study on the demo model",
        "",
        "Written by `bench/pruning_study.py` from finished works; run it again to continue or to check. "
        f"Dev accuracy over {found['n']:,} examples; the fine-tuned model with all heads has {found['reference']:.3f}. "
        "A cell is the mean over seeds with its 95 % interval (seeds and examples resampled); the seeds that are "
        "there stand in brackets where they are fewer than planned.",
        "",
    ]
    for algorithm in (*MASKED, *RETRAINED):
        rows = [s for s in SCORES if any((algorithm, s, step) in cells for step, _ in sparsities)]
        what = ALGORITHMS[algorithm]
        lines += [f"## {what.title}: {'retrained' if what.retrains else 'no retraining'}", "", what.what, ""]
        if not rows:
            lines += ["Not run.", ""]
            continue
        lines.append("| score | " + " | ".join(f"{s:.1%} off" for _, s in sparsities) + " |")
        lines.append("|---|" + "---|" * len(sparsities))
        for score in rows:
            texts = [_cell(cells.get((algorithm, score, step)), len(args.seeds)) for step, _ in sparsities]
            lines.append(f"| `{score}` | " + " | ".join(texts) + " |")
        lines += ["", _verdict(cells, algorithm, sparsities), ""]
        if any(name.startswith(algorithm) for name in SAME):
            lines += ["Random numbers do not depend on the model, so their row is that of one-shot ISP.", ""]
    lines += _gaps(found["right"], sparsities)
    lines += ["## Full models trained anew", ""]
    full = list(found["full"].values())
    if full:
        lines.append(
            f"θ0 with all heads, fine-tuned by the same recipe: {', '.join(f'{v:.3f}' for v in full)} "
            f"(seeds {', '.join(map(str, found['full']))})."
        )
        lines += ["", _tickets(cells, full)]
    else:
        lines.append("Not run.")
    lines += [
        "",
        "## Time",
        "",
        "| run | seconds | scoring | training | evaluating |",
        "|---|---|---|---|---|",
    ]
    for name, spent in found["seconds"].items():
        shares = [f"{spent['shares'].get(k, 0):.0%}" for k in ("score", "train", "evaluate")]
        lines.append(f"| {name} | {spent['total']:.0f} | " + " | ".join(shares) + " |")
    lines += ["", f"{found.get('threads', '?')} processor thread; other work shared the machine.", ""]
    lines += ["## Not run", ""]
    lines += [f"- {m}" for m in found["missing"]] or ["Everything was run."]
    if found.get("finetune"):
        lines += ["", "Fine-tuning: `" + json.dumps(found["finetune"]) + "`"]
        if args.examples:
            lines.append(f"on {args.examples:,} training pairs.")
    picture = args.report.with_suffix(".svg")
    picture.write_text(draw_curves(cells, found["reference"]), encoding="utf-8")
    lines[3:3] = ["", f"![Accuracy against sparsity]({picture.name})"]
    args.report.write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")
    print(f"{args.report} and {picture} written; {len(found['missing'])} plans incomplete")


def _cell(cell: dict[str, Any] | None, seeds: int) -> str:
    if cell is None:
        return "–"
    few = "" if cell["seeds"] == seeds else f" ({cell['seeds']})"
    return f"{cell['mean']:.3f} [{cell['low']:.3f}, {cell['high']:.3f}]{few}"


def _verdict(cells: dict[Any, Any], algorithm: str, sparsities: list[Any]) -> str:
    """Where a score's interval lies wholly above, or below, random's."""
    said = []
    for score in SCORES[:-1]:
        above, below, level = [], [], []
        for step, share in sparsities:
            own, chance = cells.get((algorithm, score, step)), cells.get((algorithm, "random", step))
            if own and chance:
                kind = (
                    above if own["low"] > chance["high"] else below if own["high"] < chance["low"] else level
                )
                kind.append(f"{share:.0%}")
        parts = [
            f"{what} random at {', '.join(where)}"
            for what, where in (("above", above), ("not told apart from", level), ("below", below))
            if where
        ]
        if parts:
            said.append(f"`{score}` is {'; '.join(parts)}.")
    return " ".join(said) or "No comparison with random is possible yet."


def _gaps(right: dict[Any, dict[int, np.ndarray]], sparsities: list[Any]) -> list[str]:
    """How far each score is ahead of random, with and without retraining; seeds and examples are paired."""
    draw = np.random.default_rng(1)
    lines = [
        "## Does retraining make random heads nearly as good?",
        "",
        "Accuracy ahead of `random`, over the seeds that both have, with 95 % intervals (paired over seeds and "
        "examples).",
        "",
        "| | " + " | ".join(f"{s:.1%} off" for _, s in sparsities) + " |",
        "|---|" + "---|" * len(sparsities),
    ]
    for score, algorithm in product(SCORES[:-1], (MASKED[0], RETRAINED[0])):
        texts = []
        for step, _ in sparsities:
            own, chance = right.get((algorithm, score, step), {}), right.get((algorithm, "random", step), {})
            both = sorted(own.keys() & chance.keys())
            if not both:
                texts.append("–")
                continue
            ahead = np.array([own[s].astype(float) - chance[s] for s in both])
            low, high = interval(ahead, draw)
            texts.append(f"{ahead.mean():+.3f} [{low:+.3f}, {high:+.3f}] ({len(both)})".replace("-", "−"))
        said = "retrained" if ALGORITHMS[algorithm].retrains else "no retraining"
        lines.append(f"| `{score}`, {said} ({ALGORITHMS[algorithm].title}) | " + " | ".join(texts) + " |")
    return [*lines, "", "Seeds in brackets.", ""]


def _tickets(cells: dict[Any, Any], full: list[float]) -> str:
    """The criterion of winning tickets, for cells with several seeds."""
    mean = float(np.mean(full))
    tried = [
        (f"{algorithm} with `{score}` at {c['sparsity']:.0%}", c)
        for (algorithm, score, _), c in sorted(cells.items())
        if ALGORITHMS[algorithm].retrains and c["sd"] is not None and f"{algorithm}-{score}" not in SAME
    ]
    won = [name for name, c in tried if wins(mean, c["mean"], c["sd"])]
    names = ", ".join(won) or "none"
    return (
        f"Winning tickets (full mean ≤ mean + sd over seeds): {names}; {len(tried)} cells had several seeds."
    )


# picture ----------------------------------------------------------------------------------------

COLOURS = {"taylor": "#2563eb", "conductance-spearman": "#d97706", "random": "#6b7280"}
DASHES = {"taylor": "", "conductance-spearman": "6 3", "random": "2 3"}


def draw_curves(cells: dict[Any, Any], reference: float) -> str:
    """Four small panels, one per algorithm: mean and interval against sparsity."""
    width, height, left, top = 300, 220, 44, 30
    out = []
    for i, algorithm in enumerate((*MASKED, *RETRAINED)):
        x0, y0 = left + (i % 2) * (width + 40), top + (i // 2) * (height + 60)

        def place(share: float, value: float, x0: int = x0, y0: int = y0) -> tuple[float, float]:
            return x0 + share * width, y0 + (1 - value) * height

        out.append(f'<text x="{x0}" y="{y0 - 10}" font-weight="600">{ALGORITHMS[algorithm].title}</text>')
        for value in (0, 0.25, 0.5, 0.75, 1):
            (_, y), (x, _) = place(0, value), place(value, 0)
            out.append(f'<line x1="{x0}" x2="{x0 + width}" y1="{y}" y2="{y}" stroke="#8884" />')
            out.append(f'<text x="{x0 - 6}" y="{y + 4}" text-anchor="end">{value:.2f}</text>')
            out.append(f'<text x="{x}" y="{y0 + height + 16}" text-anchor="middle">{value:.0%}</text>')
        y = place(0, reference)[1]
        out.append(
            f'<line x1="{x0}" x2="{x0 + width}" y1="{y}" y2="{y}" stroke="#888" stroke-dasharray="1 2" />'
        )
        for score in SCORES:
            points = [c for (a, s, _), c in sorted(cells.items()) if (a, s) == (algorithm, score)]
            if not points:
                continue
            band = [place(c["sparsity"], c["high"]) for c in points]
            band += [place(c["sparsity"], c["low"]) for c in reversed(points)]
            line = [place(c["sparsity"], c["mean"]) for c in points]
            colour = COLOURS[score]
            out.append(f'<polygon points="{_points(band)}" fill="{colour}" opacity="0.18" />')
            out.append(
                f'<polyline points="{_points(line)}" fill="none" stroke="{colour}" stroke-width="2" '
                f'stroke-dasharray="{DASHES[score]}" />'
            )
            out += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}" />' for x, y in line]
    x, y = left, top + 2 * (height + 60)
    for score in SCORES:
        out.append(
            f'<line x1="{x}" x2="{x + 28}" y1="{y}" y2="{y}" stroke="{COLOURS[score]}" stroke-width="2" '
            f'stroke-dasharray="{DASHES[score]}" /><text x="{x + 34}" y="{y + 4}">{score}</text>'
        )
        x += 200
    size = (left + 2 * (width + 40), y + 24)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size[0]} {size[1]}" font-family="sans-serif" '
        f'font-size="12" fill="#777" role="img"><title>Dev accuracy against the share of heads removed; bands are '
        f"95 % intervals, the dotted line is the full model</title>\n" + "\n".join(out) + "\n</svg>\n"
    )


def _points(corners: list[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in corners)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--out", type=Path, required=True, help="folder of the study; the same one continues it"
    )
    parser.add_argument("--model", default="demo")
    parser.add_argument("--base", default="demo-pretrained")
    parser.add_argument("--task", default="demo")
    parser.add_argument("--sparsities", type=float, nargs="+", default=[0.3, 0.5, 0.7, 0.9])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--samples", type=int, default=500, help="examples to score on")
    parser.add_argument("--examples", type=int, help="pairs to retrain on (default: the model's recipe)")
    parser.add_argument("--warmup", type=float, default=0.05, help="at least this share of the updates")
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument(
        "--only",
        nargs="+",
        choices=(*MASKED, *RETRAINED),
        default=(*MASKED, *RETRAINED),
        help="run these algorithms alone, so that two processes can share the work",
    )
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--report", type=Path, help="write this page instead of running")
    args = parser.parse_args()
    import torch

    torch.set_num_threads(args.threads)
    if args.report is None:
        run(args)
    else:
        report(args)


if __name__ == "__main__":
    main()
