"""``headviz roles``: what each head looks at."""

from __future__ import annotations

import argparse

from ..analyses.catalogue import ANALYSES
from . import analyse
from .ablate import add_figure
from .view_text import Shown

show = analyse.show


def add_arguments(parser: argparse.ArgumentParser) -> None:
    analyse.declare(parser, ANALYSES["roles"])
    add_figure(parser)


def run(args: argparse.Namespace) -> Shown:
    args.analysis = "roles"
    return analyse.run(args)
