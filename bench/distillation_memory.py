"""Time and memory of the conditional mean at BERT-base size (110 million weights), iterates on disk.

    python bench/distillation_memory.py [--iterates 5] [--folder /tmp/iterates]

Random weights do: neither depends on their values. Memory is the peak of the process beyond the model's own.
"""

import argparse
import resource
import shutil
import time
from pathlib import Path

import torch
from transformers import BertConfig, BertForSequenceClassification

import headviz
from headviz.extras.distillation.layer_removal import remove
from headviz.extras.distillation.posterior import FileIterates, Posterior, Prior, save_iterate
from headviz.extras.distillation.removal import Removal


class NoTokenizer:
    """headviz.wrap wants a tokenizer; nothing is tokenised here."""


def peak() -> float:
    """Gigabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--iterates", type=int, default=5)
    parser.add_argument("--folder", default="/tmp/headviz-iterates")
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    folder = Path(args.folder)
    clf = headviz.wrap(BertForSequenceClassification(BertConfig()), NoTokenizer())
    paths = []
    noise = torch.Generator().manual_seed(0)
    for k in range(args.iterates):
        for p in clf.model.parameters():
            p += 1e-3 * torch.empty_like(p).uniform_(generator=noise)
        paths.append(save_iterate(clf.model, folder / f"{k}.safetensors"))
    result = remove(clf, Removal.parse("heads:3.5,7.0+layers:11"))
    size = sum(p.numel() for p in clf.model.parameters())
    before, start = peak(), time.process_time()
    posterior = Posterior(dict(clf.model.named_parameters()), FileIterates(paths))
    made = time.process_time()
    mean = Prior(posterior, result.partition).mean()
    done = time.process_time()
    weights = sum(t.numel() for t in mean.values())
    print(
        f"{size:,} weights, {args.iterates} iterates ({args.iterates * size * 4 / 2**30:.1f} GiB on disk), rank "
        f"{posterior.rank}: posterior {made - start:.1f} s, conditional mean of {weights:,} weights "
        f"{done - made:.1f} s (CPU, {args.threads} thread); peak {peak():.2f} GiB, "
        f"of it {before:.2f} GiB before"
    )
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
