"""All layers' conductance maps against Captum's LayerConductance called layer by layer, side by side in one run.

    python bench/conductance_speed.py [--layers 12] [--hidden 768] [--tokens 32] [--batch 1,4] [--steps 12]

Random BERT weights. ``--steps`` is the fewest whose error on real weights is no larger than Captum's at its default
of 50 (see conductance_convergence.py). Processor time is reported besides wall time, because it does not depend on
what else the machine does. ``--growth`` measures how time grows with tokens, steps and examples instead.
"""

import argparse
import time
from collections.abc import Callable

import numpy as np
import torch
from captum.attr import LayerConductance
from torch.utils.flop_counter import FlopCounterMode
from transformers import BertConfig, BertForSequenceClassification

from headviz.attention import NAME
from headviz.attribution.integration import sweep
from headviz.attribution.rules import PathOptions
from headviz.attribution.walk import Walk
from headviz.heads import HeadMask
from headviz.models.classifier import Classifier, Encoding
from headviz.scores.map_values import correlations


class Words:
    """What the classifier asks of a tokenizer here."""

    pad_token_id = 0
    model_max_length = 512


def model(args: argparse.Namespace) -> BertForSequenceClassification:
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=1000,
        hidden_size=args.hidden,
        num_hidden_layers=args.layers,
        num_attention_heads=args.heads,
        intermediate_size=4 * args.hidden,
        attn_implementation="eager",
    )
    return BertForSequenceClassification(config).eval()


def encodings(count: int, tokens: int) -> list[Encoding]:
    rng = np.random.default_rng(0)
    special = [i in (0, tokens - 1) for i in range(tokens)]
    return [
        Encoding([1, *rng.integers(5, 1000, tokens - 2).tolist(), 2], [0] * tokens, False, special)
        for _ in range(count)
    ]


def timed(run: Callable[[], object], repeats: int = 1) -> tuple[float, float]:
    """(wall, processor) seconds, the best of the repeats."""
    best = (float("inf"), float("inf"))
    for _ in range(repeats):
        wall, own = time.perf_counter(), time.process_time()
        run()
        best = min(best, (time.perf_counter() - wall, time.process_time() - own), key=lambda x: x[1])
    return best


def captum_all_layers(plain: BertForSequenceClassification, walk: Walk, steps: int = 50) -> None:
    names = list(walk.batch)

    def logits(x: torch.Tensor, *rest: torch.Tensor) -> torch.Tensor:
        return plain(inputs_embeds=x, **dict(zip(names, rest, strict=True))).logits

    for layer in plain.bert.encoder.layer:
        LayerConductance(logits, layer.attention.self).attribute(
            walk.end, walk.start, target=0, additional_forward_args=tuple(walk.batch.values()), n_steps=steps
        )


def classifier(plain: BertForSequenceClassification) -> Classifier:
    import copy

    own = copy.deepcopy(plain)
    own.set_attn_implementation(NAME)
    config = own.config
    return Classifier(own, Words(), HeadMask.full(config.num_hidden_layers, config.num_attention_heads))


def compare(args: argparse.Namespace) -> None:
    plain = model(args)
    clf = classifier(plain)
    modes = {
        f"headviz, {args.steps} steps": PathOptions(args.steps),
        f"preview: {args.preview} steps, bfloat16": PathOptions(args.preview, precision="bfloat16"),
    }
    print(
        f"{args.layers}×{args.heads}×{args.hidden}, {args.tokens} tokens, "
        f"{torch.get_num_threads()} threads, {torch.__version__}"
    )
    arithmetic(args)
    for size in (int(b) for b in args.batch.split(",")):
        texts = encodings(size, args.tokens)
        walk = Walk(clf, texts, [0] * size, None)
        for options in modes.values():  # warm up
            sweep(clf, texts, [0] * size, options)
        captum = timed(lambda walk=walk: captum_all_layers(plain, walk))
        print(
            f"batch {size}: Captum, 50 steps, {args.layers} layers: {captum[0]:.2f} s wall, {captum[1]:.2f} s processor"
        )
        fine = sweep(clf, texts, [0] * size, PathOptions(64))
        for name, options in modes.items():
            wall, own = timed(lambda o=options, t=texts: sweep(clf, t, [0] * len(t), o), args.repeats)
            result = sweep(clf, texts, [0] * size, options)
            rank = np.mean([agreement(f.attribution, g.attribution) for f, g in zip(result, fine, strict=True)])
            print(
                f"batch {size}: {name}: {wall:.3f} s wall, {own:.3f} s processor; "
                f"{captum[0] / wall:.0f}× wall, {captum[1] / own:.0f}× processor; "
                f"rank agreement with 64 steps {rank:.4f}",
                flush=True,
            )


def arithmetic(args: argparse.Namespace) -> None:
    """How many times as many multiplications Captum's way takes, at a quarter of the width: no kernel changes it."""
    narrow = argparse.Namespace(**{**vars(args), "hidden": args.hidden // 4})
    plain = model(narrow)
    clf, texts = classifier(plain), encodings(1, args.tokens)
    walk = Walk(clf, texts, [0], None)
    clf.model.requires_grad_(True)  # with torch's own products, which the counter knows
    counted = []
    for run in (lambda: captum_all_layers(plain, walk), lambda: sweep(clf, texts, [0], PathOptions(args.steps))):
        with FlopCounterMode(display=False) as counter:
            run()
        counted.append(counter.get_total_flops())
    print(f"arithmetic: Captum's way takes {counted[0] / counted[1]:.1f} times as much as {args.steps} steps do")


def agreement(a: np.ndarray, b: np.ndarray) -> float:
    flat = (a.shape[0] * a.shape[1], -1)
    return float(np.nanmean(correlations(a.reshape(flat), b.reshape(flat), ["spearman"])["spearman"]))


def growth(args: argparse.Namespace) -> None:
    """Seconds against tokens, steps and examples."""
    clf = classifier(model(args))
    print(f"{args.layers}×{args.heads}×{args.hidden}, {torch.get_num_threads()} threads; processor seconds")
    for tokens in (16, 32, 64, 128, 256, 512):
        texts = encodings(1, tokens)
        took = timed(lambda t=texts: sweep(clf, t, [0], PathOptions(4)))[1]
        maps = sweep(clf, texts, [0], PathOptions(2))[0]
        a, b = (x.reshape(args.layers * args.heads, -1) for x in (maps.attention, maps.attribution))
        ranks = timed(lambda a=a, b=b: correlations(a, b))[1]
        print(
            f"tokens {tokens:>3}: {took / 5:.3f} s per node, {1000 * took / 5 / tokens:.2f} ms per node and token; "
            f"all correlations {ranks:.3f} s",
            flush=True,
        )
    for steps in (8, 16, 32, 64):
        took = timed(lambda s=steps: sweep(clf, encodings(1, 32), [0], PathOptions(s)), args.repeats)[1]
        print(f"steps {steps:>3}: {took:.3f} s, {1000 * took / (steps + 1):.1f} ms per node", flush=True)
    for count in (1, 4, 16):
        took = timed(lambda c=count: sweep(clf, encodings(c, 32), [0] * c, PathOptions(16)))[1]
        print(f"examples {count:>3}: {took:.3f} s, {1000 * took / count:.0f} ms each", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--heads", type=int, default=12)
    parser.add_argument("--hidden", type=int, default=768)
    parser.add_argument("--tokens", type=int, default=32)
    parser.add_argument("--batch", default="1,4")
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--preview", type=int, default=8)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--growth", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    growth(args) if args.growth else compare(args)


if __name__ == "__main__":
    main()
