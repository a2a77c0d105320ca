"""What the sources ask besides, on the demo: controls.json and controls.md.

    python -m study.controls [--work FOLDER] [--only-page]

Orders of heads from the pre-trained encoder's masked-language head (thesis, §7.2), maps of heads between iterations
(thesis, §6.5.3), the two regimes of training (Michel et al., §6), Taylor and `gim` on as many examples as the time of
`gates` allows, and scores that were measured with labels drawn at random. The demo is a BERT of 144 heads that was
trained on a made language: a demonstration. Every part is kept when it is done; the same command goes on.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.stats import spearmanr

import headviz
from headviz.analyses.grading import Half
from headviz.demo import DATA
from headviz.heads import HeadId, lowest
from headviz.scores.masked_words import masked_lm_scores
from study.tables import table
from tools.demo.corpus import generate
from tools.demo.ship import short_share

PAGE = Path(__file__).with_suffix(".md")
FILE = PAGE.with_suffix(".json")
SEEDS = range(3)  # samples that a score is measured on
ORDERS = 10  # random ones
DEV, SAMPLE, TEXTS = 300, 100, 12
PILOT = 4000  # examples that the time of one is measured on; on few, most of it is the start
ITERATIONS = 9  # of a tenth of the heads
PARTS: dict[str, Callable[[], dict[str, Any]]] = {}
Areas = NDArray[np.float64]  # [1 + draws]


def part(compute: Callable[[], dict[str, Any]]) -> Callable[[], dict[str, Any]]:
    PARTS[compute.__name__] = compute
    return compute


def examples(split: str, n: int, seed: int = 0) -> Any:
    return headviz.sample(headviz.load_task("demo", split=split), n, seed=seed)


def many(n: int, seed: int) -> Any:
    """So many training pairs, made with the grammar: the demo's sample has 2,600."""
    rows, data = list(generate("train", n, seed, short_share())), headviz.load_task("demo", split="train")
    labels = np.array([data.label_names.index(row.label) for row in rows])
    pairs = {"texts": tuple(row.premise for row in rows), "pairs": tuple(row.hypothesis for row in rows)}
    return replace(data, labels=labels, slices=tuple(row.phenomenon for row in rows), **pairs)


def area(half: Half, values: NDArray) -> Areas:
    """The mean share that is left at 10 to 90 % of the heads off, of the examples and of each draw of them."""
    curves = half.curves(half.evaluator.clf.full_mask, np.asarray(values, dtype=float), None)
    return np.mean([half.left(curve).mean(axis=0) for curve in curves], axis=0)


def at_random(half: Half, orders: int = ORDERS) -> NDArray:
    shape = half.evaluator.clf.num_layers, half.evaluator.clf.num_heads
    return np.array([area(half, np.random.default_rng((9, seed)).random(shape)) for seed in range(orders)])


def ahead(ours: NDArray, theirs: NDArray) -> list[float]:
    """Mean lead of some orders over others, with 95 %: examples are drawn again, and so are the orders of both."""
    rng = np.random.default_rng(0)
    draws = []
    for k in range(1, ours.shape[1]):
        a, b = (x[rng.integers(0, len(x), len(x)), k].mean() for x in (ours, theirs))
        draws.append(a - b)
    return [float(ours[:, 0].mean() - theirs[:, 0].mean()), *map(float, np.nanquantile(draws, [0.025, 0.975]))]


def of_scores(half: Half, tables: dict[str, list[NDArray]], against: dict[str, NDArray]) -> dict[str, Any]:
    """By score its mean area, and its lead over each of the others."""
    known = {name: np.array([area(half, values) for values in some]) for name, some in tables.items()}
    every = known | against
    leads = {name: {other: ahead(known[name], every[other]) for other in every if other != name} for name in known}
    return {"areas": {name: float(x[:, 0].mean()) for name, x in every.items()}, "leads": leads}


@part
def grids() -> dict[str, Any]:
    """Agreement of attention and attribution of every head: at masked words before fine-tuning, at the task after."""
    clf, mlm = headviz.load("demo", device="cpu"), headviz.load(DATA / "pretrained", masked_lm=True, device="cpu")
    score, known = "conductance-spearman", {}
    samples = [examples("train", SAMPLE, seed) for seed in (0, 1)]
    for name, tables in (
        ("masked words, before", [masked_lm_scores(mlm, sample, score, seed=0).values for sample in samples]),
        ("the task, after", [headviz.score_heads(clf, sample, score, cache=False).values for sample in samples]),
    ):
        size = np.abs(tables[0])
        known[name] = {
            "mean": float(tables[0].mean()),
            "size": float(size.mean()),
            "bands": [float(((size >= low) & (size < low + 0.2)).mean()) for low in (0.0, 0.2, 0.4, 0.6, 0.8)],
            "again": float(spearmanr(tables[0].ravel(), tables[1].ravel()).statistic),
        }
    return known


