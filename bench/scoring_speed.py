"""Where the time of scoring heads goes: integration, ranking, storing; as a share of the processor's peak.

    python bench/scoring_speed.py [--model demo] [--task demo] [--data DIR] [--samples 2000] [--threads 2]

The parts are measured alone on some of the examples, in processor seconds; the whole is measured as users run it.
Peak: a large float32 matrix product by the same kernel, on as many cores.
"""

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
import torch

import headviz
from headviz.attribution.integration import sweep, sweep_groups
from headviz.attribution.rules import PathOptions
from headviz.models.fast.linear import linear
from headviz.scores.map_values import map_values
from headviz.scores.scoring import score_heads
from headviz.storage.store import Entry, Store


def peak() -> float:
    """FLOP/s of one product of 2048×2048 matrices, best of 5."""
    x, w = torch.randn(2048, 2048), torch.randn(2048, 2048)
    linear(x, w, None)
    best = float("inf")
    for _ in range(5):
        start = time.process_time()
        linear(x, w, None)
        best = min(best, time.process_time() - start)
    return 2 * 2048**3 / best  # per processor second, so per core


def flops(clf: headviz.Classifier, tokens: int, steps: int) -> float:
    """Matrix products of one example's sweep: forward, and backward to the activations, at every node."""
    return 2 * clf.cost(length=tokens).flops * (steps + 1)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default="demo")
    parser.add_argument("--task", default="demo")
    parser.add_argument("--data")
    parser.add_argument("--split", default="train")
    parser.add_argument("--samples", type=int, default=2000)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    clf = headviz.load(args.model)
    whole = headviz.load_task(args.task, split=args.split, data=args.data)
    data = headviz.sample(whole, args.samples, lengths=clf.tokenizer, length_filter="quantile")
    encodings = clf.encode(list(data.texts), None if data.pairs is None else list(data.pairs))
    some = sorted(encodings[:64], key=len)
    options = PathOptions()
    sweep(clf, some[:4], [None] * 4, options)

    start = time.process_time()
    maps = list(sweep_groups(clf, some, [None] * len(some), options))
    integration = (time.process_time() - start) / len(some)
    start = time.process_time()
    tables = [value() for result in maps for value in map_values(result, clf.present.array())]
    ranking = (time.process_time() - start) / len(some)
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder) / "store")
        start = time.process_time()
        for i in range(0, len(some), 4):
            store.put_many((f"values:{j}", Entry(tables[j])) for j in range(i, min(i + 4, len(some))))
        storing = (time.process_time() - start) / len(some)
        work = np.mean([flops(clf, len(e), options.steps) for e in some])
        top = peak()
        mean = np.mean([len(e) for e in encodings])
        print(f"{len(data)} examples, mean {mean:.1f} tokens, {args.threads} threads; processor time per example:")
        print(f"integration {1000 * integration:.1f} ms, {100 * work / integration / top:.0f} % of the peak")
        print(f"ranking     {1000 * ranking:.1f} ms")
        print(f"storing     {1000 * storing:.2f} ms")
        print(f"peak        {top / 1e9:.0f} GFLOP/s per core")
        fresh = Store(Path(folder) / "fresh")
        wall, own = time.perf_counter(), time.process_time()
        result = score_heads(clf, data, cache=fresh)
        wall, own = time.perf_counter() - wall, time.process_time() - own
        share = work * len(data) / (own * top)
        print(f"whole: {wall:.1f} s wall, {own:.1f} s processor, {1000 * own / len(data):.1f} ms per example;")
        print(f"  matrix products at {100 * share:.0f} % of the peak of the cores used")
        print(f"  stability {result.stability:.3f}, integration error {result.settings['integration_error']:.4f}")
        wall, own = time.perf_counter(), time.process_time()
        score_heads(clf, data, "conductance-kendall", cache=fresh)
        wall, own = time.perf_counter() - wall, time.process_time() - own
        print(f"another correlation of the same sample: {wall:.2f} s wall, {own:.2f} s processor")
        texts = (data.texts[0], None if data.pairs is None else data.pairs[0])
        for name in ("not cached", "cached"):
            wall, own = time.perf_counter(), time.process_time()
            headviz.conductance(clf, *texts, cache=fresh)
            wall, own = time.perf_counter() - wall, time.process_time() - own
            print(f"one example, {name}: {1000 * wall:.0f} ms wall, {1000 * own:.0f} ms processor")


if __name__ == "__main__":
    main()
