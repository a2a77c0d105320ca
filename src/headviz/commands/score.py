"""``headviz score``: a head score over a sample of the training split."""

from __future__ import annotations

import argparse
import time
from typing import Any

import headviz

from ..display.numbers import fixed
from ..display.table import heads_table
from ..errors import LARGEST_SEED, OptionError
from ..heads import HeadId, order_note
from ..options import Option, add_options, declared
from ..progress import progress_bar
from ..scores.catalogue import DEFAULT, PRESETS, SCORES, preset_named, score_named
from ..storage.exchange import read_scores
from ..tasks import DEFAULT_SAMPLES, LengthFilter, sample
from .common import NO_CACHE, add_mask, add_model, add_task, load_data, load_model, read_mask, table_text, warn

OPTIONS = (
    Option("score", help=", ".join(SCORES), usual=DEFAULT, metavar="NAME"),
    Option("preset", help=f"a published choice: {', '.join(PRESETS)}", metavar="NAME"),
    Option("samples", DEFAULT_SAMPLES, "examples", least=1, metavar="N"),
    Option("seed", 0, "seed of the draw", most=LARGEST_SEED, metavar="S"),
    Option(
        "length_filter", help="lengths kept: none = all, quantile, std", usual="none, unless a preset says", metavar="F"
    ),
    NO_CACHE,
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    add_task(parser, split="train")
    add_mask(parser)
    add_options(parser, OPTIONS)
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="OPTION=VALUE",
        help="an option of the score, such as rows=influential or abs_level=token; repeatable",
    )


def run(args: argparse.Namespace) -> dict[str, Any]:
    chosen = preset_named(args.preset).score if args.preset is not None else args.score or DEFAULT
    options = read_options(chosen, args.set)
    if score_named(chosen).seeded:
        options.setdefault("seed", args.seed)
    score_named(chosen).options_from(options)
    usual = "none" if args.preset is None else preset_named(args.preset).length_filter
    length_filter = LengthFilter(args.length_filter or usual)
    data = load_data(args)
    clf = load_model(args, data)
    mask = read_mask(args, clf)
    drawn = sample(data, args.samples, seed=args.seed, length_filter=length_filter, lengths=clf.tokenizer)
    start = time.perf_counter()
    with progress_bar("scoring heads", "--samples N takes fewer examples.") as progress:
        result = headviz.score_heads(
            clf,
            drawn,
            args.score,
            preset=args.preset,
            mask=mask,
            label_order=args.label_order,
            cache=not args.no_cache,
            progress=progress,
            **options,
        )
    for note in result.notes:
        warn(note)
    return {
        "model": clf.name,
        "task": data.task.name,
        "split": data.split,
        **result.to_dict(),
        "ranking": [h.dotted for h in result.ranked()],
        "sample": drawn.report.text() if drawn.report is not None and result.samples else None,
        "seconds": round(time.perf_counter() - start, 4),
    }


def read_options(score: str, words: list[str]) -> dict[str, Any]:
    """``name=value`` pairs; each value has the type of the option's default."""
    options = declared(score_named(score).options)
    values: dict[str, Any] = {}
    for text in words:
        name, sign, value = text.partition("=")
        if not sign:
            raise OptionError(f"'{text}' sets nothing. Write OPTION=VALUE, such as rows=influential.")
        try:
            values[name] = options[name].read(value) if name in options else value
        except OptionError as error:
            raise OptionError(f"{name}: {error}.") from error
    return values


def show(result: dict[str, Any]) -> str:
    scores = read_scores(result)
    ends = (scores.interval_low, scores.interval_high)
    heads = [HeadId.parse(head) for head in result["ranking"]]
    scores_table = heads_table("scores", heads, result["score"], scores.values, ends, form=fixed)
    header, *lines = table_text(scores_table).split("\n")
    if len(lines) > 12:
        lines = [*lines[:5], "…", *lines[-5:]]
    rows = "\n".join([header, *lines])
    if result["samples"]:
        title = f"{result['task']} {result['split']}: {result['sample'] or ''}".rstrip(": ")
    else:
        title = f"{result['score']} needs no examples: it reads none of {result['task']} {result['split']}."
    text = [title, "", rows, ""]
    if result["stability"] is not None:
        text.append(
            f"Another sample of this size would agree on {100 * result['stability']:.0f} % of the lowest fifth."
        )
    if ties := order_note(result["tied"], sum(v is not None for row in result["values"] for v in row)):
        text.append(ties.strip())
    read = f"{result['samples']:,} examples, " if result["samples"] else ""
    text.append(f"{read}{result['seconds']:.1f} s")
    return "\n".join(text)
