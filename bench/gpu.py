"""How long the work on a GPU takes, in one run: equality first, then a table of times, then where a sweep's time goes.

    python bench/gpu.py [--tiny] [--device cuda] [--only ROW,ROW] [--out FOLDER]

BERT-base with random weights; made-up pairs with the lengths of MNLI's (38 tokens on average); nothing is cached.
"limit" is the arithmetic of the matrix products alone at the rate that the card reaches in one large product of that
precision, measured in the same run. A row that fails prints its error, and the next one begins. ``--tiny`` tries the
script itself with small numbers, on a processor as well.

Measured on one NVIDIA H100 80GB HBM3 with 16 cores, torch 2.11, transformers 5.17; products of 8192×8192 at 51
(float32), 377 to 401 (TF32) and 720 to 769 (bfloat16) TFLOP/s. Seconds; the limit in brackets. Times of one row differ
by a tenth or so from run to run; where there are two, they are of two runs.

    all maps of one pair, 27 tokens, 12 steps      float32 .0138, .0152 (.0024); TF32 .0076, .0078 (.0003)
    demo: maps of one pair, 12 steps               TF32 .0076, .0060
    conductance-spearman, 512 examples             float32 3.98 (2.21); TF32 1.72 (.28)
    conductance-kendall, 512 examples              TF32 2.23 (.28)
    attattr-max, 512 examples                      TF32 7.93 (1.39)
    taylor, gim, hies, gnorm, 512 examples         float32 .64, .77, .71, .74 (.13)
    one head off, 2,000 pairs, mean over layers    float32 .147 (.143); TF32 .047 (.019); bfloat16 .032 (.010)
    evaluate, 2,000 pairs, with tokenizing         bfloat16 .164 (.019)
    demo: one head off, 2,600 pairs                TF32 .026

A pair is one recorded pass: 3.4 ms of kernels in TF32, started by one call, 5 copies back and 3 waits; what is left is
the host's: tokenizing, cutting the maps. Without a record its 878 launches took 42 ms. The first use of a length took
.08 to .34 s; it has no progress of its own, because it is over before a
page says that it computes (.7 s). A head off is at the limit in float32; in bfloat16 more than half are passes over
memory (copies into groups of similar length, biases, norms). The demo's toggle waits for the host to start some 420
kernels: it would have to be recorded as well. AttAttr's time and limit are from before it left out the layers below the
scaled one, which it then computed again for every point; its limit here is lower now.

Not measured since the last card: AttAttr after that change, 144 heads on 1,000 pairs, the rows beside Captum, the check
of TF32 as it is now (for each method, with the order of the heads), and how long the whole script takes. Short of their
goals: one pair in TF32 (.0076 and .0078 of .0075; in float32 .0138) and the demo's toggle (.026 of .015).
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast

import headviz
from headviz import HeadMask
from headviz.attribution import attattr, integration
from headviz.attribution.rules import AttAttrOptions, PathOptions
from headviz.evaluation.evaluator import Evaluator, EvaluatorOptions
from headviz.models.fast.gpu import refusals
from headviz.models.fast.linear import gpu_products
from headviz.scores.scoring import score_heads
from headviz.tasks import Dataset
from headviz.tasks.catalogue import get_task

CLOCK = time.perf_counter
CHECKED = (
    *(f"conductance-{kind}" for kind in ("spearman", "kendall", "pearson", "max")),
    *("attattr-max", "taylor", "fisher", "gim", "hies", "gnorm", "ablation"),
)
DIGITS = {"float32": 1e-4, "tf32": 5e-2, "bfloat16": 4e-1}  # relative distance from float64 that a precision may have


@dataclass
class Bench:
    """What the rows share, and how they print."""

    args: argparse.Namespace
    device: torch.device
    rates: dict[str, float] = field(default_factory=dict)  # FLOP/s
    made: dict[str, Any] = field(default_factory=dict)

    def say(self, line: str) -> None:
        print(line, flush=True)
        if self.args.out:
            with (Path(self.args.out) / "gpu.txt").open("a", encoding="utf-8") as file:
                file.write(line + "\n")

    def wait(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize()

    def timed(self, run: Callable[[], object], repeats: int = 3) -> float:
        """Median seconds, after all that was asked of the device is done."""
        rows = []
        for _ in range(repeats):
            self.wait()
            start = CLOCK()
            run()
            self.wait()
            rows.append(CLOCK() - start)
        return statistics.median(rows)

    def row(self, name: str, precision: str, seconds: float, flops: float = 0.0, goal: float = 0.0) -> None:
        limit = f", limit {flops / self.rates[precision]:.4f}" if flops and precision in self.rates else ""
        asked = f", goal {goal:g}" if goal else ""
        self.say(f"{name:<44} {precision:<9} {seconds:8.4f} s{limit}{asked}")

    def size(self, usual: int, tiny: int) -> int:
        return tiny if self.args.tiny else usual

    def clf(self) -> Any:
        if "clf" not in self.made:
            self.made["clf"] = headviz.wrap(self.model().to(self.device), self.tokenizer(), "random weights")
        return self.made["clf"]

    def model(self) -> BertForSequenceClassification:
        hidden, layers = (48, 2) if self.args.tiny else (768, 12)
        torch.manual_seed(0)
        config = BertConfig(
            vocab_size=len(self.tokenizer()),
            hidden_size=hidden,
            num_hidden_layers=layers,
            num_attention_heads=4 if self.args.tiny else 12,
            intermediate_size=4 * hidden,
            initializer_range=0.05,
            id2label=dict(enumerate(get_task("mnli").label_names)),
        )
        return BertForSequenceClassification(config).eval()

    def tokenizer(self) -> PreTrainedTokenizerFast:
        if "tokenizer" not in self.made:
            from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

            special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
            pieces = [
                *special,
                *words(),
                *"abcdefghijklmnopqrstuvwxyz",
                *(f"##{c}" for c in "abcdefghijklmnopqrstuvwxyz"),
            ]
            backend = Tokenizer(
                models.WordPiece({w: i for i, w in enumerate(dict.fromkeys(pieces))}, unk_token="[UNK]")
            )
            backend.normalizer = normalizers.BertNormalizer()
            backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
            backend.post_processor = processors.TemplateProcessing(
                single="[CLS]:0 $A:0 [SEP]:0",
                pair="[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1",
                special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
            )
            names = {"unk_token": "[UNK]", "pad_token": "[PAD]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
            self.made["tokenizer"] = PreTrainedTokenizerFast(tokenizer_object=backend, model_max_length=512, **names)
        return self.made["tokenizer"]

    def data(self, count: int) -> Dataset:
        draw = random.Random(count)
        lengths = np.random.default_rng(count).lognormal(np.log(33), 0.5, count).clip(8, 125).astype(int)
        known = words()

        def text(n: int) -> str:
            return " ".join(draw.choice(known) for _ in range(max(1, n)))

        texts = tuple(text(int(n * 0.65)) for n in lengths)
        pairs = tuple(text(int(n * 0.35)) for n in lengths)
        return Dataset(get_task("mnli"), "train", texts, pairs, np.arange(count) % 3)

    def flops(self, data: Dataset) -> float:
        """Of the matrix products of one forward pass over the data, texts without padding."""
        clf = self.clf()
        lengths = Counter(len(e) for e in clf.encode(list(data.texts), list(data.pairs)))
        return sum(count * clf.cost(length=n).flops for n, count in lengths.items())


def words() -> list[str]:
    draw = random.Random(0)
    return sorted(
        {
            "".join(draw.choice("bdfgklmnprst") + draw.choice("aeiou") for _ in range(draw.randint(1, 4)))
            for _ in range(9000)
        }
    )


# what must be equal --------------------------------------------------------------------------------


def distance(result: np.ndarray, expected: np.ndarray) -> float:
    assert (np.isnan(result) == np.isnan(expected)).all(), "NaN in other places"
    wrong = np.linalg.norm(np.nan_to_num(result - expected))
    return float(wrong / max(np.linalg.norm(np.nan_to_num(expected)), 1e-300))


def equality(bench: Bench) -> None:
    """A small model in float64 on a processor is the slow oracle; a caller's setting may change nothing."""
    torch.manual_seed(1)
    config = BertConfig(
        vocab_size=len(bench.tokenizer()), hidden_size=64, num_hidden_layers=3, num_attention_heads=4,
        intermediate_size=128, initializer_range=0.3, id2label=dict(enumerate(get_task("mnli").label_names)),
    )  # fmt: skip
    plain = BertForSequenceClassification(config).eval()
    here = headviz.wrap(BertForSequenceClassification(config).eval(), bench.tokenizer(), "oracle")
    here.model.load_state_dict(plain.state_dict())
    here.model.double()
    there = headviz.wrap(plain.to(bench.device), bench.tokenizer(), "here")
    data = bench.data(bench.size(24, 6))
    encodings = there.encode(list(data.texts), list(data.pairs))
    encodings.sort(key=len)
    none = [None] * len(encodings)
    mask = HeadMask.full(3, 4).without([(0, 1), (2, 2)])
    before = torch.get_float32_matmul_precision()
    for setting in ("high",):
        torch.set_float32_matmul_precision(setting)
        for off in (None, mask):
            for precision in DIGITS:
                one = integration.sweep(here, encodings, none, PathOptions(8, precision="float32"), off)
                other = integration.sweep(there, encodings, none, PathOptions(8, precision=precision), off)
                worst = max(distance(a.attribution, b.attribution) for a, b in zip(other, one, strict=True))
                errors = max(distance(a.error, b.error) for a, b in zip(other, one, strict=True))
                single = integration.sweep(there, encodings[3:4], [None], PathOptions(8, precision=precision), off)
                again = integration.sweep(there, encodings[3:4], [None], PathOptions(8, precision=precision), off)
                alone, twice = (distance(x[0].attribution, one[3].attribution) for x in (single, again))
                told = "ok" if max(worst, alone, twice) < DIGITS[precision] else "WRONG"
                bench.say(
                    f"maps, caller's setting {setting}, {precision}: {told}: {worst:.1e}, "
                    f"alone {alone:.1e} {twice:.1e}, "
                    f"errors {errors:.1e}; same classes "
                    f"{sum(a.target == b.target for a, b in zip(one, other, strict=True))}"
                )
            one = attattr.sweep(here, encodings, none, AttAttrOptions(4, precision="float32"), off)
            other = attattr.sweep(there, encodings, none, AttAttrOptions(4, precision="float32"), off)
            worst = max(distance(a.attribution, b.attribution) for a, b in zip(other, one, strict=True))
            bench.say(f"attattr, {setting}: {'ok' if worst < 1e-4 else 'WRONG'}: {worst:.1e}")
        for name in CHECKED:
            for rows in ("all", "influential") if name == "conductance-spearman" else ("",):
                how = {"steps": 8, "precision": "float32"} if name.startswith(("conductance", "attattr")) else {}
                how |= {"rows": rows} if rows else {}
                try:
                    a, b = (score_heads(c, data, name, mask=mask, cache=False, **how).values for c in (there, here))
                    worst = distance(a, b)
                    bench.say(f"{name} {rows} {setting}: {'ok' if worst < 2e-3 else 'WRONG'}: {worst:.1e}")
                except Exception:
                    bench.say(f"{name} FAILED\n{traceback.format_exc()}")
        for precision in ("float32", "tf32", "bfloat16"):
            if bench.device.type == "cpu" and precision != "float32":
                continue
            made = Evaluator(there, data, EvaluatorOptions(precision=precision))
            oracle = Evaluator(here, data, EvaluatorOptions(precision="float32"))
            worst = max(
                distance(made.evaluate(m).logits, oracle.evaluate(m).logits)
                for m in (None, mask, mask.without([(1, 0)]))
            )
            bench.say(f"evaluator {setting} {precision}: {'ok' if worst < DIGITS[precision] else 'WRONG'}: {worst:.1e}")
        assert torch.get_float32_matmul_precision() == setting, "the caller's setting was changed"
    torch.set_float32_matmul_precision(before)


