"""What falls while exact numbers of heads are learned, the noise or the softmax's temperature:
``python -m study.gate_temperatures [--seeds 3] [--samples 1000] [--dev 1000]``.

Li, Cotterell and Sachan (2021) let the temperature of the iterated softmax fall and keep the Gumbel noise; the score
``gates-exact`` lets the noise fall and keeps the temperature at 1. On the demo, each with either and with both: the
accuracy with 50 and 70 % of the heads off, in the order of the score and by the algorithm's two steps.
"""

from __future__ import annotations

import argparse
from unittest import mock

import numpy as np
import torch

import headviz
from headviz.heads import lowest
from headviz.scores import learned
from headviz.scores.learned import Drawn
from headviz.scores.scoring import Scoring, score_heads

LEAST = 0.1  # of the softmax's temperature
FALLING = {"the noise (headviz)": (True, False), "the softmax (paper)": (False, True), "both": (True, True)}
SHARES = (0.5, 0.7)


def rule(noise: bool, softmax: bool):
    """``falling_count`` with the choice of what falls."""

    def falling_count(first: int, last: int, temperature: float = 1.0):
        def draw(logits, done, generator):
            count = max(1, round(first + (last - first) * done))
            heat = temperature * (1 - done) if noise else temperature
            u = torch.rand(logits.shape, generator=generator).clamp(1e-9, 1 - 1e-7).to(logits)
            perturbed = logits - heat * torch.log(-torch.log(u))
            hard = torch.zeros_like(logits)
            hard[perturbed.topk(count).indices] = 1
            soft = soft_subset(perturbed, count, max(1 - done, LEAST) if softmax else 1.0)
            return Drawn(hard + soft - soft.detach(), 0.0, hard)

        return draw

    return falling_count


def soft_subset(logits: torch.Tensor, count: int, temperature: float) -> torch.Tensor:
    left, taken = logits, torch.zeros_like(logits)
    for _ in range(count):
        one = torch.softmax(left / temperature, dim=0)
        taken = taken + one
        left = left + torch.log((1 - one).clamp_min(1e-6))
    return taken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--dev", type=int, default=1000)
    given = parser.parse_args()
    clf, dev = headviz.load("demo", device="cpu"), headviz.load_task("demo", limit=given.dev)
    some = headviz.sample(
        headviz.load_task("demo", split="train"), given.samples, lengths=clf.tokenizer, length_filter="quantile"
    )
    full, heads = clf.full_mask, len(clf.full_mask.kept)
    sizes = [round(share * heads) for share in SHARES]

    def accuracy(table: np.ndarray, size: int) -> float:
        return headviz.evaluate(clf, dev, full.without(lowest(table, size, full.kept, seed=0))).metrics["accuracy"]

    print("falls | seed | score, 50 % | score, 70 % | algorithm, 50 % | algorithm, 70 %")
    for name, falling in FALLING.items():
        for seed in range(given.seeds):
            with mock.patch.object(learned, "falling_count", rule(*falling)):
                score = score_heads(clf, some, "gates-exact", cache=False, seed=seed).values
                scoring = Scoring(clf, some, "gates-exact", cache=False, seed=seed)
                logits, left, result = None, heads, [accuracy(score, size) for size in sizes]
                for size in sizes:
                    logits = learned.learn_count(scoring, logits, left, heads - size)
                    left = heads - size
                    result.append(accuracy(logits, size))
            print(name, seed, *(f"{value:.3f}" for value in result), sep=" | ", flush=True)


if __name__ == "__main__":
    main()
