"""The pruning study's page: what was found, how sure it is, and what was not run."""

import argparse
import json
from itertools import product
from typing import Any

import numpy as np

from headviz.extras.tickets.winning import wins
from headviz.pruning import ALGORITHMS
from study.demo_pruning.cells import collect, interval, study_of
from study.demo_pruning.picture import draw_curves
from study.demo_pruning.plans import MASKED, RETRAINED, SAME, SCORES

Found = dict[str, Any]


def report(args: argparse.Namespace) -> None:
    """Write the page and its picture."""
    result = collect(args)
    if "reference" not in result:
        raise SystemExit(f"{args.out} holds no study yet. Run it first, without --report.")
    others = [(study, collect(study)) for study in map(study_of, args.beside)]
    picture = args.report.with_suffix(".svg")
    full = float(np.mean(list(result["full"].values()))) if result["full"] else None
    picture.write_text(draw_curves(result["cells"], result["reference"], full), encoding="utf-8")
    lines = [
        "# Which heads may go? A pruning study on the demo model",
        "",
        f"![Accuracy against sparsity]({picture.name})",
        "",
        "Written by `python -m study.demo_pruning` from finished works; run it again to continue or to check. "
        f"Dev accuracy over {result['n']:,} examples; the fine-tuned model with all heads has "
        f"{result['reference']:.3f}. A cell is the mean over seeds with its 95 % interval (seeds and "
        "examples resampled); the seeds that are there stand in brackets where they are fewer than planned. A score is "
        "*ahead* of random where the interval of the "
        "paired difference (same seeds, same examples) lies above zero. With three seeds such an interval is too "
        "narrow: where they differ by five points or more it holds the truth in some three of four cases (simulated). "
        "So *ahead* is not sure where its lower end is near zero, as it is of all retrained networks.",
        "",
        *_summary(result),
        *(f"- {_in_short(*other)}" for other in others),
        "",
    ]
    for algorithm in (*MASKED, *RETRAINED):
        lines += _algorithm(result, algorithm, len(args.seeds))
    lines += _gaps(result)
    lines += _full(result)
    lines += [line for other in others for line in _beside(*other)]
    lines += _time(result)
    lines += ["## Not run", "", *([f"- {m}" for m in result["missing"]] or ["Everything was run."])]
    if result.get("finetune"):
        lines += ["", "Fine-tuning: `" + json.dumps(result["finetune"]) + "`"]
        if args.examples:
            lines.append(f"on {args.examples:,} training pairs.")
    args.report.write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")
    print(f"{args.report} and {picture} written; {len(result['missing'])} plans incomplete")


# sections ---------------------------------------------------------------------------------------


def _summary(result: Found) -> list[str]:
    """The page in a few sentences, each made from the figures below."""
    steps = range(1, len(result["sparsities"]) + 1)
    lines = ["## In short", ""]
    for score in SCORES[:-1]:
        said = []
        for algorithm in (*MASKED, *RETRAINED):
            leads = [_lead(result, algorithm, score, step) for step in steps]
            known = [lead for lead in leads if lead is not None]
            if len(known) < len(leads):
                continue
            seeds = set.intersection(*(set(lead) for lead in known))
            mean = np.array([np.mean([lead[s] for lead in known], axis=0) for s in sorted(seeds)])
            low, high = interval(mean, np.random.default_rng(2))
            said.append(f"{_signed(mean.mean(), low, high)} by {_called(algorithm)}")
        if said:
            lines.append(f"- Ahead of random, mean over the sparsities: `{score}` " + ", ".join(said) + ".")
    full = list(result["full"].values())
    if full:
        lines.append(
            f"- Retraining starts from θ0, and with this recipe the network with all heads reaches "
            f"{np.mean(full):.3f} (fine-tuned: {result['reference']:.3f}): compare retrained networks with it and with "
            "one another, not with the rows without retraining."
        )
    return lines


