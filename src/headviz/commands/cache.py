"""``headviz cache show | clear``: what the cache keeps on disk."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import Any

from ..storage.store import LIMIT_VARIABLE, default_store
from .common import table

ACTIONS = ("show", "clear")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=ACTIONS, help="show what is kept, or drop all of it")


def run(args: argparse.Namespace) -> dict[str, Any]:
    store = default_store()
    if args.action == "clear":
        dropped = store.clear()
        return {"dropped": dropped, **asdict(store.usage())}
    return asdict(store.usage())


def show(result: dict[str, Any]) -> str:
    rows = [("folder", result["folder"])]
    if "dropped" in result:
        rows.append(("dropped", f"{result['dropped']:,} entries"))
    rows.append(("entries", f"{result['entries']:,}"))
    rows += [(f"  {kind}", f"{count:,}") for kind, count in result["kinds"].items()]
    rows.append(("size", f"{result['bytes'] / 2**20:,.1f} MB of at most {result['limit'] / 2**20:,.0f} MB"))
    rows.append(("limit set by", f"${LIMIT_VARIABLE}, such as 4GB"))
    return table(rows)