# the table -----------------------------------------------------------------------------------------


def rates(bench: Bench) -> None:
    """What the card reaches in one large matrix product."""
    n = bench.size(8192, 256)
    for precision, dtype in (("float32", torch.float32), ("tf32", torch.float32), ("bfloat16", torch.bfloat16)):
        a, b = (torch.randn(n, n, device=bench.device).to(dtype) for _ in range(2))
        with gpu_products(bench.device, precision):
            bench.timed(lambda a=a, b=b: a @ b)
            bench.rates[precision] = 2 * n**3 / bench.timed(lambda a=a, b=b: a @ b, 5)
        bench.say(f"one product of {n}×{n}, {precision}: {bench.rates[precision] / 1e12:.1f} TFLOP/s")


def one_pair(bench: Bench) -> None:
    clf, data = bench.clf(), bench.data(bench.size(200, 20))
    lengths = [len(e) for e in clf.encode(list(data.texts), list(data.pairs))]
    near = int(np.argmin(np.abs(np.array(lengths) - 27)))
    text, pair = data.texts[near], data.pairs[near]
    flops = 2 * 13 * clf.cost(length=lengths[near]).flops
    for precision in ("float32", "tf32", "auto"):

        def maps(precision: str = precision) -> Any:
            return headviz.conductance(clf, text, pair, steps=12, precision=precision, cache=False)

        first = bench.timed(maps, 1)
        bench.row(
            f"all maps of a pair, {lengths[near]} tokens, 12 steps", precision, bench.timed(maps, 15), flops, 0.0075
        )
        bench.say(
            f"  first use {first:.3f} s; as it comes: "
            f"{bench.timed(lambda: headviz.conductance(clf, text, pair, cache=False), 5):.4f} s; {maps().notes}"
        )
    if bench.device.type == "cuda":
        bench.say(f"  not recorded: {[text[:300] for text in refusals(clf.model)]}")
    profiled(bench, "one pair", lambda: headviz.conductance(clf, text, pair, steps=12, precision="tf32", cache=False))
    many = list(np.argsort(lengths)[:: max(1, len(lengths) // 40)])
    seconds = bench.timed(
        lambda: [
            headviz.conductance(clf, data.texts[i], data.pairs[i], steps=12, precision="tf32", cache=False)
            for i in many
        ],
        1,
    )
    bench.say(f"  {len(many)} pairs of all lengths one by one, first uses included: {seconds / len(many):.4f} s each")


def captum(bench: Bench) -> None:
    from conductance_speed import captum_all_layers
    from headviz.attribution.walk import Walk

    clf, data = bench.clf(), bench.data(bench.size(200, 20))
    encodings = sorted(clf.encode(list(data.texts), list(data.pairs)), key=lambda e: abs(len(e) - 27))[:1]
    plain = bench.model().to(bench.device)
    plain.set_attn_implementation("eager")
    for precision in ("float32", "tf32"):
        with gpu_products(bench.device, precision):
            walk = Walk(clf, encodings, [None], None)
            captum_all_layers(plain, walk, 10)
            bench.row(
                "Captum's LayerConductance, a pair, 50 steps",
                precision,
                bench.timed(lambda walk=walk: captum_all_layers(plain, walk), 2),
            )


def scores(bench: Bench) -> None:
    clf, data = bench.clf(), bench.data(bench.size(512, 16))
    flops = bench.flops(data)
    layers = clf.num_layers
    for name, precision, times, goal in (
        ("conductance-spearman", "tf32", 2 * 17, 2.0),
        ("conductance-spearman", "float32", 2 * 17, 6.0),
        ("conductance-kendall", "tf32", 2 * 17, 0.0),
        ("attattr-max", "tf32", 9 * (layers + 1), 4.0),
        ("taylor", "", 2, 0.0),
        ("gim", "", 2, 0.0),
        ("hies", "", 2, 0.0),
        ("gnorm", "", 2, 0.0),
    ):
        how = {"precision": precision} if precision else {}

        def run(count: int, name: str = name, how: dict = how) -> Any:
            return score_heads(clf, bench.data(count), name, cache=False, **how)

        try:
            run(bench.size(40, 8))
            seconds = bench.timed(lambda run=run: run(len(data)), 1)
            bench.row(f"{name}, {len(data)} examples", precision or "float32", seconds, times * flops, goal)
        except Exception:
            bench.say(f"{name} FAILED\n{traceback.format_exc()}")
        if bench.device.type == "cuda":
            bench.say(f"  memory at most {torch.cuda.max_memory_allocated() / 2**30:.1f} GiB")
            torch.cuda.reset_peak_memory_stats()


def sweep_profile(bench: Bench) -> None:
    clf, data = bench.clf(), bench.data(bench.size(128, 8))
    for name in ("conductance-spearman", "attattr-max"):
        run = partial(score_heads, clf, data, name, precision="tf32", cache=False)
        profiled(bench, f"{name} of {len(data)} texts", run)


def heads_off(bench: Bench) -> None:
    """All heads off one by one: between layers the work is the half of all layers on average."""
    clf, data = bench.clf(), bench.data(bench.size(1000, 24))
    flops = bench.flops(data) * clf.num_heads * (clf.num_layers + 1) / 2
    for precision, goal in (("bfloat16", 3.0), ("tf32", 0.0), ("float32", 13.0)):
        if bench.device.type == "cpu" and precision != "float32":
            continue

        def run(precision: str = precision) -> Any:
            evaluator = Evaluator(clf, data, EvaluatorOptions(precision=precision))
            return headviz.ablate(evaluator)

        first = bench.timed(
            lambda p=precision: Evaluator(clf, bench.data(100), EvaluatorOptions(precision=p)).evaluate(), 1
        )
        bench.row(
            f"{len(clf.full_mask.kept)} heads off one by one, {len(data)} pairs",
            precision,
            bench.timed(run, 1),
            flops,
            goal,
        )
        bench.say(f"  first use of the precision {first:.3f} s")


def toggles(bench: Bench) -> None:
    clf, data = bench.clf(), bench.data(bench.size(2000, 24))
    flops = bench.flops(data) * (clf.num_layers + 1) / 2 / clf.num_layers
    for precision in ("auto", "bfloat16", "tf32", "float32"):
        if bench.device.type == "cpu" and precision != "float32":
            continue
        start = CLOCK()
        evaluator = Evaluator(clf, data, EvaluatorOptions(precision=precision))
        made, start = CLOCK() - start, CLOCK()
        evaluator.evaluate()
        first, result = CLOCK() - start, []
        for layer in range(clf.num_layers):
            mask = clf.full_mask.without([(layer, 1)])
            result.append(bench.timed(lambda mask=mask, e=evaluator: e.evaluate(mask, keep=False), 1))
        bench.row(
            f"one head off, {len(data)} pairs, mean over layers",
            evaluator.precision,
            statistics.mean(result),
            flops,
            0.06,
        )
        bench.say(
            f"  asked: {precision}; made in {made:.3f} s, full evaluation {first:.3f} s, "
            f"layers {[round(1000 * s, 1) for s in result]} ms"
        )
        if precision == "bfloat16":
            evaluator.clear()
            profiled(
                bench, "toggle of layer 0", lambda e=evaluator: e.evaluate(clf.full_mask.without([(0, 2)]), keep=False)
            )


def evaluation(bench: Bench) -> None:
    clf, data = bench.clf(), bench.data(bench.size(2000, 24))
    for precision in ("bfloat16", "tf32", "float32", "auto"):
        if bench.device.type == "cpu" and precision != "float32":
            continue
        seconds = bench.timed(lambda p=precision: headviz.evaluate(clf, data, precision=p), 3)
        bench.row(f"evaluate, {len(data)} pairs, with tokenizing", precision, seconds, bench.flops(data), 0.54)
    seconds = bench.timed(lambda: clf.encode(list(data.texts), list(data.pairs)), 3)
    by_hand = bench.timed(lambda: bench.tokenizer()(list(data.texts), list(data.pairs)), 3)
    bench.say(f"  tokenizing alone {seconds:.3f} s; by hand {by_hand:.3f} s")


def demo(bench: Bench) -> None:
    clf, data = headviz.load("demo", device=str(bench.device)), headviz.load_task("demo", limit=bench.size(2600, 24))
    evaluator = Evaluator(clf, data)
    evaluator.evaluate()
    result, compared = [], []
    for layer in range(0, 12, 1 if not bench.args.tiny else 6):
        mask = clf.full_mask.without([(layer, 1)])
        result.append(bench.timed(lambda mask=mask: evaluator.evaluate(mask), 1))
        mask = clf.full_mask.without([(layer, 2)])
        compared.append(bench.timed(lambda mask=mask: evaluator.compare(mask), 1))
    bench.row(f"demo: one head off, {len(data)} pairs", evaluator.precision, statistics.mean(result), 0, 0.015)
    bench.say(
        f"  compared with all uncertainty {statistics.mean(compared):.4f} s; "
        f"layers {[round(1000 * s, 1) for s in result]} ms"
    )
    text, pair = data.texts[0], data.pairs[0]
    for precision in ("auto", "float32"):
        first = bench.timed(
            lambda p=precision: headviz.conductance(clf, text, pair, steps=12, precision=p, cache=False), 1
        )
        seconds = bench.timed(
            lambda p=precision: headviz.conductance(clf, text, pair, steps=12, precision=p, cache=False), 9
        )
        bench.row("demo: maps of a pair, 12 steps", precision, seconds, 0, 0.008)
        as_it_comes = bench.timed(lambda p=precision: headviz.conductance(clf, text, pair, precision=p, cache=False), 5)
        bench.say(f"  first use {first:.3f} s; as it comes {as_it_comes:.4f} s")
    profiled(bench, "demo toggle", lambda: evaluator.evaluate(clf.full_mask.without([(1, 5)])))


def profiled(bench: Bench, name: str, run: Callable[[], object]) -> None:
    """How often the host starts something, copies and waits; and what takes the time on either side."""
    from torch.profiler import ProfilerActivity, profile

    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if bench.device.type == "cuda" else [])]
    bench.wait()
    with profile(activities=activities) as result:
        start = CLOCK()
        run()
        bench.wait()
        wall = CLOCK() - start
    table = result.key_averages()
    count = {e.key: e.count for e in table}

    def total(*parts: str) -> int:
        return sum(n for key, n in count.items() if any(part in key for part in parts))

    kernels = [e for e in table if not e.key.startswith(("aten::", "Memcpy", "Memset"))]  # an operator's are its own
    gpu = sum(e.self_device_time_total for e in kernels) / 1e6
    bench.say(
        f"profile, {name}: {wall:.4f} s of wall (profiled), {gpu:.4f} s of kernels; launches "
        f"{total('cudaLaunchKernel', 'cuLaunchKernel', 'cudaLaunchKernelExC')}, graphs {total('cudaGraphLaunch')}, "
        f"copies to the host {total('Memcpy DtoH')}, to the device {total('Memcpy HtoD')}, "
        f"waits {total('cudaStreamSynchronize', 'cudaEventSynchronize', 'cudaDeviceSynchronize')}"
    )
    for e in sorted(kernels, key=lambda e: -e.self_device_time_total)[:10]:
        bench.say(f"    {e.self_device_time_total / 1e3:9.2f} ms {e.count:6d}× {e.key[:90]}")
    for e in sorted(table, key=lambda e: -e.self_cpu_time_total)[:6]:
        bench.say(f"    host {e.self_cpu_time_total / 1e3:9.2f} ms {e.count:6d}× {e.key[:80]}")


ROWS = (rates, equality, one_pair, demo, scores, toggles, evaluation, heads_off, sweep_profile, captum)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--tiny", action="store_true", help="small numbers: tries the script itself")
    parser.add_argument("--only", default=",".join(row.__name__ for row in ROWS), help="rows, separated by commas")
    parser.add_argument("--out", help="a folder that gets the lines as well")
    args = parser.parse_args()
    bench, begun = Bench(args, torch.device(args.device)), CLOCK()
    sys.path.insert(0, str(Path(__file__).parent))
    card = torch.cuda.get_device_name(bench.device) if bench.device.type == "cuda" else "a processor"
    import transformers

    bench.say(
        f"{card}, torch {torch.__version__}, transformers {transformers.__version__}, {torch.get_num_threads()} threads"
    )
    lengths = [len(e) for e in bench.clf().encode(*map(list, (bench.data(500).texts, bench.data(500).pairs or ())))]
    bench.say(f"{np.mean(lengths):.1f} tokens on average, at most {max(lengths)}")
    for row in ROWS:
        if row.__name__ not in args.only.split(","):
            continue
        try:
            row(bench)
        except Exception:
            bench.say(f"{row.__name__} FAILED\n{traceback.format_exc()}")
        bench.say(f"-- {row.__name__} done at {CLOCK() - begun:.1f} s")


if __name__ == "__main__":
    main()