@part
def masked_words() -> dict[str, Any]:
    """Orders that the pre-trained encoder gives at its own task, on the fine-tuned model."""
    clf, mlm = headviz.load("demo", device="cpu"), headviz.load(DATA / "pretrained", masked_lm=True, device="cpu")
    half = Half(clf, examples("dev", DEV))
    tables: dict[str, list[NDArray]] = {}
    for seed in SEEDS:
        sample = examples("train", SAMPLE, seed)
        for score in ("taylor", "conductance-spearman"):
            at_words = masked_lm_scores(mlm, sample, score, seed=seed).values
            own = headviz.score_heads(clf, sample, score, cache=False).values
            tables.setdefault(f"{score}, masked words", []).append(at_words)
            tables.setdefault(f"{score}, the task", []).append(own)
    alike = {
        score: [
            float(spearmanr(a.ravel(), b.ravel()).statistic)
            for a, b in zip(tables[f"{score}, masked words"], tables[f"{score}, the task"], strict=True)
        ]
        for score in ("taylor", "conductance-spearman")
    }
    return {**of_scores(half, tables, {"random": at_random(half)}), "rank_correlation": alike}


@part
def equal_time() -> dict[str, Any]:
    """Taylor and gim on as many examples as the processor time of gates on 100 pays for."""
    clf = headviz.load("demo", device="cpu")
    half = Half(clf, examples("dev", DEV))
    tables: dict[str, list[NDArray]] = {}
    seconds: dict[str, list[float]] = {}

    def timed(score: str, sample: Any) -> tuple[NDArray, float]:
        began = time.process_time()
        return headviz.score_heads(clf, sample, score, cache=False).values, time.process_time() - began

    def keep(name: str, score: str, sample: Any) -> float:
        values, took = timed(score, sample)
        tables.setdefault(name, []).append(values)
        seconds.setdefault(name, []).append(took)
        return took

    cheap, sizes = ("taylor", "gim"), {}
    for score in cheap:
        timed(score, examples("train", SAMPLE))  # what only the first call does
    for seed in SEEDS:
        of_gates = keep("gates", "gates", examples("train", SAMPLE, seed))
        for score in cheap:
            keep(score, score, examples("train", SAMPLE, seed))
            if score not in sizes:
                sizes[score] = round(PILOT * of_gates / timed(score, many(PILOT, seed))[1])
            keep(f"{score}, equal time", score, many(sizes[score], seed))
    return {**of_scores(half, tables, {"random": at_random(half)}), "seconds": seconds, "examples": sizes}


@part
def random_labels() -> dict[str, Any]:
    """The same scores with the labels of the sample exchanged at random: what is left of an order is not the task."""
    clf = headviz.load("demo", device="cpu")
    half = Half(clf, examples("dev", DEV))
    tables: dict[str, list[NDArray]] = {}
    for seed in SEEDS:
        sample = examples("train", SAMPLE, seed)
        drawn = replace(sample, labels=np.random.default_rng(seed).permutation(sample.labels))
        for score in ("gates", "taylor", "gim"):
            for name, data in ((score, sample), (f"{score}, random labels", drawn)):
                tables.setdefault(name, []).append(headviz.score_heads(clf, data, score, cache=False).values)
    return of_scores(half, tables, {"random": at_random(half)})


@part
def regimes() -> dict[str, Any]:
    """Whether Taylor's lead over random orders grows while the model is trained, checkpoint by checkpoint."""
    result, known = {}, {}
    folders = [*sorted((DATA / "checkpoints").iterdir()), DATA / "finetuned"]
    for folder in folders:
        clf = headviz.load("demo" if folder.name == "finetuned" else folder, device="cpu")
        half = Half(clf, examples("dev", DEV))
        scored = [
            area(half, headviz.score_heads(clf, examples("train", SAMPLE, seed), "taylor", cache=False).values)
            for seed in SEEDS
        ]
        known[folder.name] = np.array(scored), at_random(half)
        result[folder.name] = {"balanced_accuracy": float(half.full[0]), "lead": ahead(*known[folder.name])}
    return {"checkpoints": result, "growth": growth(known[folders[0].name], known["finetuned"])}


