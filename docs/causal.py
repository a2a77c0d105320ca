"""Measure what docs/causal.md says of the demo, and write it: ``python docs/causal.py [--pairs N] [--examples N]``.

The sentences are made from the measurements, so another demo model gets other sentences.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import headviz
from headviz.demo import card_figures, planted_heads
from headviz.demo.minimal_pairs import minimal_pairs
from headviz.demo.phenomena import PHENOMENA
from headviz.heads import HeadId

PAGE = Path(__file__).resolve().parent / "causal.md"
KINDS = ("zero", "mean", "resample")
TOP = 3


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--pairs", type=int, default=12, help="minimal pairs of each phenomenon")
    parser.add_argument("--examples", type=int, default=300, help="dev examples for ablation")
    parser.add_argument("--followed", type=int, default=6, help="of these pairs, those whose paths are followed")
    args = parser.parse_args()
    clf = headviz.load("demo", device="cpu")
    patched, heads = patching(clf, args.pairs)
    asked = (
        f"Written by `python docs/causal.py --pairs {args.pairs} --examples {args.examples} --followed "
        f"{args.followed}` on the shipped demo."
    )
    followed, costs = following(clf, args.followed), ablating(clf, args.examples, heads)
    PAGE.write_text("\n".join([TITLE, "", asked, *INTRODUCTION, "", *patched, "", *followed, "", *costs, ""]))


TITLE = "# What a head carries: patching and references"
INTRODUCTION = """*Planted* heads are those that training gave a known part: three for each phenomenon
(`headviz.demo.planted_heads`).

`headviz.patch` puts one head's output for a donor text into the pass of another text: 0 = the answer stays, 1 = it is
the donor's. `headviz.patch_pairs` averages over minimal pairs, which `headviz.demo.minimal_pairs` draws: two pairs of
sentences that differ in one stretch of up to three words and in their label, none of them from the training data. The
interval is 95 % over pairs, q is Benjamini and Hochberg's over the 144 heads.""".splitlines()


def patching(clf: headviz.Classifier, count: int) -> tuple[list[str], list[HeadId]]:
    """One row for each phenomenon: the heads that carry the difference, and where its planted ones stand."""
    rows, first, own_first, own_next, shown, start = [], [], 0, 0, [], time.perf_counter()
    shared = [HeadId.parse(head) for head in card_figures()["heads"]["shared"]]
    for name in PHENOMENA:
        own = planted_heads(name)
        pairs = [((a.premise, a.hypothesis), (b.premise, b.hypothesis)) for a, b in minimal_pairs(name, count)]
        found = headviz.patch_pairs(clf, pairs)
        ranked = found.ranked()
        places = sorted((ranked.index(h) + 1, h) for h in own)
        top = "; ".join(
            f"{h.dotted}{'*' if h in own else ''} {found.mean[h]:+.2f} "
            f"[{found.interval_low[h]:+.2f}, {found.interval_high[h]:+.2f}]"
            for h in ranked[:TOP]
        )
        clear = int((found.q_value < 0.05).sum())
        stand = ", ".join(f"{h.dotted}: {place}" for place, h in places)
        rows.append(f"| {name} | {found.n} of {len(pairs)} | {top} | {clear} | {stand} |")
        first.append(ranked[0])
        own_first += ranked[0] in own
        own_next += next(head for head in ranked if head not in shared) in own
        shown.append(places[0][1])
        print(rows[-1], f"{time.perf_counter() - start:.0f} s", flush=True)
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


def following(clf: headviz.Classifier, count: int) -> list[str]:
    """One row for each phenomenon: the strongest paths, and whether they join planted heads."""
    rows, joined, clear = [], [], 0
    for name in PHENOMENA:
        own = planted_heads(name)
        pairs = [((a.premise, a.hypothesis), (b.premise, b.hypothesis)) for a, b in minimal_pairs(name, count)]
        found = headviz.paths(clf, pairs)
        between = [e for e in found.edges if e.receiver is not None]
        cells = []
        for group in ([e for e in found.edges if e.receiver is None], between):
            said = []
            for e in group[:TOP]:
                start, end = (None if h is None else h.dotted + "*" * (h in own) for h in (e.sender, e.receiver))
                way = f"{start} → {'answer' if end is None else f'{end} {e.into}'}"
                said.append(f"{way} {e.effect:+.2f} [{e.low:+.2f}, {e.high:+.2f}]")
            cells.append("; ".join(said))
        if between and between[0].sender in own and between[0].receiver in own:
            joined.append(name)
            clear += between[0].low > 0
        rows.append(f"| {name} | {found.n} of {len(pairs)} | {cells[0]} | {cells[1]} |")
        print(rows[-1], flush=True)
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


def ablating(clf: headviz.Classifier, count: int, heads: list[HeadId]) -> list[str]:
    """The cost of some heads by what stands in their place."""
    data = headviz.load_task("demo", limit=count)
    reference = headviz.sample(headviz.load_task("demo", split="train"), 256, length_filter=None)
    evaluators = {
        kind: headviz.evaluator_of(clf, data, ablation=kind, reference=None if kind == "zero" else reference)
        for kind in KINDS
    }
    full = evaluators["zero"].evaluate().metrics["accuracy"]
    rows, spread = [], {}
    for head in dict.fromkeys(heads):
        cells, lost = [], []
        for evaluator in evaluators.values():
            found = evaluator.compare(clf.full_mask.without([head])).primary
            lost.append(-100 * found.delta)
            low, high = -100 * found.interval_high, -100 * found.interval_low
            cells.append(f"{0 - 100 * found.delta:+.1f} [{low:+.1f}, {high:+.1f}]")
        rows.append(f"| {head.dotted} | {' | '.join(cells)} |")
        spread[head] = max(lost) - min(lost), min(lost), max(lost)
        print(rows[-1], flush=True)
    widest = max(spread, key=spread.__getitem__)
    _, least, most = spread[widest]
    return [
        "## What a head costs, by what stands in its place",
        f"Points of accuracy lost on {len(data)} dev examples (full model {full:.3f}) without one head, with the "
        "paired 95 % interval; reference: 256 training examples; of `resample` the first draw. Heads: the one that "
        "moves most answers above, and of each phenomenon the planted head with the largest effect.",
        f"What stands there matters most for {widest.dotted}, which costs from {least:.1f} to {most:.1f} points.",
        "",
        f"| head | {' | '.join(KINDS)} |",
        "|---|---|---|---|",
        *rows,
    ]


if __name__ == "__main__":
    main()
