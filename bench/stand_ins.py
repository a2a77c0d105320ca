"""What a mean in a head's place costs the evaluator: CPU seconds per mask against zero, one thread, turn by turn.

python -m bench.stand_ins [--examples N] [--masks N]
"""

from __future__ import annotations

import argparse
import random
import time

import torch

import headviz


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--examples", type=int, default=200)
    parser.add_argument("--masks", type=int, default=30)
    args = parser.parse_args()
    torch.set_num_threads(1)
    clf, data = headviz.load("demo", device="cpu"), headviz.load_task("demo", limit=args.examples)
    reference = headviz.load_task("demo", limit=64, seed=1)
    evaluators = {
        "zero": headviz.evaluator_of(clf, data),
        "mean": headviz.evaluator_of(clf, data, ablation="mean", reference=reference),
    }
    rng, spent = random.Random(0), dict.fromkeys(evaluators, 0.0)
    for evaluator in evaluators.values():
        evaluator.evaluate()
    for turn in range(args.masks):
        mask = clf.full_mask.without(rng.sample(list(clf.full_mask.kept), rng.randint(1, 40)))
        for name in sorted(evaluators, reverse=bool(turn % 2)):
            start = time.process_time()
            evaluators[name].evaluate(mask, keep=False)
            spent[name] += time.process_time() - start
    for name, seconds in spent.items():
        print(f"{name}: {1000 * seconds / args.masks:.1f} ms of CPU per mask of 1 to 40 heads, {len(data)} examples")
    print(f"mean against zero: {spent['mean'] / spent['zero']:.3f}")


if __name__ == "__main__":
    main()