def growth(first: tuple[NDArray, NDArray], last: tuple[NDArray, NDArray]) -> list[float]:
    """How much larger the last lead is than the first, with 95 %; each is (orders by a score, random orders).

    Both have the same samples, random orders and dev examples, so one draw of these serves both.
    """
    rng = np.random.default_rng(0)
    scored, chance = (len(one) for one in first)

    def more(by_score: NDArray, by_chance: NDArray, k: int) -> float:
        late, early = (one[by_score, k].mean() - other[by_chance, k].mean() for one, other in (last, first))
        return float(late - early)

    draws = [
        more(rng.integers(0, scored, scored), rng.integers(0, chance, chance), k) for k in range(1, first[0].shape[1])
    ]
    return [more(np.arange(scored), np.arange(chance), 0), *map(float, np.nanquantile(draws, [0.025, 0.975]))]


@part
def maps() -> dict[str, Any]:
    """Rank correlation of a head's map with that of the iteration before, of heads that stay and of heads that go.

    Taylor is measured again under every mask, and a tenth of the heads goes. Layer 0 reads no head, and is left out.
    """
    clf, texts = headviz.load("demo", device="cpu"), examples("dev", TEXTS)
    mask, kinds = clf.full_mask, ("attention", "attribution")
    tables: list[dict[str, list[NDArray]]] = []
    gone: dict[Any, int] = {}
    for step in range(ITERATIONS + 1):
        shown = [
            headviz.conductance(clf, text, pair, mask=mask, steps=32, cache=False)
            for text, pair in zip(texts.texts, texts.pairs, strict=True)
        ]
        tables.append({kind: [getattr(one, kind) for one in shown] for kind in kinds})
        if step < ITERATIONS:
            values = headviz.score_heads(clf, examples("train", SAMPLE), "taylor", mask=mask, cache=False).values
            off = lowest(values, round(len(clf.full_mask.kept) / (ITERATIONS + 1)), mask.kept, seed=0)
            gone |= dict.fromkeys(off, step + 1)
            mask = mask.without(off)
    result: dict[str, Any] = {}
    for kind in kinds:
        rows = []
        for head in clf.full_mask.kept:
            for step in range(1, min(gone.get(head, ITERATIONS + 1), ITERATIONS + 1) if head.layer else 0):
                pairs = zip(tables[step - 1][kind], tables[step][kind], strict=True)
                each = [spearmanr(a[head].ravel(), b[head].ravel()).statistic for a, b in pairs]
                if np.isfinite(each).any():
                    rows.append((step, head, head not in gone, float(np.nanmean(each))))
        result[kind] = _of_maps(rows)
    return {"kinds": result, "survivors": sum(h not in gone for h in clf.full_mask.kept)}


def _of_maps(rows: Sequence[tuple[int, HeadId, bool, float]]) -> dict[str, Any]:
    """Means by iteration; and how much more alike the maps of heads that stay are, at the same iterations.

    Of each head the mean over its iterations, less what all heads have there; the interval draws heads again.
    """
    means: dict[tuple[int, bool], list[float]] = {}
    for step, _, stays, r in rows:
        means.setdefault((step, stays), []).append(r)
    steps = sorted({step for step, _ in means})
    by_step = [[step, *(float(np.mean(means[step, k])) if (step, k) in means else None for k in (True, False))]
               for step in steps]  # fmt: skip
    level = {step: np.mean(means[step, True] + means[step, False]) for step in steps if (step, False) in means}
    own: dict[tuple[HeadId, bool], list[float]] = {}
    for step, head, stays, r in rows:
        if step in level:
            own.setdefault((head, stays), []).append(r - level[step])
    stay, go = (np.array([np.mean(r) for (_, stays), r in own.items() if stays == wanted]) for wanted in (True, False))
    rng = np.random.default_rng(0)
    draws = [rng.choice(stay, len(stay)).mean() - rng.choice(go, len(go)).mean() for _ in range(2000)]
    ends = map(float, np.quantile(draws, [0.025, 0.975]))
    return {"by_iteration": by_step, "difference": [float(stay.mean() - go.mean()), *ends]}


# the page ------------------------------------------------------------------------------------------------

