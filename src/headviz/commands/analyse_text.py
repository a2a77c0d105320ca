"""Results of analyses as text for people; the numbers are those of the JSON."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..heads import HeadId, head_name
from ..tasks import points_in
from .common import number, table

Shown = dict[str, Any]


def points(value: float | None, scale: float) -> str:
    """A difference of a metric in points, with its sign."""
    return "–" if value is None else f"{scale * value:+.2f}"


def between(low: float | None, high: float | None, scale: float) -> str:
    return "–" if low is None and high is None else f"[{points(low, scale)}, {points(high, scale)}]"


def scale_of(shown: Shown) -> float:
    """Points in one unit of the metric."""
    return points_in(shown["subject"]["metric"])


def row_of(shown: Shown, row: int) -> str:
    """What a row of the grid is called: a layer, or a stack's layer."""
    rows = shown["subject"].get("rows")
    return str(rows[row]) if rows else f"L{row}"


def head_of(shown: Shown, head: HeadId) -> str:
    """A head as users type it; with the stack's name where there are several."""
    rows = shown["subject"].get("rows")
    return head_name(head, rows) if rows else head.dotted


def p_text(value: float | None) -> str:
    if value is None:
        return "–"
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def subject(shown: Shown) -> list[tuple[str, ...]]:
    about = shown["subject"]
    return [
        ("model", about["model"]),
        ("data", f"{about['task']} {about['split']}, {about['n']:,} examples"),
        ("metric", f"{about['metric']} {number(shown.get('baseline'))}"),
    ]


def ablation(shown: Shown, most: int = 12) -> str:
    values, scale = shown["values"], scale_of(shown)
    grid = [["layer", *(f"H{h}" for h in range(len(values[0])))]]
    for layer, row in enumerate(values):
        marked = ["*" if q is not None and q < 0.05 else " " for q in shown["q_value"][layer]]
        grid.append(
            [row_of(shown, layer), *(f"{points(v, scale)}{m}" for v, m in zip(row, marked, strict=True))]
        )
    heads = [HeadId(i, j) for i, row in enumerate(values) for j, v in enumerate(row) if v is not None]
    heads.sort(key=lambda h: -values[h.layer][h.head])
    rows = [["head", "cost", "95 % interval", "p", "q"]]
    for i, j in heads[:most]:
        ends = between(shown["interval_low"][i][j], shown["interval_high"][i][j], scale)
        rows.append(
            [
                head_of(shown, HeadId(i, j)),
                points(values[i][j], scale),
                ends,
                p_text(shown["p_value"][i][j]),
                p_text(shown["q_value"][i][j]),
            ]
        )
    return "\n\n".join(
        [
            table(
                [
                    *subject(shown),
                    ("significant", f"{shown['significant']} of {shown['tested']} heads at q < 0.05"),
                ]
            ),
            "Cost of each head in points (full − without it; * significant):\n" + table(grid),
            f"The {len(rows) - 1} costliest:\n" + table(rows),
            "Harmful heads (removing them helps): " + (", ".join(shown["harmful"]) or "none"),
        ]
    )


def by_slice(shown: Shown) -> str:
    scale = scale_of(shown)
    costs = ["costliest head", "cost", "95 % interval", "p", "q", "elsewhere", "heads that cost"]
    rows = [[shown["slice_name"], "examples", shown["subject"]["metric"], *costs]]
    for k in shown["slices"]:
        rows.append(
            [
                k["name"], f"{k['n']:,}", number(k["baseline"]),
                head_of(shown, HeadId.parse(k["head"])) if k["head"] else "–", points(k["cost"], scale),
                between(k["interval_low"], k["interval_high"], scale), p_text(k["p_value"]), p_text(k["q_value"]),
                points(k["elsewhere"], scale), str(k["significant"]),
            ]
        )  # fmt: skip
    said = (
        "Costs in points (full − without the head), on the examples of that kind and on all others; q over all heads "
        "and kinds; heads that cost: at q < 0.05."
    )
    return table(subject(shown)) + "\n\n" + table(rows) + "\n" + said


def all_but_one(shown: Shown) -> str:
    scale = scale_of(shown)
    rows = [["layer", "head kept", "change", "95 % interval", "p", "q"]]
    for r in shown["rows"]:
        rows.append(
            [
                row_of(shown, r["layer"]), str(r["head"]), points(r["delta"], scale),
                between(r["interval_low"], r["interval_high"], scale),
                p_text(r["p_value"]), p_text(r["q_value"]),
            ]
        )  # fmt: skip
    chosen = shown["chosen_on"]
    where = f"{chosen['task']} {chosen['split']}, {chosen['n']:,} examples ({shown['select']})"
    return table([*subject(shown), ("heads chosen on", where)]) + "\n\n" + table(rows)


def cross_dataset(shown: Shown) -> str:
    pair = [shown[k]["subject"] for k in ("first", "second")]
    rows = [(f"data {i + 1}", f"{s['task']} {s['split']}, {s['n']:,} examples") for i, s in enumerate(pair)]
    rows += [
        ("heads", str(shown["heads"])),
        ("Pearson r", f"{number(shown['pearson'], 3)} [{number(shown['interval_low'], 3)}, "
                      f"{number(shown['interval_high'], 3)}]"),
        ("p", p_text(shown["p_value"])),
    ]  # fmt: skip
    return table(rows)