def _in_short(args: argparse.Namespace, result: Found) -> str:
    """Another study's sentence: its full model, and each score at each sparsity."""
    full = np.mean(list(result["full"].values())) if result["full"] else float("nan")
    said = []
    for step, share in enumerate(result["sparsities"], 1):
        cells = {s: result["cells"].get((RETRAINED[0], s, step)) for s in SCORES}
        values = ", ".join(f"`{s}` {c['mean']:.3f}" for s, c in cells.items() if c)
        said.append(f"at {share:.0%} off {values}")
    return (
        f"With {args.examples:,} training pairs ({_called(RETRAINED[0])}, {_seeds(args)}) all heads reach {full:.3f}; "
        + "; ".join(said)
        + "."
    )


def _algorithm(result: Found, algorithm: str, seeds: int) -> list[str]:
    cells, sparsities = result["cells"], list(enumerate(result["sparsities"], 1))
    rows = [s for s in SCORES if any((algorithm, s, step) in cells for step, _ in sparsities)]
    lines = [f"## {_called(algorithm)}", "", ALGORITHMS[algorithm].what, ""]
    if not rows:
        return [*lines, "Not run.", ""]
    lines += _header("score", result)
    for score in rows:
        texts = [_cell(cells.get((algorithm, score, step)), seeds) for step, _ in sparsities]
        lines.append(f"| `{score}` | " + " | ".join(texts) + " |")
    lines += ["", _verdict(result, algorithm), ""]
    if any(name.startswith(algorithm) for name in SAME):
        lines += ["Random numbers do not depend on the model, so their row is that of one-shot ISP.", ""]
    return lines


def _verdict(result: Found, algorithm: str) -> str:
    """Where a score is ahead of random or behind it; and where even the two intervals lie apart."""
    cells, said = result["cells"], []
    for score in SCORES[:-1]:
        places: dict[str, list[str]] = {"ahead of": [], "not significantly different from": [], "behind": []}
        apart = []
        for step, share in enumerate(result["sparsities"], 1):
            lead = _lead(result, algorithm, score, step)
            if lead is None:
                continue
            low, high = interval(np.array(list(lead.values())), np.random.default_rng(1))
            what = "ahead of" if low > 0 else "behind" if high < 0 else "not significantly different from"
            places[what].append(f"{share:.0%}")
            own, chance = cells[algorithm, score, step], cells[algorithm, "random", step]
            if own["low"] > chance["high"]:
                apart.append(f"{share:.0%}")
        parts = [f"{what} random at {', '.join(where)}" for what, where in places.items() if where]
        if parts:
            more = f" (intervals apart, too, at {', '.join(apart)})" if apart else ""
            said.append(f"`{score}` is {'; '.join(parts)}{more}.")
    return " ".join(said) or "No comparison with random is possible yet."


def _gaps(result: Found) -> list[str]:
    """How far each score is ahead of random, with and without retraining."""
    lines = [
        "## Does retraining make random heads nearly as good?",
        "",
        "Accuracy ahead of `random`, over the seeds that both have (in brackets), with 95 % intervals of the paired "
        "difference.",
        "",
        *_header("", result),
    ]
    for score, algorithm in product(SCORES[:-1], (*MASKED, *RETRAINED)):
        texts = []
        for step, _ in enumerate(result["sparsities"], 1):
            lead = _lead(result, algorithm, score, step)
            if lead is None:
                texts.append("–")
                continue
            ahead = np.array(list(lead.values()))
            texts.append(f"{_signed(ahead.mean(), *interval(ahead, np.random.default_rng(1)))} ({len(lead)})")
        lines.append(f"| `{score}`, {_called(algorithm)} | " + " | ".join(texts) + " |")
    return [*lines, ""]


def _full(result: Found) -> list[str]:
    full = result["full"]
    if not full:
        return ["## Full models trained again", "", "Not run.", ""]
    values = ", ".join(f"{v:.3f}" for v in full.values())
    return [
        "## Full models trained again",
        "",
        f"θ0 with all heads, fine-tuned by the same recipe: {values} (seeds {', '.join(map(str, full))}).",
        "",
        _tickets(result["cells"], list(full.values())),
        "",
    ]


