"""The thesis's printed tables of pruned models and winning tickets."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from ...reference import Published, tables_in

FILES = {
    "lottery": "thesis_lottery_80pct.csv",
    "pruned": "thesis_pruned_no_retraining_70pct.csv",
    "tickets": "thesis_winning_tickets.csv",
}
# algorithm -> its row in the tables with retraining
ROWS = {"igspf": "IGSPF", "igspp": "IGSPP", "one-shot-isp": "one-shot ISP"}


@cache
def published(name: str) -> Published:
    """The table of one file; ``name`` is a key of ``FILES``."""
    (table,) = tables_in((files(__package__) / FILES[name]).read_text(encoding="utf-8"))
    return table
