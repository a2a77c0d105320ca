"""``headviz tokens``: which words an answer comes from, by several methods side by side."""

from __future__ import annotations

import argparse
from typing import Any

import headviz

from ..attribution.token_methods import METHODS, ORDERS, chosen_methods
from ..display.numbers import fixed
from ..display.table import areas_table
from ..errors import LARGEST_SEED
from ..options import Option, add_options
from ..progress import progress_bar
from .common import TARGET, TEXTS, add_masked_model, in_their_place, masked_model, place_rows, table, table_text

OPTIONS = (
    Option("methods", None, ", ".join(METHODS), several=True, usual="all that the model has", metavar="M,…"),
    *TARGET,
    Option("orders", ORDERS, "random orders that the curves are compared with", least=1, most=1000, metavar="N"),
    Option("seed", 0, "of the random orders", most=LARGEST_SEED, metavar="S"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_masked_model(parser)
    add_options(parser, (*TEXTS, *OPTIONS))


def run(args: argparse.Namespace) -> dict[str, Any]:
    chosen_methods(args.methods)  # a wrong name is told before the model is loaded
    clf, mask = masked_model(args)
    with progress_bar("passes") as progress:
        result = headviz.token_explanations(
            clf,
            args.text,
            args.text_pair,
            methods=args.methods,
            target=args.target,
            label=args.label,
            orders=args.orders,
            seed=args.seed,
            mask=mask,
            progress=progress,
        )
    return result.to_dict() | in_their_place(clf)


def show(result: dict[str, Any]) -> str:
    methods = result["methods"]
    words = [i for i, special in enumerate(result["special"]) if not special]
    values = [("word", *methods)]
    values += [(result["tokens"][i], *(fixed(row[i]) for row in result["values"])) for i in words]
    agree = [("rank correlation", *methods)]
    agree += [(name, *map(fixed, row)) for name, row in zip(methods, result["rank_correlation"], strict=True)]
    place = "".join(f"\n{title}: {value}" for title, value in place_rows(result))
    parts = [f"class explained: {result['target_label']}{place}", table(values), table(agree)]
    parts.append(table_text(areas_table(result["areas"])))
    parts += [f"{name}: {why}" for name, why in result["refused"].items()]
    parts.append(
        f"Areas are of the {result['measured']}: a small one is good for deletion, a large one for insertion; next to "
        "each the share of random orders that are worse."
    )
    return "\n\n".join(parts)