def pruning_curves(shown: Shown) -> str:
    parts, scale = [table(subject(shown))], scale_of(shown)
    for curve in shown["curves"]:
        rows = [["pruned", "value", "change", "95 % interval", "p"]]
        for p in curve["points"]:
            rows.append(
                [
                    f"{100 * p['sparsity']:.0f} %", number(p["value"]), points(p["delta"], scale),
                    between(p["interval_low"], p["interval_high"], scale), p_text(p["p_value"]),
                ]
            )  # fmt: skip
        parts.append(
            f"{curve['name']}: no significant loss up to {100 * curve['free']:.0f} %\n" + table(rows)
        )
    return "\n\n".join(parts)


def speed(shown: Shown) -> str:
    rows = [["batch", "full, /s", "pruned, /s", "times as fast"]]
    for r in shown["rows"]:
        rows.append(
            [
                str(r["batch"]), f"{r['full']:.1f} ± {r['full_sd']:.1f}", f"{r['pruned']:.1f} ± {r['pruned_sd']:.1f}",
                f"{r['ratio']:.2f}",
            ]
        )  # fmt: skip
    ceiling = (
        f"Arithmetic ceiling {shown['ceiling']:.2f}× at {shown['length']} tokens; {shown['threads']} threads, "
        f"{shown['device']}; mean ± sd of {shown['repeats']} repeats."
    )
    return table(rows) + "\n" + ceiling


def dynamics(shown: Shown) -> str:
    steps = shown["checkpoints"][0]["sparsities"]
    rows = [["pruned by " + shown["score"], "unpruned", *(f"{100 * s:.0f} %" for s in steps)]]
    for c in shown["checkpoints"]:
        shares = ["–" if r is None else f"{100 * r:.0f} %" for r in c["relative"]]
        rows.append([c["name"], number(c["baseline"]), *shares])
    return "Share of each checkpoint's own metric:\n" + table(rows)


def correlation(shown: Shown) -> str:
    rows = [["correlation", "pre-trained", "fine-tuned"]]
    for b in shown["bands"]:
        shares = ["–" if b[k] is None else f"{100 * b[k]:.1f} %" for k in ("pretrained", "fine_tuned")]
        rows.append([f"{b['low']:g} to {b['high']:g}", *shares])
    head = f"{shown['score']} on {shown['n']:,} examples of {shown['data']}; pre-trained: {shown['source']}"
    return head + "\n\n" + table(rows)


def scatter(shown: Shown) -> str:
    return table(
        [
            ("head", shown["head"]),
            (shown["coefficient"], number(shown["value"])),
            ("explained", shown["target"]),
            ("connections", str(len(shown["attention"]))),
            ("relative error", number(shown["error"])),
        ]
    )


def harmful(shown: Shown) -> str:
    scale = scale_of(shown)
    rows = [["head", "gain", "95 % interval", "p", "q"]]
    for r in shown["heads"]:
        rows.append(
            [r["head"], points(r["delta"], scale), between(r["interval_low"], r["interval_high"], scale),
             p_text(r["p_value"]), p_text(r["q_value"])]
        )  # fmt: skip
    found = f"{len(shown['heads'])} of {shown['tested']} heads do harm at q < {shown['level']:g}"
    return table([*subject(shown), ("harmful", found)]) + ("\n\n" + table(rows) if shown["heads"] else "")


def redundant(shown: Shown) -> str:
    scale = scale_of(shown)
    rows = [["pair", "first", "second", "both", "beyond the sum", "95 % interval", "q"]]
    for r in shown["pairs"]:
        rows.append(
            [
                f"{r['first']} + {r['second']}",
                *(points(r[name], scale) for name in ("cost_first", "cost_second", "cost", "excess")),
                between(r["interval_low"], r["interval_high"], scale), p_text(r["q_value"]),
            ]
        )  # fmt: skip
    about = [
        ("harmless heads", str(shown["harmless"])),
        ("pairs evaluated", f"{shown['evaluated']} of {shown['candidates']} in {shown['seconds']:.0f} s"),
        ("redundant pairs", str(len(shown["pairs"]))),
    ]
    return table([*subject(shown), *about]) + ("\n\n" + table(rows) if shown["pairs"] else "")


TEXT: dict[str, Callable[[Shown], str]] = {
    "ablation": ablation,
    "by-slice": by_slice,
    "all-but-one": all_but_one,
    "cross-dataset": cross_dataset,
    "pruning-curves": pruning_curves,
    "speed": speed,
    "dynamics": dynamics,
    "correlation": correlation,
    "scatter": scatter,
    "harmful": harmful,
    "redundant": redundant,
}


def text_of(name: str, shown: Shown) -> str:
    """An analysis by its own layout, or plainly: what was measured, then its rows."""
    if name in TEXT:
        return TEXT[name](shown)
    rows = next((v for v in shown.values() if isinstance(v, list) and v and isinstance(v[0], dict)), [])
    names = [k for k, v in rows[0].items() if not isinstance(v, (list, dict))] if rows else []
    about = subject(shown) if "subject" in shown else []
    return "\n\n".join(
        table(part) for part in (about, [names, *([str(r[k]) for k in names] for r in rows)]) if part
    )
