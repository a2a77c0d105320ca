"""How long does a toggle take on the demo model, and what bounds it?

    python -m bench.demo_toggles [--examples 500] [--toggles 100] [--threads 2] [--random]

Three ways of toggling: one random head off the full model; a walk, in which every toggle builds on the last mask;
and a walk that returns to masks seen before. Times are given as shares of one full evaluation (of the evaluator
itself without reuse), measured in turn with the toggles.
"""

from __future__ import annotations

import argparse
import random
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import psutil
import torch
from transformers import BertConfig, BertForSequenceClassification

import headviz
from headviz import HeadMask
from headviz.evaluation.evaluator import Evaluator, EvaluatorOptions

HIDDEN = 144
CLOCK = time.perf_counter


def subject(args: argparse.Namespace) -> tuple[Any, Any]:
    """The demo model and its dev set, or random weights of the same shape on texts of the same length."""
    if not args.random:
        return headviz.load("demo", device="cpu"), headviz.load_task("demo", limit=args.examples)
    from headviz.tasks import Dataset
    from headviz.tasks.catalogue import get_task
    from tests.support.tiny import WORDS, tiny_tokenizer

    rng = random.Random(0)

    def text() -> str:
        return " ".join(rng.choice(WORDS) for _ in range(rng.randint(7, 14)))

    texts, pairs = (tuple(text() for _ in range(args.examples)) for _ in range(2))
    gold = np.array([rng.randrange(3) for _ in texts])
    config = BertConfig(
        vocab_size=len(tiny_tokenizer()),
        hidden_size=HIDDEN,
        num_hidden_layers=12,
        num_attention_heads=12,
        intermediate_size=4 * HIDDEN,
        max_position_embeddings=64,
        id2label=dict(enumerate(get_task("mnli").label_names)),
    )
    torch.manual_seed(0)
    clf = headviz.wrap(BertForSequenceClassification(config).eval(), tiny_tokenizer(), "random weights")
    return clf, Dataset(get_task("mnli"), "dev", texts, pairs, gold)


def timed(work: Callable[[], Any]) -> float:
    start = CLOCK()
    work()
    return CLOCK() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--examples", type=int, default=500)
    parser.add_argument("--toggles", type=int, default=100)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--random", action="store_true", help="random weights in place of the demo model")
    parser.add_argument("--precision", default="float32")
    parser.add_argument("--cpu-time", action="store_true", help="for a busy machine; means little with several threads")
    args = parser.parse_args()
    if args.cpu_time:
        global CLOCK
        CLOCK = time.process_time
    torch.set_num_threads(args.threads)
    clf, data = subject(args)
    encodings = clf.encode(list(data.texts), list(data.pairs))
    print(
        f"{clf.name}: {clf.num_layers}×{clf.num_heads} heads, hidden {clf.config.hidden_size}; {len(data)} examples, "
        f"{np.mean([len(e) for e in encodings]):.1f} tokens; {args.threads} threads, {args.precision}"
    )
    resident = psutil.Process().memory_info().rss
    evaluator = Evaluator(clf, data, EvaluatorOptions(precision=args.precision))
    bare = Evaluator(clf, data, EvaluatorOptions(budget=0, precision=args.precision))
    full = HeadMask.full(clf.num_layers, clf.num_heads)
    for warm in (bare, evaluator):
        warm.evaluate(full)
    rng = random.Random(0)
    heads = list(full.heads())

    def toggles(kind: str) -> list[HeadMask]:
        if kind == "single":
            return [full.without([h]) for h in (rng.choices(heads, k=args.toggles))]
        masks = [full]
        for _ in range(args.toggles):
            masks.append(masks[-1].toggled([rng.choice(heads)]))
        return masks[1:]

    whole: list[float] = []
    for kind in ("single", "walk"):
        spent, layers = [], Counter()
        for i, mask in enumerate(dict.fromkeys(toggles(kind))):
            if i % 10 == 0:
                whole.append(timed(lambda i=i: bare.evaluate(full.without_random(72, seed=i))))
            spent.append(timed(lambda mask=mask: evaluator.evaluate(mask)))
            layers[mask.off[0].layer if mask.off else 0] += 1
        ms, share = 1000 * np.array(spent), np.array(spent) / np.median(whole)
        print(
            f"{kind}: median {np.median(ms):.0f} ms, 95th percentile {np.percentile(ms, 95):.0f} ms; "
            f"{100 * np.median(share):.0f} % and {100 * np.percentile(share, 95):.0f} % of a full evaluation "
            f"({1000 * np.median(whole):.0f} ms without reuse)"
        )
    mask = full.without([heads[0]])
    evaluator.evaluate(mask)
    again = 1000 * timed(lambda: evaluator.evaluate(mask))
    grown = psutil.Process().memory_info().rss - resident
    print(f"seen before: {again:.2f} ms")
    room = evaluator.options.room_on(evaluator.clf.device)
    print(
        f"states {evaluator.memory / 2**20:.0f} MiB of at most {room / 2**20:.0f}; "
        f"the process grew by {grown / 2**20:.0f} MiB, weights in working order and work space included"
    )
    _bounds(evaluator, full)


def _bounds(evaluator: Evaluator, full: HeadMask) -> None:
    """Where the time of an evaluation without reuse goes."""
    from torch.profiler import ProfilerActivity, profile

    evaluator.clear()
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        evaluator.evaluate(full, keep=False)
    events = sorted(profiler.key_averages(), key=lambda e: -e.self_cpu_time_total)
    total = sum(e.self_cpu_time_total for e in events)
    print("time of a full evaluation by operator:")
    for event in events[:9]:
        print(f"  {100 * event.self_cpu_time_total / total:5.1f} %  {event.count:6d} ×  {event.key}")


if __name__ == "__main__":
    main()
