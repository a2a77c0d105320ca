"""``headviz grade``: which head score is right on a model."""

from __future__ import annotations

import argparse

from ..analyses.catalogue import ANALYSES
from . import analyse
from .ablate import add_figure
from .view_text import Shown

show = analyse.show


def add_arguments(parser: argparse.ArgumentParser) -> None:
    analyse.declare(parser, ANALYSES["grade"])
    add_figure(parser)


def run(args: argparse.Namespace) -> Shown:
    args.analysis = "grade"
    return analyse.run(args)
