"""Is a really pruned model as much faster as arithmetic allows? BERT-base size, half of the heads removed.

    python -m bench.pruned_speed [--batches 1,4,16] [--length 128] [--remove 0.5] [--threads 2]

Prints examples per second, the measured ratio, the ratio of FLOPs (the ceiling), and the one as a share of the other.
"""

from __future__ import annotations

import argparse

import torch
from transformers import BertConfig, BertForSequenceClassification

import headviz
from headviz import HeadMask
from headviz.analyses.speed import speed
from tests.support.tiny import tiny_tokenizer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batches", default="1,4,16")
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--remove", type=float, default=0.5)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    tokenizer = tiny_tokenizer()
    tokenizer.model_max_length = 512
    clf = headviz.wrap(BertForSequenceClassification(BertConfig()).eval(), tokenizer, "BERT-base, random")
    mask = HeadMask.full(12, 12).without_random(round(args.remove * 144))
    batches = [int(b) for b in args.batches.split(",")]
    result = speed(clf, mask, batches=batches, length=args.length, repeats=args.repeats)
    print(f"{len(mask.off)} of 144 heads removed, {args.length} tokens, {args.threads} threads")
    for row in result.rows:
        print(
            f"batch {row.batch}: {row.full:.2f} ± {row.full_sd:.2f} -> "
            f"{row.pruned:.2f} ± {row.pruned_sd:.2f} examples/s; "
            f"{row.ratio:.3f}x of at most {result.ceiling:.3f}x: {100 * row.ratio / result.ceiling:.0f} %"
        )


if __name__ == "__main__":
    main()