def _tickets(cells: dict[Any, Any], full: list[float]) -> str:
    """The criterion of winning tickets, for cells with several seeds."""
    mean = float(np.mean(full))
    tried = [
        (f"{algorithm} with `{score}` at {c['sparsity']:.0%}", c)
        for (algorithm, score, _), c in sorted(cells.items())
        if ALGORITHMS[algorithm].retrains and c["sd"] is not None and f"{algorithm}-{score}" not in SAME
    ]
    won = [name for name, c in tried if wins(mean, c["mean"], c["sd"])]
    names = ", ".join(won) or "none"
    return f"Winning tickets (full mean ≤ mean + sd over seeds): {names}; {len(tried)} cells had several seeds."


def _beside(args: argparse.Namespace, result: Found) -> list[str]:
    """Another study with a longer or shorter training, as one table."""
    full = ", ".join(f"{v:.3f}" for v in result["full"].values()) or "not run"
    lines = [
        f"## The same with {args.examples:,} training pairs",
        "",
        f"{_called(RETRAINED[0])}, {_seeds(args)}. θ0 with all heads, so trained: {full}.",
        "",
        *_header("score", result),
    ]
    for score in SCORES:
        texts = [
            _cell(result["cells"].get((RETRAINED[0], score, step)), len(args.seeds))
            for step in range(1, len(result["sparsities"]) + 1)
        ]
        lines.append(f"| `{score}` | " + " | ".join(texts) + " |")
    lines += ["", _verdict(result, RETRAINED[0])]
    if len(args.seeds) == 1:
        lines.append("With one seed the intervals are over examples only.")
    own = [m for m in result["missing"] if m.startswith(RETRAINED[0])]
    return [*lines, *(["", *(f"- Not run: {m}" for m in own)] if own else []), ""]


def _time(result: Found) -> list[str]:
    lines = ["## Time", "", "| run | seconds | scoring | training | evaluating |", "|---|---|---|---|---|"]
    for name, spent in result["seconds"].items():
        shares = [f"{spent['shares'].get(k, 0):.0%}" for k in ("score", "train", "evaluate")]
        lines.append(f"| {name} | {spent['total']:.0f} | " + " | ".join(shares) + " |")
    return [*lines, "", f"{result.get('threads', '?')} processor thread; other work shared the machine.", ""]


# parts ------------------------------------------------------------------------------------------


def _lead(result: Found, algorithm: str, score: str, step: int) -> dict[int, np.ndarray] | None:
    """By seed that both have: [n] right by the score minus right by random. None without such a seed."""
    right = result["right"]
    own, chance = right.get((algorithm, score, step), {}), right.get((algorithm, "random", step), {})
    return {s: own[s].astype(float) - chance[s] for s in sorted(own.keys() & chance.keys())} or None


def _seeds(args: argparse.Namespace) -> str:
    return f"seed{'s' if len(args.seeds) > 1 else ''} {', '.join(map(str, args.seeds))}"


def _called(algorithm: str) -> str:
    what = ALGORITHMS[algorithm]
    return f"{what.title} ({'retrained' if what.retrains else 'no retraining'})"


def _header(first: str, result: Found) -> list[str]:
    shares = result["sparsities"]
    return [f"| {first} | " + " | ".join(f"{s:.1%} off" for s in shares) + " |", "|---|" + "---|" * len(shares)]


def _cell(cell: dict[str, Any] | None, seeds: int) -> str:
    if cell is None:
        return "–"
    few = "" if cell["seeds"] == seeds else f" ({cell['seeds']})"
    return f"{cell['mean']:.3f} [{cell['low']:.3f}, {cell['high']:.3f}]{few}"


def _signed(value: float, low: float, high: float) -> str:
    return f"{value:+.3f} [{low:+.3f}, {high:+.3f}]".replace("-", "−")
