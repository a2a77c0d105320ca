"""The tables and sentences of study/causal.md, from what python -m study.causal measured."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from headviz.demo import DATA, card_figures, planted_heads
from headviz.heads import HeadId

KINDS = ("zero", "mean", "constant", "resample")
TOP = 3
SETS = 49  # random sets of heads beside the planted ones


def starred(head: HeadId, own: tuple[HeadId, ...]) -> str:
    return head.dotted + "*" * (head in own)


def ranking(values: np.ndarray) -> list[HeadId]:
    order = sorted(np.ndindex(values.shape), key=lambda at: (-abs(values[at]), at))
    return [HeadId(*at) for at in order]


def alone(result: dict[str, Any]) -> tuple[list[str], list[HeadId]]:
    """One row for each phenomenon: the heads that carry the difference, and where its planted ones stand."""
    rows, first, own_first, own_next, shown = [], [], 0, 0, []
    shared = [HeadId.parse(head) for head in card_figures()["heads"]["shared"]]
    for name, one in result.items():
        own, mean = planted_heads(name), np.array(one["mean"])
        ranked = ranking(mean)
        places = sorted((ranked.index(h) + 1, h) for h in own)
        top = "; ".join(
            f"{starred(h, own)} {mean[h]:+.2f} [{np.array(one['low'])[h]:+.2f}, {np.array(one['high'])[h]:+.2f}]"
            for h in ranked[:TOP]
        )
        stand = ", ".join(f"{h.dotted}: {place}" for place, h in places)
        rows.append(f"| {name} | {one['n']} of {one['of']} | {top} | {one['clear']} | {stand} |")
        first.append(ranked[0])
        own_first += ranked[0] in own
        own_next += next(head for head in ranked if head not in shared) in own
        shown.append(places[0][1])
    leader = max(set(first), key=first.count)
    part = (
        "several abilities hang on it, as the model card says" if leader in shared else "it carries no part of its own"
    )
    said = (
        f"In {first.count(leader)} of {len(first)} phenomena {leader.dotted} moves the answer most ({part}). A planted "
        f"head of the phenomenon comes first in {own_first} of {len(first)}, and in {own_next} once the heads that "
        "several abilities share are left out. So patching does not simply give back what training planted."
    )
    lines = [
        "## Which heads carry the difference",
        said,
        "",
        "| phenomenon | pairs used | strongest heads (* = planted): effect [interval] | q < .05 | planted: rank |",
        "|---|---|---|---|---|",
        *rows,
    ]
    return lines, [leader, *shown]


def together(result: dict[str, Any]) -> list[str]:
    """The same question asked in other ways: what is specific, and the planted heads as one."""
    means = {name: np.array(one["mean"]) for name, one in result.items()}
    rows, counts, beaten, clear = [], np.zeros(2, dtype=int), 0, 0
    for name, one in result.items():
        own = planted_heads(name)
        specific = means[name] - np.mean([m for other, m in means.items() if other != name], axis=0)
        cells = []
        for i, table in enumerate((means[name], specific)):
            ranked = ranking(table)
            best = min(ranked.index(h) + 1 for h in own)
            counts[i] += best == 1
            cells.append(f"{starred(ranked[0], own)}; {best}")
        mean, low, high = one["together"]
        beaten, clear = beaten + (one["beaten"] >= 0.95 * SETS), clear + (low > 0)
        rows.append(f"| {name} | {' | '.join(cells)} | {mean:+.2f} [{low:+.2f}, {high:+.2f}] | {one['beaten']} |")
    total = len(result)
    return [
        "## Do the planted heads come first if one asks otherwise?",
        f"A planted head comes first in {counts[0]} of {total} phenomena by its effect, and in {counts[1]} by what is "
        "specific (its effect minus its mean effect on the other phenomena). Patched together, the three planted heads "
        "move the answer more "
        f"than at least 95 % of {SETS} random sets of three from the same layers in {beaten} of {total}; their "
        f"interval lies above 0 in {clear}.",
        "",
        "| phenomenon | by effect: first; rank of the best planted | by what is specific: the same "
        f"| the three together [interval] | of {SETS} random sets beaten |",
        "|---|---|---|---|---|",
        *rows,
    ]


def interval(values: list[float]) -> str:
    mean, low, high = values
    return f"{mean:+.1f} [{low:+.1f}, {high:+.1f}]"


def by_kind(result: dict[str, Any], moved: dict[str, Any]) -> list[str]:
    """Why patching two examples of one kind does not show the planted heads; ``moved`` is what patching found."""
    columns = {
        "zero": "nothing",
        "all": "mean of all kinds",
        "own": "mean of their own kind",
        "drawn": "another example",
        "drawn own": "another example of their kind",
    }
    means = {key: float(np.mean([one[key][0] for one in result.values()])) for key in columns}
    less = sum(one["own"][0] < one["all"][0] / 2 for one in result.values())
    said = (
        "Most of what they write is then common to all examples of a kind, and tells kinds apart, not answers. Both "
        "texts of a minimal pair are of one kind, so patching between them leaves it as it is."
        if means["own"] < means["all"] / 2
        else "So what they write differs between the examples of a kind as much as between kinds."
    )
    first = [name for name, one in moved.items() if ranking(np.array(one["mean"]))[0] in planted_heads(name)]
    drawn = [sorted(one["drawn own"][0] for n, one in result.items() if (n in first) == own) for own in (True, False)]
    told = [f"{part[0]:.1f} to {part[-1]:.1f} points" if part else "nothing" for part in drawn]
    rows = [f"| {name} | {' | '.join(interval(one[key]) for key in columns)} |" for name, one in result.items()]
    n = sorted({one["n"] for one in result.values()})
    return [
        "## What the planted heads carry",
        "Points of accuracy lost on the phenomenon's own dev examples "
        f"({' to '.join(str(v) for v in dict.fromkeys((n[0], n[-1])))} of each) without its three planted heads, by "
        "what stands in their place, with the paired 95 % interval (of drawn examples the mean over the draws).",
        f"On average they cost {means['all']:.1f} points with their mean over examples of all kinds in their place, "
        f"and {means['own']:.1f} with their mean over their own kind, which is less than half in {less} of "
        f"{len(result)} phenomena. {said}",
        f"The output of another example of the same kind, which may have another answer, costs {told[0]} in the "
        f"{len(first)} phenomena in which a planted head comes first above, and {told[1]} in the others.",
        "",
        f"| phenomenon | {' | '.join(columns.values())} |",
        "|---|---|---|---|---|---|",
        *rows,
    ]


def ablated(result: dict[str, Any]) -> list[str]:
    """One row for each head."""
    spread = {name: [cells[kind][0] for kind in KINDS] for name, cells in result["heads"].items()}
    widest = max(spread, key=lambda name: max(spread[name]) - min(spread[name]))
    rows = [f"| {n} | {' | '.join(interval(cells[kind]) for kind in KINDS)} |" for n, cells in result["heads"].items()]
    return [
        "## What a head costs, by what stands in its place",
        f"Points of accuracy lost on {result['n']} dev examples (full model {result['full']:.3f}) without one head, "
        "with the paired 95 % interval; reference: 256 training examples; of `resample` the mean over 5 "
        "draws. Heads: the one that moves most answers above, and of each phenomenon the planted head with the largest "
        "effect.",
        f"What stands there matters most for {widest}, which costs from {min(spread[widest]):.1f} to "
        f"{max(spread[widest]):.1f} points.",
        "",
        f"| head | {' | '.join(KINDS)} |",
        "|---|---|---|---|---|",
        *rows,
    ]


def direct(result: dict[str, Any]) -> list[str]:
    """The heads that write most themselves, and those that matter most by what later layers make of them."""
    own, lost = np.array(result["own"]), np.array(result["lost"])
    mean, low, high = result["rank"]
    rows, places = [], {"writes": ranking(own), "costs": ranking(lost)}
    for title, order in places.items():
        told = "; ".join(f"{h.dotted} {own[h]:.2f} and {lost[h]:.2f}" for h in order[: 2 * TOP])
        rows.append(f"| {'writes most itself' if title == 'writes' else 'is missed most'} | {told} |")
    last = own.sum(axis=1)
    return [
        "## What a head writes itself",
        "`headviz.contributions` takes each class score apart: heads, feed-forward blocks, embedding and biases sum to "
        f"the score (on {result['n']} dev examples to {result['off']:.1g}). Beside a head's direct share of the "
        "predicted class's score stands what the score loses without it; the difference is what later layers make of "
        "its output.",
        f"Rank correlation of the two over the heads, mean over the examples: {mean:.2f} [{low:.2f}, {high:.2f}]. "
        f"Layer {int(last.argmax())} writes most itself: {100 * last.max() / last.sum():.0f} % of all sizes together.",
        "",
        "| | head: mean size of its direct share, and of what the score loses without it |",
        "|---|---|",
        *rows,
    ]


def roles() -> list[str]:
    """The recorded roles, and whether heads with a role matter more."""
    recorded = json.loads((DATA / "analyses.json").read_text(encoding="utf-8"))["roles"]
    result = recorded["result"]
    rows = [
        f"| {one['role']} | {len(one['heads'])} | {_ends(one)} | {'–' if one['q'] is None else round(one['q'], 3)} |"
        for one in result["by_importance"]
    ]
    sure = [one["role"] for one in result["by_importance"] if one["q"] is not None and one["q"] < 0.05]
    told = f"differ in rank at q < .05: {', '.join(sure)}" if sure else "differ in rank at q < .05: none"
    return [
        "## Do heads with a role matter more?",
        f"Roles by `{recorded['command']}`, which comes recorded with the demo: the relation on which a head spends "
        "more attention than by chance, the one with the largest excess. Rank: by the score "
        f"`{result['importance']}`, in per cent of all heads (100 = matters most), the mean of these heads minus that "
        f"of the others, with Welch's 95 % interval. Roles whose heads {told}.",
        "",
        "| role | heads | rank against others | q |",
        "|---|---|---|---|",
        *rows,
    ]


def _ends(one: dict[str, Any]) -> str:
    if one["difference"] is None:
        return "–"
    return f"{one['difference']:+.0f} [{one['low']:+.0f}, {one['high']:+.0f}]"


def following(followed: dict[str, Any]) -> list[str]:
    """One row for each phenomenon: the strongest paths, and whether they join planted heads."""
    rows, joined, clear = [], [], 0
    for name, result in followed.items():
        own = planted_heads(name)
        between = [e for e in result["edges"] if e["receiver"] is not None]
        cells = []
        for group in ([e for e in result["edges"] if e["receiver"] is None], between):
            said = []
            for e in group[:TOP]:
                start, end = (h and starred(HeadId.parse(h), own) for h in (e["sender"], e["receiver"]))
                way = f"{start} → {'answer' if end is None else end + ' ' + e['into']}"
                said.append(f"{way} {e['effect']:+.2f} [{e['low']:+.2f}, {e['high']:+.2f}]")
            cells.append("; ".join(said))
        if between and all(HeadId.parse(between[0][end]) in own for end in ("sender", "receiver")):
            joined.append(name)
            clear += between[0]["low"] > 0
        rows.append(f"| {name} | {result['n']} of {result['of']} | {cells[0]} | {cells[1]} |")
    names = f": {', '.join(joined)}" if joined else ""
    return [
        "## By which way",
        "`headviz.paths` opens one path at a time: a head's output for the donor reaches one other head's queries, "
        "keys or values, or the answer, and nothing else changes (path patching, Wang et al. 2022).",
        f"In {len(joined)} of {len(rows)} phenomena the strongest path between two heads joins two of its planted "
        f"heads{names}. Over so few pairs the interval of that path lies above 0 in {clear} of them.",
        "",
        "| phenomenon | pairs used | strongest to the answer (* = planted) | strongest from head to head |",
        "|---|---|---|---|",
        *rows,
    ]