INTRODUCTION = """\
# What the sources ask besides, on the demo

Written by `python -m study.controls` from [controls.json](controls.json). Do not edit. The demo
is a BERT of 144 heads and a million weights that was trained on a made language, first with masked words and then
on a task of three classes: a demonstration, not evidence about BERT. *Area*: the mean share of the balanced
accuracy above chance that is left with 10 to 90 % of the heads off, on {dev} dev examples. Scores are measured
on {sample} training examples, three samples each. Leads are in points of area; brackets are 95 %, over
examples, samples and ten random orders.
"""
SECTIONS = {
    "grids": """\
## Grids of the masked-language model

Rank correlation of attention and attribution, head by head: of the pre-trained encoder, where the logit of the true
token at masked places is explained (thesis, §6.1), and of the fine-tuned model. *Again*: Spearman's correlation of the
grid with that of another sample.

{table}

{told}
""",
    "masked_words": """\
## Masks of the masked-language model

Orders that the pre-trained encoder gives at its own task (the true token at masked places), used on the
fine-tuned model (thesis, §7.2):

{table}

{told}
""",
    "maps": """\
## Maps between iterations

Spearman's correlation of a head's map with that of the iteration before, over all pairs of tokens, mean over
{texts} texts (thesis, §6.5.3). {iterations} iterations, each without a tenth of all heads by Taylor, measured
again under the mask: of the heads that are left, an ever larger share. Layer 0 reads no head and is left out.

{table}

{told}
""",
    "regimes": """\
## Two regimes of training

Michel et al. (§6) see two: early, heads matter alike, later some can go. If so, Taylor's lead over random
orders grows:

{table}

{told}
""",
    "equal_time": """\
## As much time as gates have

*Seconds*: of one processor, the mean over the three samples. Samples of more than {sample} examples are made with the
demo's grammar.

{table}

{told}
""",
    "random_labels": """\
## Labels drawn at random

The same scores with the labels of their sample exchanged at random. What is left of an order does not come from
the task:

{table}

{told}
""",
}


def told(ends: Sequence[float], unit: float = 100, digits: int = 1) -> str:
    mean, low, high = (f"{unit * x:+.{digits}f}".replace("-", "−") for x in ends)
    return f"{mean} [{low}, {high}]"


def verb(ends: Sequence[float]) -> str:
    return "ahead of" if ends[1] > 0 else "behind" if ends[2] < 0 else "not significantly different from"


def areas(known: dict[str, Any], beside: Callable[[str], str | None]) -> str:
    """By order its area, its lead over random orders, and over another one; and its seconds, where they were taken."""
    rows = [["random", f"{known['areas']['random']:.3f}", "", ""]]
    took = known.get("seconds", {})
    for name, leads in known["leads"].items():
        other = beside(name)
        against = f"{told(leads[other])} over {other}" if other else ""
        rows.insert(-1, [name, f"{known['areas'][name]:.3f}", told(leads["random"]), against])
    header = ["order", "area", "over random orders", "over another"]
    if took:
        header.append("seconds")
        rows = [[*row, f"{np.mean(took[row[0]]):.1f}" if row[0] in took else ""] for row in rows]
    return lines(header, rows)


def lines(header: list[str], rows: list[list[Any]]) -> str:
    return "\n".join(table(header, rows))


def sentences(known: dict[str, Any], pairs: Sequence[tuple[str, str]]) -> str:
    every = (f"*{one}* is {verb(known['leads'][one][other])} *{other}*" for one, other in pairs)
    return f"{'; '.join(every)}."


def page(known: dict[str, Any]) -> str:
    about = known["about"]
    parts = [INTRODUCTION.format(**about)]
    for name, text in SECTIONS.items():
        if name in known:
            shown, said = SHOWN[name](known[name])
            parts.append(text.format(**about, table=shown, told=said))
    return "\n".join(parts)


def of_grids(known: dict[str, Any]) -> tuple[str, str]:
    grids = {name: one for name, one in known.items() if isinstance(one, dict)}
    header = ["grid", "mean", "mean size", "size below .2", ".2 to .4", ".4 to .6", ".6 to .8", "above", "again"]
    rows = [
        [
            name,
            *(f"{g[k]:.3f}" for k in ("mean", "size")),
            *(f"{share:.0%}" for share in g["bands"]),
            f"{g['again']:.2f}",
        ]
        for name, g in grids.items()
    ]
    before, after = grids.values()
    how = "larger" if after["size"] > before["size"] else "smaller"
    return lines(
        header, rows
    ), f"After fine-tuning the mean size is {how}. One model of each; the grids of two answers."


