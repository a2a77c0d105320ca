"""How much faster is the evaluator than what people write today? BERT-base size, MNLI pairs, every single head.

    python bench/toggles.py --data GLUE/MNLI [--tokenizer FOLDER] [--heads 144] [--table]

The other side: transformers' own model in float32, texts padded to 128 tokens in batches of 32, one full forward
pass per mask, the mask set by a hook on W_O's input. Its time does not depend on the mask, so it is measured for a
few masks, before, between and after ours; the logits of both sides are compared. Weights are random: speed does not
depend on them. Prints ratios, which is what counts on a shared machine.
"""

from __future__ import annotations

import argparse
import statistics
import time

import numpy as np
import torch
from transformers import AutoTokenizer, BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast

import headviz
from headviz import HeadMask
from headviz.analyses.ablation import ablate
from headviz.evaluation.evaluator import Evaluator, EvaluatorOptions
from headviz.models.fast.linear import bfloat16_here
from headviz.tasks import Dataset

LABELS = ("entailment", "neutral", "contradiction")
LENGTH, BATCH = 128, 32
CLOCK = time.perf_counter


def tokenizer_from(texts: list[str]) -> PreTrainedTokenizerFast:
    """WordPiece of BERT's size, learnt from the texts themselves: realistic lengths without a download."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

    backend = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    backend.normalizer = normalizers.BertNormalizer()
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    backend.train_from_iterator(texts, trainers.WordPieceTrainer(vocab_size=30522, special_tokens=special))
    backend.post_processor = processors.TemplateProcessing(
        single="[CLS]:0 $A:0 [SEP]:0",
        pair="[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    names = {"unk_token": special[1], "pad_token": special[0], "cls_token": special[2], "sep_token": special[3]}
    return PreTrainedTokenizerFast(tokenizer_object=backend, model_max_length=512, **names)


class Today:
    """The usual way, written as one would."""

    def __init__(self, model: BertForSequenceClassification, tokenizer, data: Dataset) -> None:
        self.model, self.mask = model, HeadMask.full(12, 12)
        self.batches = []
        for start in range(0, len(data), BATCH):
            part = slice(start, start + BATCH)
            options = {
                "padding": "max_length",
                "truncation": True,
                "max_length": LENGTH,
                "return_tensors": "pt",
                "return_token_type_ids": True,
            }
            self.batches.append(tokenizer(list(data.texts[part]), list(data.pairs[part]), **options))
        for number, layer in enumerate(model.bert.encoder.layer):
            layer.attention.output.dense.register_forward_pre_hook(self._hook(number))

    def _hook(self, number: int):
        def gate(module: torch.nn.Module, inputs: tuple[torch.Tensor]) -> tuple[torch.Tensor]:
            off = self.mask.off_in(number)
            if not off:
                return inputs
            x = inputs[0].clone()
            for head in off:
                x[..., head * 64 : (head + 1) * 64] = 0
            return (x,)

        return gate

    @torch.inference_mode()
    def evaluate(self, mask: HeadMask) -> tuple[np.ndarray, float]:
        start = CLOCK()
        self.mask = mask
        logits = torch.cat([self.model(**batch).logits for batch in self.batches]).numpy()
        return logits, CLOCK() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, help="folder with MNLI's dev_matched.tsv")
    parser.add_argument("--tokenizer")
    parser.add_argument("--limit", type=int, default=256)
    parser.add_argument("--heads", type=int, default=144, help="how many of the 144 toggles, evenly spread")
    parser.add_argument("--precisions", default="float32,bfloat16")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--table", action="store_true", help="the whole ablation table as well")
    parser.add_argument("--cpu-time", action="store_true", help="for a busy machine; means little with several threads")
    args = parser.parse_args()
    if args.cpu_time:
        global CLOCK
        CLOCK = time.process_time
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)

    data = headviz.load_task("mnli", data=args.data, limit=args.limit)
    tokenizer = (
        AutoTokenizer.from_pretrained(args.tokenizer) if args.tokenizer else tokenizer_from([*data.texts, *data.pairs])
    )
    names = dict(enumerate(LABELS))
    config = BertConfig(num_labels=3, id2label=names, label2id={v: k for k, v in names.items()})
    model = BertForSequenceClassification(config).eval()
    clf = headviz.wrap(model, tokenizer, "BERT-base, random")
    lengths = [len(e) for e in clf.encode(list(data.texts), list(data.pairs))]
    print(
        f"{len(data)} pairs, {np.mean(lengths):.1f} tokens on average, at most {max(lengths)}; {args.threads} threads"
    )

    full = HeadMask.full(12, 12)
    heads = [divmod(int(i), 12) for i in np.linspace(0, 143, args.heads).round()]
    today = Today(model, tokenizer, data)
    today.evaluate(full)  # warm-up
    theirs: list[float] = []
    short = np.array(lengths) <= LENGTH  # the others are cut by padding to 128

    def other_side() -> np.ndarray:
        logits, seconds = today.evaluate(full.without([(3, 5)]))
        theirs.append(seconds)
        return logits

    expected = other_side()
    for precision in args.precisions.split(","):
        if precision == "bfloat16" and not bfloat16_here(torch.device("cpu")):
            print("bfloat16: not on this processor")
            continue
        evaluator = Evaluator(clf, data, EvaluatorOptions(precision=precision))
        start = CLOCK()
        evaluator.evaluate()
        whole = CLOCK() - start
        seconds, last = [], []
        for head in heads:
            start = CLOCK()
            evaluator.evaluate(full.without([head]))
            seconds.append(CLOCK() - start)
            if head[0] == 11:
                last.append(seconds[-1])
        other_side()
        base = statistics.mean(theirs[-2:])
        gap = np.abs(evaluator.evaluate(full.without([(3, 5)])).logits - expected)[short].max()
        mean, tail = float(np.mean(seconds)), float(np.mean(last))
        print(f"{precision}: today {base:.2f} s; first full evaluation {whole:.2f} s")
        print(f"  mean toggle {mean:.3f} s -> {base / mean:.1f}x")
        print(f"  last-layer toggles {1000 * tail:.1f} ms -> {base / tail:.0f}x")
        print(f"  states {evaluator.memory / 2**20:.0f} MiB; largest difference of a logit {gap:.1e}", flush=True)
        if precision != "float32":
            result = evaluator.agreement()
            print(f"  predictions as in float32: {result.same} of {result.n}, logits within {result.largest:.1e}")
        if args.table:
            fresh = Evaluator(clf, data, EvaluatorOptions(precision=precision))
            start = CLOCK()
            ablate(fresh)
            spent = CLOCK() - start
            other_side()
            base = statistics.mean(theirs[-2:])
            print(f"  ablation table {spent:.0f} s against 145 × {base:.2f} s -> {145 * base / spent:.1f}x", flush=True)


if __name__ == "__main__":
    main()
