"""headviz next to other ways to the same numbers: ``python -m bench.peers --model DIR --data DIR``.

``--model`` is an encoder's folder (a MiniLM, say), on which a fresh head is put; ``--data`` holds GLUE's folders. On
MRPC and SST-2, in interleaved pairs of one process, one thread, processor seconds:

maps      the maps of all heads of one text: Captum's LayerConductance with 50 steps, layer by layer
table     what each head costs: a hook on the input of W_O, texts sorted by length, batches of 32, a pass for each head;
          some passes are timed and counted for all. And the same passes by nnsight, where that is installed
evaluate  one pass over the data: transformers' pipeline in batches of 32

Each side runs once to warm up, then both in turn. A line has the medians, the median ratio of the pairs, and the lowest
and highest ratio.
"""

from __future__ import annotations

import argparse
import copy
import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer, pipeline
from transformers.pipelines.pt_utils import KeyDataset

import headviz
from headviz.analyses.ablation import ablate
from headviz.attribution.walk import Walk

from .conductance_speed import captum_all_layers

TASKS = {"mrpc": "MRPC", "sst2": "SST-2"}
BATCH = 32
LONGEST = 128  # tokens
OFF = [(0, 1), (1, 3), (2, 5), (3, 7), (4, 9), (5, 11)]  # heads of the peers' passes: their time does not hang on it


def seconds(run: Callable[[], object]) -> float:
    begun = time.process_time()
    run()
    return time.process_time() - begun


def pairs(name: str, peer: Callable[[], object], ours: Callable[[], object], times: int, passes: float = 1.0) -> None:
    """Print both sides; the peer's time counts ``passes`` times."""
    peer()
    ours()
    rows = [(passes * seconds(peer), seconds(ours)) for _ in range(times)]
    ratios = [a / b for a, b in rows]
    a, b = (statistics.median(column) for column in zip(*rows, strict=True))
    spread = f"{min(ratios):.2f} to {max(ratios):.2f}"
    print(f"{name:<28} {a:8.2f} s  headviz {b:7.2f} s  {statistics.median(ratios):5.2f}x ({spread})", flush=True)


class Sorted:
    """Passes over the texts in the order of their lengths, heads off by a hook or by nnsight."""

    def __init__(self, model: Any, tokenizer: Any, data: headviz.Dataset) -> None:
        texts, others = list(data.texts), None if data.pairs is None else list(data.pairs)
        lengths = [len(ids) for ids in tokenizer(texts, others, truncation=True, max_length=LONGEST)["input_ids"]]
        order = sorted(range(len(texts)), key=lengths.__getitem__)
        self.model, self.size = model, model.config.hidden_size // model.config.num_attention_heads
        self.batches = []
        for start in range(0, len(order), BATCH):
            part = order[start : start + BATCH]
            pair = None if others is None else [others[i] for i in part]
            cut = {"padding": True, "truncation": True, "max_length": LONGEST, "return_tensors": "pt"}
            self.batches.append(tokenizer([texts[i] for i in part], pair, **cut))

    def cut(self, head: int) -> slice:
        return slice(head * self.size, (head + 1) * self.size)

    @torch.inference_mode()
    def by_hook(self, heads: Sequence[tuple[int, int]]) -> None:
        def gate(cut: slice, module: Any, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
            x = inputs[0].clone()
            x[..., cut] = 0
            return (x,)

        for layer, head in heads:
            output = self.model.bert.encoder.layer[layer].attention.output.dense
            hook = output.register_forward_pre_hook(partial(gate, self.cut(head)))
            for batch in self.batches:
                self.model(**batch)
            hook.remove()

    @torch.no_grad()
    def by_nnsight(self, wrapped: Any, heads: Sequence[tuple[int, int]]) -> None:
        for layer, head in heads:
            cut, output = self.cut(head), wrapped.bert.encoder.layer[layer].attention.output.dense
            for batch in self.batches:
                with wrapped.trace(**batch):
                    output.input[..., cut] = 0
                    wrapped.classifier.output.save()


def compare(task: str, args: argparse.Namespace) -> None:
    data = headviz.load_task(task, data=args.data / TASKS[task], limit=args.examples)
    tokenizer = AutoTokenizer.from_pretrained(args.model)
    torch.manual_seed(0)
    names = dict(enumerate(data.label_names))
    plain = AutoModelForSequenceClassification.from_pretrained(args.model, num_labels=len(names), id2label=names).eval()
    clf = headviz.wrap(plain, tokenizer, "MiniLM")
    pair = None if data.pairs is None else data.pairs[0]
    encoding = clf.encode([data.texts[0]], None if pair is None else [pair])[0]
    print(f"{task}: {len(data)} examples; the text of the maps has {len(encoding)} tokens; {torch.__version__}")

    eager = copy.deepcopy(plain)
    eager.set_attn_implementation("eager")  # Captum takes modules whose outputs are all tensors
    walk = Walk(clf, [encoding], [0], None)
    pairs(
        "maps: Captum, 50 steps",
        lambda: captum_all_layers(eager, walk),
        lambda: headviz.conductance(clf, data.texts[0], pair, target=0, cache=False),
        args.times,
    )
    some = data.subset(range(args.table))
    passes, every = Sorted(plain, tokenizer, some), clf.num_layers * clf.num_heads + 1
    own = {"passes": every / len(OFF), "times": args.times}
    pairs("table: sorted hook", lambda: passes.by_hook(OFF), lambda: ablate(clf, some), **own)
    if find_spec("nnsight") is not None:
        wrapped = import_module("nnsight").NNsight(plain)
        pairs("table: nnsight", lambda: passes.by_nnsight(wrapped, OFF), lambda: ablate(clf, some), **own)
    answer = pipeline("text-classification", model=plain, tokenizer=tokenizer, device="cpu")
    rows = [
        {"row": text if data.pairs is None else {"text": text, "text_pair": data.pairs[i]}}
        for i, text in enumerate(data.texts)
    ]
    pairs(
        "evaluate: pipeline",
        lambda: list(answer(KeyDataset(rows, "row"), batch_size=BATCH, truncation=True)),
        lambda: headviz.evaluate(clf, data),
        args.times,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--tasks", default=",".join(TASKS))
    parser.add_argument("--examples", type=int, default=200, help="of the evaluation")
    parser.add_argument("--table", type=int, default=40, help="examples of the table")
    parser.add_argument("--times", type=int, default=3)
    args = parser.parse_args()
    torch.set_num_threads(1)
    for task in args.tasks.split(","):
        compare(task, args)


if __name__ == "__main__":
    main()