def of_words(known: dict[str, Any]) -> tuple[str, str]:
    base = ("taylor", "conductance-spearman")
    shown = areas(known, lambda name: name.replace("masked words", "the task") if "masked" in name else None)
    pairs = [(f"{score}, masked words", other) for score in base for other in ("random", f"{score}, the task")]
    rank = ", ".join(f"{np.mean(known['rank_correlation'][score]):.2f} (`{score}`)" for score in base)
    return shown, f"{sentences(known, pairs)} Rank correlation of the two tables of a score: {rank}."


def of_iterations(known: dict[str, Any]) -> tuple[str, str]:
    kinds = known["kinds"]
    header = ["iteration", *(f"{kind}, heads that {what}" for kind in kinds for what in ("stay", "go later"))]
    rows = []
    for at in zip(*(kinds[kind]["by_iteration"] for kind in kinds), strict=True):
        rows.append([at[0][0], *("" if r is None else f"{r:.3f}" for _, *both in at for r in both)])
    return lines(header, rows), " ".join(of_maps(kind, kinds[kind]) for kind in kinds)


def of_regimes(known: dict[str, Any]) -> tuple[str, str]:
    header = ["checkpoint", "balanced accuracy", "Taylor over random orders"]
    rows = [[f"`{k}`", f"{v['balanced_accuracy']:.3f}", told(v["lead"])] for k, v in known["checkpoints"].items()]
    growth = known["growth"]
    how = "it grows" if growth[1] > 0 else "it shrinks" if growth[2] < 0 else "growth is not shown"
    return lines(header, rows), f"From the first checkpoint to the last the lead changes by {told(growth)}: {how}."


def of_equal_time(known: dict[str, Any]) -> tuple[str, str]:
    pairs = [(f"{score}, equal time", other) for score in ("taylor", "gim") for other in ("gates", score)]
    paid = " and ".join(f"{n:,} of `{score}`" for score, n in known["examples"].items())
    least, most = (of(known["seconds"]["gates"]) for of in (min, max))
    said = f"The time of `gates` on {SAMPLE} examples, {least:.0f} to {most:.0f} s, pays for {paid}. "
    said += sentences(known, pairs)
    return areas(known, lambda name: "gates" if name != "gates" else None), said


def of_random_labels(known: dict[str, Any]) -> tuple[str, str]:
    every = [name for name in known["leads"] if "," in name]
    pairs = [(name, other) for name in every for other in (name.partition(",")[0], "random")]
    return areas(known, lambda name: name.partition(",")[0] if "," in name else None), sentences(known, pairs)


SHOWN: dict[str, Callable[[dict[str, Any]], tuple[str, str]]] = {
    "grids": of_grids,
    "masked_words": of_words,
    "maps": of_iterations,
    "regimes": of_regimes,
    "equal_time": of_equal_time,
    "random_labels": of_random_labels,
}


def of_maps(kind: str, known: dict[str, Any]) -> str:
    low, high = known["difference"][1:]
    how = "more" if low > 0 else "less" if high < 0 else "not significantly more"
    first, last = (known["by_iteration"][i][1] for i in (0, -1))
    course = "do not converge: their correlation falls" if last < first else "converge: their correlation rises"
    return (
        f"Maps of {kind} of heads that stay {course} from {first:.2f} to {last:.2f}. They resemble those before them "
        f"{how} than those of heads that go ({told(known['difference'], 1, 3)}, over heads)."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--work", type=Path, default=PAGE.parents[1] / "cache" / "controls")
    parser.add_argument("--only-page", action="store_true")
    given = parser.parse_args()
    if not given.only_page:
        torch.set_num_threads(1)
        given.work.mkdir(parents=True, exist_ok=True)
        known = {}
        for name, compute in PARTS.items():
            kept = given.work / f"{name}.json"
            if not kept.exists():
                began = time.process_time()
                kept.write_text(json.dumps({**compute(), "processor_seconds": time.process_time() - began}, indent=1))
                print(name, flush=True)
            known[name] = json.loads(kept.read_text())
        sizes = {"dev": DEV, "sample": SAMPLE, "texts": TEXTS, "iterations": ITERATIONS}
        about = {"headviz": headviz.__version__, "torch": torch.__version__, **sizes}
        FILE.write_text(json.dumps({"about": about, **known}, indent=1) + "\n")
    PAGE.write_text(page(json.loads(FILE.read_text())))


if __name__ == "__main__":
    main()
