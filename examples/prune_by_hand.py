"""Iterative pruning (Michel et al. 2019) written out with headviz's public functions.

Score the heads that are left, switch the lowest ones off, evaluate, repeat. Then remove them for real.

    python examples/prune_by_hand.py demo demo small-demo
"""

import sys

import numpy as np

import headviz


def iterative_pruning(clf, sample, dev, step=0.1, until=0.5, seed=0):
    """Yield a mask and its evaluation after each step. Heads with equal scores are taken in a random order."""
    mask, heads, rng = clf.full_mask, len(clf.full_mask.kept), np.random.default_rng(seed)
    while len(mask.off) < round(until * heads):
        scores = headviz.score_heads(clf, sample, score="taylor", mask=mask).values  # [layers, heads]
        order = sorted(rng.permutation(mask.kept).tolist(), key=lambda head: scores[tuple(head)])
        mask = mask.without([tuple(head) for head in order[: round(step * heads)]])
        yield mask, headviz.evaluate(clf, dev, mask=mask)


def main(model, task, folder):
    clf, dev = headviz.load(model), headviz.load_task(task)
    sample = headviz.sample(headviz.load_task(task, split="train"), 128)
    full = headviz.evaluate(clf, dev)
    print(f"{len(clf.full_mask.kept):4} heads on  {full.metrics}")
    for mask, result in iterative_pruning(clf, sample, dev):
        change = headviz.paired(full.gold, full.predictions, result.predictions)
        print(f"{len(mask.kept):4} heads on  {result.metrics}  accuracy {change.difference:+.3f} "
              f"[{change.low:+.3f}, {change.high:+.3f}]")  # fmt: skip
    small = headviz.prune(clf, mask)
    print(f"saved in {small.save(folder)}: {small.cost().parameters:,} of {clf.cost().parameters:,} parameters")


if __name__ == "__main__":
    main(*sys.argv[1:])
