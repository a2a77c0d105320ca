"""``headviz grade``: which head score is right on a model."""

from __future__ import annotations

import argparse

from ..analyses.catalogue import ANALYSES
from .analyse import declare
from .analyse import run as run
from .analyse import show as show


def add_arguments(parser: argparse.ArgumentParser) -> None:
    declare(parser, ANALYSES["grade"])
