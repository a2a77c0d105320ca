"""``headviz roles``: what each head looks at."""

from __future__ import annotations

import argparse

from ..analyses.catalogue import ANALYSES
from .analyse import declare, run, show

__all__ = ["add_arguments", "run", "show"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    declare(parser, ANALYSES["roles"])
