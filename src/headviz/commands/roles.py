"""``headviz roles``: what each head looks at."""

from __future__ import annotations

import argparse

from ..analyses.catalogue import ANALYSES
from .analyse import declare
from .analyse import run as run
from .analyse import show as show


def add_arguments(parser: argparse.ArgumentParser) -> None:
    declare(parser, ANALYSES["roles"])
