"""What the dashboard's process takes, and what bounds it."""

from __future__ import annotations

import psutil

from .jobs import BYTES
from .loaders import DATASETS, EVALUATORS, MODELS


def sentence() -> str:
    taken = psutil.Process().memory_info().rss / 2**30
    return (
        f"This dashboard takes {taken:.1f} GB of memory. For all its visitors together it keeps at most {MODELS} "
        f"models, {DATASETS} data sets, {EVALUATORS} evaluators with 1 GB of states each, and {BYTES // 2**20} MB "
        "of results."
    )
