"""``headviz convert``: a folder with its weights as safetensors, in today's format."""

from __future__ import annotations

import argparse
from typing import Any

import headviz

from ..models.hub import existing_folder
from ..options import Option, add_options
from .common import table

OPTIONS = (Option("out", help="a new folder", metavar="DIR", required=True),)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "folder", metavar="DIR", help="pytorch_model.bin, an adapter, or a folder of an earlier version of headviz"
    )
    add_options(parser, OPTIONS)


def run(args: argparse.Namespace) -> dict[str, Any]:
    existing_folder(args.folder)
    folder = headviz.convert(args.folder, args.out)
    return {"out": str(folder), "bytes": sum(path.stat().st_size for path in folder.rglob("*.safetensors"))}


def show(result: dict[str, Any]) -> str:
    return table([("saved", result["out"]), ("weights", f"{result['bytes'] / 1e6:,.1f} MB")])
