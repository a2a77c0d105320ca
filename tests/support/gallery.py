"""One hard case of every chart: long names, many lines, long texts, values at the ends of their scales.

``RESULTS`` has one result of each analysis.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from plotly.graph_objects import Figure

from headviz.analyses import ablation, all_but_one, by_slice, correlation, grades, pruning_curve, speed
from headviz.analyses.catalogue import figure
from headviz.answers.comparison import Delta
from headviz.attribution.maps import Arc
from headviz.attribution.paths import Edge
from headviz.display.figures import answers, bars, heads, maps
from headviz.display.figures.speed import kept_against_speed
from headviz.heads import HeadId, HeadMask
from headviz.pruning import runtimes
from headviz.runs.tables import Curve, run_curves

RANDOM = np.random.default_rng(0)
FULL = HeadMask.full(12, 12)
CLASSES = ("entailment", "neutral", "contradiction")
KINDS = ("relative clause", "role swap", "negation", "antonyms", "numbers", "time", "quantifiers", "passive voice")
SAID = "the dog that the tall teacher saw is not ##ing in the kitchen of her aunt [SEP] an animal sleeps"
WORDS = ["[CLS]", *SAID.split(), "[SEP]"]
SUBJECT = ablation.Subject("demo", "demo, dev", "mnli", "dev", "x", 500, "accuracy", "float32")
SCORES = ("conductance-spearman", "attattr-max", "one-importance by gates", "magnitude", "random order")


def grid(width: float = 0.05) -> np.ndarray:
    return RANDOM.normal(0, width, (12, 12))


def square(n: int) -> np.ndarray:
    return RANDOM.normal(0, 0.1, (n, n))


def costs(seed: int = 0) -> ablation.Ablation:
    values = np.random.default_rng(seed).normal(0, 0.02, (12, 12))
    q = np.where(np.abs(values) > 0.05, 0.001, 0.9)
    return ablation.Ablation(SUBJECT, FULL, 0.99, values, values - 0.01, values + 0.01, q, q, 1.0)


def curves(names: tuple[str, ...] = SCORES, count: int = 11) -> pruning_curve.PruningCurves:
    made = []
    for k, name in enumerate(names):
        at = [
            pruning_curve.CurvePoint(
                s,
                FULL.without_random(round(144 * s)),
                0.99 - s**2 / (k + 2),
                -(s**2) / (k + 2),
                -(s**2) / (k + 2) - 0.03,
                0.0,
                0.1,
            )
            for s in np.linspace(0, 1, count).tolist()
        ]
        made.append(pruning_curve.Curve(name, tuple(at)))
    return pruning_curve.PruningCurves(SUBJECT, 0.99, tuple(made), constant=0.36)


def run_curve(name: str, k: int, seeds: int = 3) -> Curve:
    points = {s: [(x, 0.99 - x**2 / (k + 2) - 0.01 * s * x) for x in np.linspace(0, 1, 11)] for s in range(seeds)}
    return Curve(name, "accuracy", 0.99, points, constant=0.36)


def grade(name: str, k: int) -> grades.Grade:
    area = 0.9 - 0.05 * k
    curve = tuple(float(1 - x ** (3 - 0.15 * k)) for x in grades.SHARES)
    more = (0.1, 0.05, 0.15, 0.05, 0.01, 0.09, 0.5, None, None, 0.7, 0.01 * 2.0**k)
    return grades.Grade(name, 0.8, area, area - 0.03, area + 0.03, 0.3, 0.8, 0.2, *more, curve)


def graded() -> grades.Grades:
    names = ("gates", "conductance-spearman", "attattr-max", "taylor", "gim", "magnitude", "hies", "random")
    every = dict.fromkeys(grades.Grades.__dataclass_fields__)
    made = object.__new__(grades.Grades)
    for field, value in {**every, "scores": tuple(grade(n, k) for k, n in enumerate(names))}.items():
        object.__setattr__(made, field, value)
    return made


def delta(name: str, full: float, masked: float) -> Delta:
    return Delta("accuracy", 40, full, masked, masked - full - 0.08, masked - full + 0.08, 0.01, name)


def point(k: int) -> dict[str, object]:
    value = {"accuracy": 0.5 + 0.03 * k}
    ends = {"interval_low": {"accuracy": 0.45 + 0.03 * k}, "interval_high": {"accuracy": 0.55 + 0.03 * k}}
    return {"step": 500 * k, "loss": 1.2 / (k + 1), "metrics": value, **ends}


def faster(remove: str, k: int) -> dict[str, object]:
    fast = {"speedup": 1 + k / 2, "speedup_low": 0.95 + k / 2, "speedup_high": 1.05 + k / 2}
    change = {"metric": "accuracy", "difference": -0.02 * k, "low": -0.04 * k, "high": 0.0}
    return {"remove": remove, "metrics": {"accuracy": 0.99 - 0.02 * k}, "change": change, **fast}


def a_roles() -> Figure:
    names = ("the next word", "the previous word", "the same word in the other sentence", "[SEP]", "the verb's subject")
    return heads.relation_map(RANDOM.normal(5, 20, (12, 12, len(names))), names)


def a_layer(signed: bool) -> Figure:
    made = RANDOM.normal(0, 1, (12, 20, 20))
    return maps.head_maps(made if signed else np.abs(made), [f"L11·H{i}" for i in range(12)], "attribution", signed, 3)


def some_steps() -> Figure:
    panels = [(f"{10 * k} %", square(20) if k % 3 else "removed") for k in range(10)]
    return maps.titled_maps(panels, WORDS[:20], "attribution", True)


def some_paths() -> Figure:
    heads_of = [HeadId(i, (5 * i) % 12) for i in range(12)]
    nan = float("nan")
    edges = [
        Edge(a, b, into, 0.3, nan, nan)
        for a, b, into in zip(
            heads_of[:-1], heads_of[1:], [*["keys", "values", "queries"] * 3, "keys", "keys"], strict=True
        )
    ]
    return maps.paths_figure([*edges, Edge(heads_of[-1], None, "answer", -0.5, nan, nan)], 12, 12)


def a_transfer() -> Figure:
    from headviz.extras.tickets.transfer_figure import Square, kept_map

    targets = ["mnli", "snli, hard", "scitail", "question answering", "paraphrases", "rte"]
    squares = [
        [Square(0.5 + 0.1 * j, -0.6, -0.4, below="0.650", clear=i == j, ahead=j == 2) for j in range(6)]
        for i in range(6)
    ]
    return kept_map(squares, targets, targets)


def some_runtimes() -> Figure:
    rows = [
        runtimes.RuntimeRow(model, name, 400_000_000, 0.1, 1 + k / 2, 0.9 + k / 2, 1.1 + k / 2)
        for k, (model, name) in enumerate(
            [("full", "PyTorch"), ("pruned", "PyTorch"), ("full", "ONNX Runtime"), ("pruned", "ONNX Runtime, int8")]
        )
    ]
    made = object.__new__(runtimes.Runtimes)
    object.__setattr__(made, "rows", tuple(rows))
    return runtimes.figure(made)


def a_speed() -> speed.Speed:
    rows = [speed.SpeedRow(b, 10.0 + b, 1, 11.0 + 2 * b, 1, 1.1 + b / 30) for b in (1, 4, 16, 64)]
    return speed.Speed("demo", FULL.without_random(72), 128, 3, 2, "cpu", 2.4, (9, 8), (20, 16), tuple(rows))


def some_dynamics() -> Any:
    from headviz.extras.analyses import dynamics

    points = tuple(
        dynamics.Checkpoint(
            f"checkpoint-{1000 * k}", 0.8, (0.0, 0.5, 1.0), (1.0, 0.95 - 0.1 * k, 0.4 - 0.1 * k), curves(count=3)
        )
        for k in range(5)
    )
    return dynamics.Dynamics("f", "taylor", tuple(points))


def some_pairs() -> Any:
    from headviz.extras.analyses import redundant

    result = [
        redundant.RedundantPair(HeadId(i, 0), HeadId(i, 1), 0.0, 0.01, 0.3, 0.25, 0.35, 0.29, 1e-6, 1e-5)
        for i in range(12)
    ]
    return redundant.Redundant(SUBJECT, 0.9, 130, 8385, 100, 60, 60, tuple(result))


def all_pairs() -> Figure:
    named = [str(HeadId(i, j)) for i in range(12) for j in range(12)]
    return heads.pair_map(square(144), named, "interaction, loss")


def connections() -> Figure:
    return maps.arcs([Arc(i, (7 * i) % 20, (-1) ** i * i / 20) for i in range(20)], WORDS[:20], WORDS[:20], signed=True)


def explained() -> Figure:
    names = ("conductance", "integrated gradients", "attention rollout", "gradient × input")
    rows = [(name, "contradiction", RANDOM.normal(0, 0.2, len(WORDS))) for name in names]
    return maps.token_rows(rows, WORDS)


def token_curves() -> Figure:
    names = ("conductance", "integrated gradients", "attention rollout", "gradient × input", "leave one out")
    shares = np.linspace(0, 1, 6).tolist()
    own = [np.linspace(0.9, 0.2 + 0.1 * k, 6) for k in range(5)]
    drawn = RANDOM.uniform(0.2, 0.9, (20, 6))
    sides = [("strongest words removed first", own, drawn), ("weakest words removed first", own, drawn)]
    return bars.token_curves(names, shares, sides, "probability of contradiction")


def parted() -> Figure:
    parts = [(f"layer {i}: heads and feed-forward", (-1) ** i * 0.5 * i) for i in range(8)]
    return bars.waterfall(parts, "score of contradiction")


def probabilities() -> Figure:
    columns = [("full model", [0.01, 0.04, 0.95]), ("current mask (12 heads off)", [0.5, 0.3, 0.2])]
    columns += [(f"saved: taylor {k} %, seed {k}", [1.0, 0.0, 0.0]) for k in (50, 60)]
    return answers.probabilities(columns, CLASSES)


def some_interactions() -> Any:
    from headviz.extras.analyses import interactions

    some = (HeadId(0, 0), HeadId(0, 1), HeadId(1, 2))
    values = np.array([[np.nan, -0.5, 0.1], [-0.5, np.nan, 0.0], [0.1, 0.0, np.nan]])
    pair = interactions.Interaction(*some[:2], -0.5, -0.6, -0.4, 1e-6, -0.3)
    return interactions.Interactions(SUBJECT, 0.3, 8, some, values, (pair,), 1.0)


def by_kind() -> by_slice.BySlice:
    values, q = np.zeros((2, 12, 12)), np.ones((2, 12, 12))
    values[0, 8, 6], values[1, 4, 2], q[0, 8, 6] = 0.8, 0.1, 1e-6
    kinds = (
        by_slice.SliceCost("<b>role</b>", 40, 1.0, HeadId(8, 6), 0.8, 0.7, 0.9, 1e-9, 1e-6, 0.01, 1),
        by_slice.SliceCost("time", 40, 0.9, HeadId(4, 2), 0.1, -0.1, 0.3, 0.2, 0.9, 0.0, 0),
    )
    return by_slice.BySlice(SUBJECT, FULL, 0.95, "sort", kinds, values, values - 0.1, values + 0.1, q, q, 1.0)


def layers_alone() -> all_but_one.AllButOne:
    rows = tuple(all_but_one.BestHead(i, i, -0.01 * i, -0.01 * i - 0.01, 0.0, 0.1, 0.2) for i in range(12))
    return all_but_one.AllButOne(SUBJECT, "same", SUBJECT, 0.9, grid(), rows)


def correlations() -> correlation.CorrelationGrids:
    band, level = correlation.Band(0.0, 0.2, 0.5, 0.2), correlation.Level("seed 0", 0.0, 0.5)
    tables = (grid(0.3), grid(0.3), grid(0.3), grid(0.3))
    return correlation.CorrelationGrids(
        "s", "d", 5, "fresh", *tables, (band,), np.abs(grid()), (level,), (level,), None
    )


def a_cloud(words: tuple[str, ...] = tuple(WORDS), target: str = "contradiction") -> Any:
    from headviz.extras.analyses import scatter

    n = len(words) ** 2
    attention, attribution = RANDOM.random(n), RANDOM.normal(0, 1, n)
    return scatter.Scatter(HeadId(1, 2), words, target, "conductance", attention, attribution, "spearman", 0.5, 0.01)


def some_lengths() -> Figure:
    return bars.histogram(
        [("train", (RANDOM.normal(20, 5, 500)).tolist()), ("dev", RANDOM.normal(22, 5, 90).tolist())], "tokens"
    )


def values_of_heads() -> Figure:
    values = np.random.default_rng(3).normal(0, 1, 144)  # its first number stands in the corner
    return bars.value_histogram(values, np.abs(values) > 1, "cost, points of accuracy")


def some_bands() -> Figure:
    names = [f"{k / 5:.1f} to {(k + 1) / 5:.1f}" for k in range(-5, 5)]
    return bars.bands([("fine-tuned", [0.1] * 10), ("pre-trained, fresh head", [0.1] * 10)], names)


def token_bars() -> Figure:
    return bars.token_bars(RANDOM.normal(0, 1, len(WORDS)).tolist(), WORDS, "adds to contradiction")


def marked() -> Figure:
    values = RANDOM.normal(0, 10, (8, 14))
    named = [str(HeadId(i, (7 * i) % 12)) for i in range(12)] + ["L3·H10", "L4·H11"]
    return heads.marked_map(values, values - 5, values + 5, np.abs(values) > 10, KINDS, named, "significant (q < 0.05)")


def students() -> Figure:
    from headviz.extras.distillation.pages.results import LOOKS, learning_curves

    made = [
        {
            "init": init,
            "title": f"student from {init}, 6 of 12 layers",
            "curve": [{**point(i), "metrics": {"accuracy": 0.5 + 0.02 * i + 0.04 * k}} for i in range(8)],
        }
        for k, init in enumerate(LOOKS)
    ]
    return learning_curves(made, 0.99, "accuracy", 0.36)


def two_costs() -> Any:
    from headviz.extras.analyses.cross_dataset import relate

    return relate(costs(), costs(1))


RESULTS: dict[str, Callable[[], object]] = {
    "ablation": costs,
    "by-slice": by_kind,
    "all-but-one": layers_alone,
    "cross-dataset": two_costs,
    "pruning-curves": curves,
    "speed": a_speed,
    "dynamics": some_dynamics,
    "correlation": correlations,
    "scatter": a_cloud,
    "redundant": some_pairs,
    "interactions": some_interactions,
}


_MADE: dict[str, Callable[[], Figure]] = {
    **{name: lambda make=make: figure(make()) for name, make in RESULTS.items()},  # type: ignore[misc]
    "slices": lambda: answers.slices(
        [delta(k, 0.9 - i / 20, 0.8 - i / 15) for i, k in enumerate(KINDS)], "accuracy", 0.36
    ),
    "metrics": lambda: answers.metric_bars(
        {"accuracy": 0.9, "matthews": 0.8, "f1": 0.9}, {"accuracy": 0.6, "matthews": 0.0, "f1": 0.4}
    ),
    "confusion": lambda: answers.confusion(np.diag([170, 160, 150]) + 5, np.diag([100, 160, 150]) + 30, CLASSES),
    "probabilities": probabilities,
    "lengths": some_lengths,
    "values of heads": values_of_heads,
    "bands": some_bands,
    "waterfall": parted,
    "explanations": token_curves,
    "token bars": token_bars,
    "learning curve": lambda: bars.learning_curve([point(k) for k in range(12)], "accuracy"),
    "relations": a_roles,
    "costs by kind": marked,
    "head map": lambda: heads.head_map(np.abs(grid()), "conductance-spearman"),
    "pairs of heads": all_pairs,
    "connections": lambda: maps.matrix(square(len(WORDS)), WORDS, WORDS, "attribution", signed=True),
    "long connections": lambda: maps.matrix(
        np.abs(square(60)),
        [f"word{i}" for i in range(60)],
        [f"word{i}" for i in range(60)],
        "attention",
        signed=False,
        root=True,
    ),
    "rank correlations": lambda: maps.matrix(
        square(4), SCORES[:4], SCORES[:4], "rank correlation", signed=True, end=1.0
    ),
    "attention of a layer": lambda: a_layer(False),
    "attribution of a layer": lambda: a_layer(True),
    "maps of steps": some_steps,
    "arcs": connections,
    "token rows": explained,
    "paths": some_paths,
    "faster": lambda: kept_against_speed([faster(r, k) for r in ("both", "heads") for k in range(5)], "accuracy", 0.99),
    "grades": lambda: grades.figure(graded()),
    "curves of grades": lambda: grades.curves(graded()),
    "price of grades": lambda: grades.cost(graded()),
    "runtimes": some_runtimes,
    "students": students,
    "transfer": a_transfer,
    "one run": lambda: run_curves([run_curve("one-importance by gates, demo", 0)]),
    "five runs": lambda: run_curves(
        [run_curve(f"one-importance by {s}, demo · seed 0", k) for k, s in enumerate(SCORES)]
    ),
    "a sweep of fifteen": lambda: run_curves(
        [
            run_curve(f"one-importance by {s}, demo · seed {k} (2523e5b{k})", k + i, 1)
            for k in range(3)
            for i, s in enumerate(SCORES)
        ]
    ),
}
CHARTS = {name: cache(make) for name, make in _MADE.items()}
