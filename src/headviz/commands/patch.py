"""``headviz patch``: what each head carries from one text to another."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

import numpy as np

import headviz

from ..attribution.alignment import ALL, POSITIONS
from ..display.numbers import fixed
from ..display.table import heads_table, paths_table
from ..errors import OptionError
from ..heads import HeadId, HeadMask, highest
from ..options import Option, add_options, short
from ..progress import progress_bar
from ..storage.exchange import restored
from ..storage.paths import outside_path
from ..tasks.readers import read_table
from .common import TEXTS, add_masked_model, in_their_place, masked_model, place_rows, table, table_text, warn

if TYPE_CHECKING:
    from ..attribution.patching import Text
    from ..models.classifier import Classifier


WHAT = (  # one of the two
    Option("text", help="the text into whose pass heads are put", metavar="A"),
    Option(
        "pairs",
        help="many: a table with columns text, donor, and text_pair, donor_pair for models that compare two texts, or "
        "with two columns of texts, or of pairs with | between their texts",
        metavar="FILE",
    ),
)
OPTIONS = (
    TEXTS[1],
    Option("donor", help="the text from which their outputs are taken", metavar="A2"),
    Option("donor_pair", help="the donor's pair", usual="the text's", metavar="B2"),
    Option("positions", ALL, f"{', '.join(POSITIONS)}, or token numbers such as 0,4", metavar="P"),
    Option(
        "alignment",
        help="token I of the text stands for token J of the donor",
        usual="by common words",
        metavar="I:J,…",
    ),
    Option("target", help="a class whose logit is measured", usual="the donor's answer minus the text's", metavar="T"),
    Option("paths", False, "also the strongest paths from head to head and to the answer"),
    Option("top", 10, "heads in the printed table", least=1, metavar="K"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_masked_model(parser)
    add_options(parser.add_mutually_exclusive_group(required=True), WHAT)
    add_options(parser, OPTIONS)


def run(args: argparse.Namespace) -> dict[str, Any]:
    positions, alignment = _positions(args.positions), _alignment(args.alignment)
    if args.paths and not isinstance(positions, str):
        raise OptionError(f"With --paths, --positions is one of {', '.join(POSITIONS)}.")
    if args.paths and args.target is not None:
        raise OptionError("--paths measures the donor's answer against the text's. Leave out --target.")
    if args.pairs is not None:
        return _many(args, positions)
    if args.donor is None:
        raise OptionError("--text needs a --donor, from which outputs are taken.")
    clf, mask = masked_model(args)
    text, donor = _text(args.text, args.text_pair), _text(args.donor, args.donor_pair or args.text_pair)
    with progress_bar("layers") as progress:
        result = headviz.patch(
            clf, text, donor, positions=positions, target=args.target, alignment=alignment, mask=mask, progress=progress
        )
    return result.to_dict() | _about(args, clf, mask) | _paths(args, clf, [(text, donor)], alignment, mask)


def _about(args: argparse.Namespace, clf: Classifier, mask: HeadMask) -> dict[str, Any]:
    return {"mask": mask.hex, **in_their_place(clf), "top": args.top}


def _paths(
    args: argparse.Namespace,
    clf: Classifier,
    pairs: list[tuple[Text, Text]],
    alignment: dict[int, int] | None,
    mask: HeadMask,
) -> dict[str, Any]:
    """``paths`` where they are asked for, after a warning of their cost."""
    from ..attribution.paths import paths, texts_at_most

    if not args.paths:
        return {}
    warn(f"the paths pass up to {texts_at_most(mask, len(pairs)):,} texts through the model; Ctrl+C stops them.")
    with progress_bar("paths") as progress:
        result = paths(clf, pairs, positions=args.positions, alignment=alignment, mask=mask, progress=progress)
        return {"paths": result.to_dict()}


def _many(args: argparse.Namespace, positions: str | list[int]) -> dict[str, Any]:
    """A set of pairs from a file."""
    from ..attribution.patching import pairs_of, patch_pairs

    if args.donor is not None or args.donor_pair is not None or args.text_pair is not None or args.target is not None:
        raise OptionError("With --pairs the texts come from the file, and each pair's own answers are measured.")
    if not isinstance(positions, str):
        raise OptionError(f"With --pairs, --positions is one of {', '.join(POSITIONS)}.")
    if args.alignment is not None:
        raise OptionError("--alignment belongs to one pair of texts, and --pairs names many. Leave it out.")
    texts = pairs_of(read_table(outside_path(args.pairs, "--pairs")))
    clf, mask = masked_model(args)
    with progress_bar("pairs") as progress:
        result = patch_pairs(clf, texts, positions=positions, mask=mask, progress=progress)
    return result.to_dict() | _about(args, clf, mask) | _paths(args, clf, texts, None, mask)


def _text(first: str, second: str | None) -> Text:
    return first if second is None else (first, second)


def _positions(text: str) -> str | list[int]:
    if not text.replace(",", "").replace(" ", "").isdecimal():
        return text
    parts = [part.strip() for part in text.split(",")]
    if not all(parts):
        raise OptionError(f"--positions {text} has an empty place. Write token numbers such as 0,4.")
    return [_token(part, "--positions") for part in parts]


def _alignment(text: str | None) -> dict[int, int] | None:
    if text is None:
        return None
    pairs = [part.split(":") for part in text.split(",")]
    if not all(len(pair) == 2 and all(side.strip().isdecimal() for side in pair) for pair in pairs):
        raise OptionError(f"--alignment {short(text)} is not as it should be. Write pairs of tokens such as 0:0,4:5.")
    alignment = [(_token(i, "--alignment"), _token(j, "--alignment")) for i, j in pairs]
    if len(dict(alignment)) < len(alignment):
        raise OptionError(f"--alignment {short(text)} names a token of the text twice.")
    return dict(alignment)


def _token(text: str, option: str) -> int:
    if len(text.strip()) > 9:
        raise OptionError(f"{option} names token {short(text)}; no text has so many.")
    return int(text)


def _show_many(result: dict[str, Any]) -> str:
    mean, low, high, q = (
        np.array(result[name], dtype=float) for name in ("mean", "interval_low", "interval_high", "q_value")
    )
    heads = map(HeadId.parse, result["ranking"][: result["top"]])
    rows = table_text(heads_table("pairs", heads, "effect", mean, (low, high), {"q": q}, form="%+.3f"))
    left_out = result["same_answer"] + result["small"]
    return (
        f"{result['n']} pairs; {left_out} left out ({result['same_answer']} with one answer for both texts, "
        f"{result['small']} that hardly move it)\n\n{rows}\n\n0 = as for the text, 1 = as for the donor"
    )


def show(result: dict[str, Any]) -> str:
    heads = _show_many(result) if "ranking" in result else _show_one(result)
    heads += "".join(f"\n{name}: {value}" for name, value in place_rows(result))
    return heads if "paths" not in result else f"{heads}\n\n{_show_paths(result['paths'])}"


def _show_paths(paths: dict[str, Any]) -> str:
    from ..attribution.paths import Edge

    edges = [restored(Edge, edge, (1, 1)) for edge in paths["edges"]]
    rows = table_text(paths_table(edges, paths["n"] > 1))
    return f"the strongest paths, over {paths['n']} pair{'' if paths['n'] == 1 else 's'}\n\n{rows}"


def _show_one(result: dict[str, Any]) -> str:
    effect = np.array(result["effect"], dtype=float)  # null becomes NaN
    patched = [result["tokens"][i] for i in result["positions"]]
    head = table(
        [
            ("answer for the text", result["from_label"]),
            ("answer for the donor", result["to_label"]),
            ("measured", result["measured"]),
            ("tokens patched", f"{len(patched)} of {len(result['tokens'])}: {' '.join(patched)}"),
        ]
    )
    if not np.isfinite(effect).any():
        return f"{head}\n\nBoth texts have the same value of what is measured, so no head can move it."
    rows = table_text(heads_table("patched", highest(np.abs(effect))[: result["top"]], "effect", effect, form="%+.3f"))
    largest = fixed(float(np.nanmax(np.abs(effect))), 3)
    return f"{head}\n\n{rows}\n\n0 = as for the text, 1 = as for the donor; largest {largest}"
