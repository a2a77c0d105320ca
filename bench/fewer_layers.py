"""A smaller dense model instead of a pruned one: the encoder cut to its first layers and fine-tuned in the same way.

    python -m bench.fewer_layers ENCODER WHOLE DATA --task sst2 --layers 4,3,2 --pruned FOLDER … --out WORK

WHOLE is the fine-tuned model that all are compared with; WORK gets the models, and ``rows.jsonl``: for each model,
runtime and shape of batches the speed in interleaved pairs, and with the first shape the metric on dev; with intervals.
With ``--taught`` the fewer layers also learn WHOLE's answers, as pruned models do. What is there already is not made
again. Options after ``--`` are those of ``headviz finetune``, for the training of the fewer layers.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModel, AutoTokenizer

import headviz
from headviz.commands.finetune import add_training, training_options
from headviz.pruning.finetuning import fine_tune, head_labels
from headviz.pruning.trainer import Teacher

SHAPES = ((1, 32), (32, 32), (1, 128), (8, 128), (32, 128))


def cut(encoder: str, layers: int, folder: Path) -> None:
    """The encoder's first layers, as a model of their own."""
    model = AutoModel.from_pretrained(encoder, num_hidden_layers=layers)
    model.save_pretrained(folder)
    AutoTokenizer.from_pretrained(encoder).save_pretrained(folder)


def trained(bare: Path, folder: Path, args: argparse.Namespace, training: Sequence[str]) -> None:
    """Fine-tune the cut encoder on the labels and, if it is taught, on what the whole model answers."""
    parser = argparse.ArgumentParser(prog="options after --")
    add_training(parser)
    options = training_options(parser.parse_args(training), None)
    train = headviz.load_task(args.task, split="train", data=args.data)
    clf = headviz.load(bare, device="cpu", fresh_labels=head_labels(train), seed=0)
    teacher = Teacher(headviz.load(args.whole, device="cpu")) if args.taught else None
    place = folder.parent / f".{folder.name}-training"
    result = fine_tune(clf, train, options, teacher=teacher, folder=place)
    result.classifier.save(folder)
    shutil.rmtree(place)


def rows(whole: str, small: Path, data: Any, threads: int) -> Iterator[dict[str, Any]]:
    torch.set_num_threads(threads)
    clf = headviz.load(whole, device="cpu")
    for number, (batch, length) in enumerate(SHAPES):
        result = headviz.runtimes(clf, small, None if number else data, batch=batch, length=length)
        for row in result.rows:
            yield {"folder": str(small), "batch": batch, "length": length, "threads": threads, **asdict(row)}


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("encoder")
    parser.add_argument("whole")
    parser.add_argument("data")
    parser.add_argument("--task", default="sst2")
    parser.add_argument("--layers", default="", help="4,3,2")
    parser.add_argument("--taught", action="store_true", help="the fewer layers learn WHOLE's answers, too")
    parser.add_argument("--pruned", nargs="*", default=[], help="folders of pruned models")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--threads", default="1", help="1,2; empty = nothing is timed")
    at = arguments.index("--") if "--" in arguments else len(arguments)
    args, training = parser.parse_args(arguments[:at]), list(arguments[at + 1 :])
    folders = [Path(one) for one in args.pruned]
    for layers in filter(None, args.layers.split(",")):
        bare, folder = args.out / f"encoder-{layers}", args.out / f"layers-{layers}{'-taught' if args.taught else ''}"
        if not (bare / "tokenizer_config.json").exists():  # what is written last
            cut(args.encoder, int(layers), bare)
        if not (folder / "config.json").exists():
            trained(bare, folder, args, training)
        folders.append(folder)
    kept = args.out / "rows.jsonl"
    there = [json.loads(line) for line in kept.read_text().splitlines()] if kept.exists() else []
    data = headviz.load_task(args.task, split="dev", data=args.data)
    for folder in folders:
        for threads in map(int, filter(None, args.threads.split(","))):
            if any((one["folder"], one["threads"]) == (str(folder), threads) for one in there):
                continue
            lines = "".join(json.dumps(one) + "\n" for one in rows(args.whole, folder, data, threads))
            with kept.open("a") as file:
                file.write(lines)
            print(f"{folder}, {threads} threads: in {kept}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
