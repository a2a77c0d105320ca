"""How many integration steps conductance needs: every rule against a fine reference, on real weights.

    python bench/conductance_convergence.py MODEL TASK [--data DIR] [--examples 12] [--reference 800]

One walk over the reference's nodes feeds every rule whose nodes are among them, so that all of them see the same
numbers. Prints, per rule and number of steps: the relative L2 error of the maps (mean and largest over examples),
the mean rank correlation with the reference's maps, how far the error estimate that users see is from the truth, and
in how many examples it covers the truth. *default* is ``headviz.conductance`` as it is called without steps.
"""

import argparse
import json
import os
from functools import partial

import numpy as np
import torch

import headviz
from headviz.attribution.integration import PathSum, sweep
from headviz.attribution.rules import CAUTION, Part, PathOptions, Rule
from headviz.attribution.walk import Walk
from headviz.models.fast.linear import products
from headviz.scores.map_values import correlations


def every_stride(walk: Walk, steps: int) -> dict[int, np.ndarray]:
    """Trapezoid sums [L, H, T, T] for every number of steps that divides the reference's."""
    counts = [n for n in range(1, steps + 1) if steps % n == 0 and (n <= 100 or n in (200, 400, steps))]
    sums = {n: [PathSum(_trapezoid(steps // n), steps) for _ in range(walk.clf.num_layers)] for n in counts}
    alphas = torch.linspace(0, 1, steps + 1, dtype=walk.end.dtype)
    walk.at_input(keep=False)
    size = max(1, 2048 // walk.length)
    with products(walk.clf.device):
        for first in range(0, steps + 1, size):
            nodes = alphas[first : first + size]
            call = walk.clf.call(None, "eager", keep_probs=True)
            with torch.enable_grad():
                logits = walk.clf.forward(walk.rows(walk.point(nodes).requires_grad_(True)), call)
                grads = torch.autograd.grad(walk.pick(logits).sum(), call.probs)
            for layer, (a, g) in enumerate(zip(call.probs, grads, strict=True)):
                for totals in sums.values():
                    totals[layer].add(first, a.detach()[:, None], g[:, None])
    return {n: np.stack([t.result()[0][0].numpy() for t in totals]).astype(np.float64) for n, totals in sums.items()}


def _trapezoid(stride: int) -> Rule:
    part = Part(stride, 0.5, 0.5)
    return Rule("", lambda n: [], (part, part), (1.0, 0.0), (1.0, -1.0))


def rank(a: np.ndarray, b: np.ndarray) -> float:
    """Mean rank correlation of the heads' maps."""
    left, right = (maps.reshape(maps.shape[0] * maps.shape[1], -1).astype(np.float32) for maps in (a, b))
    return float(np.nanmean(correlations(left, right, ["spearman"])["spearman"]))


def compare(rows: dict, reference: np.ndarray, name: str, n: int, maps: np.ndarray, told: float) -> None:
    """Note how far these maps are from the reference, and what the estimate said."""
    error = float(np.linalg.norm(maps - reference) / np.linalg.norm(reference))
    rows.setdefault((name, n), []).append((error, rank(maps, reference), told / np.linalg.norm(maps)))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("task")
    parser.add_argument("--data")
    parser.add_argument("--split", default="dev")
    parser.add_argument("--examples", type=int, default=12)
    parser.add_argument("--reference", type=int, default=800)
    parser.add_argument("--threads", type=int, default=int(os.environ.get("OMP_NUM_THREADS", "2")))
    parser.add_argument("--json", help="write the rows here as well")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    clf = headviz.load(args.model)
    data = headviz.load_task(args.task, split=args.split, data=args.data).subset(range(args.examples))
    rows: dict[tuple[str, int], list[tuple[float, float, float]]] = {}
    taken: list[int] = []
    for i in range(len(data)):
        pairs = None if data.pairs is None else [data.pairs[i]]
        encodings = clf.encode([data.texts[i]], pairs)
        t = every_stride(Walk(clf, encodings, [None], None), args.reference)
        note = partial(compare, rows, t[args.reference])

        for n in t:
            if n > 100:
                continue
            half = t.get(n // 2) if n % 2 == 0 else None
            change = np.nan if half is None else np.linalg.norm(t[n] - half) / 3
            note("trapezoid", n, t[n], change)
            if half is not None:
                r = (4 * t[n] - half) / 3
                if n % 4 == 0 and n // 4 in t:
                    change = CAUTION * np.linalg.norm(r - (4 * half - t[n // 4]) / 3)
                note("richardson", n, r, change)
        others = [("captum", 20, PathOptions(20, "captum")), ("captum", 50, PathOptions(50, "captum"))]
        others += [("richardson", n, PathOptions(n)) for n in (6, 12, 14) if n not in t]
        others += [("preview bf16", n, PathOptions(n, precision="bfloat16")) for n in (4, 8, 16)]
        for name, n, options in others:
            (maps,) = sweep(clf, encodings, [None], options)
            note(name, n, maps.attribution.astype(np.float64), float(np.linalg.norm(maps.error)))
        result = headviz.conductance(clf, data.texts[i], None if pairs is None else pairs[0], cache=False)
        maps, size = result.attribution.astype(np.float64), np.linalg.norm(result.attribution)
        note("default", 0, maps, result.error * size)
        taken.append(result.steps)
        print(f"example {i + 1}: {len(encodings[0])} tokens, {result.steps} steps by default", flush=True)

    print(
        f"\n{clf.num_layers}×{clf.num_heads} heads, {len(data)} examples of {args.task}, "
        f"reference {args.reference} steps"
    )
    print(f"by default: {np.mean(taken):.0f} steps in the mean, each point of the path visited once")
    print("rule         steps   error  largest     rank   told/true (least, median)   covered")
    out = []
    for (name, n), result in sorted(rows.items()):
        error, ranks, told = np.array(result).T
        ratio = told / error
        line = {
            "rule": name,
            "steps": n,
            "error": error.mean(),
            "largest": error.max(),
            "rank": ranks.mean(),
            "told_least": ratio.min(),
            "told_median": float(np.median(ratio)),
            "covered": float(np.mean(told >= error)),
        }
        out.append(line)
        print(
            f"{name:<12} {n:>5}  {error.mean():.4f}   {error.max():.4f}   {ranks.mean():.4f}"
            f"       {ratio.min():.2f}  {np.median(ratio):.2f}"
            f"                {np.mean(told >= error):.0%}"
        )
    if args.json:
        with open(args.json, "w") as file:
            json.dump(out, file)


if __name__ == "__main__":
    main()
