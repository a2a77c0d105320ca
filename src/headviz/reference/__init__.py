"""Published figures, to be shown next to ours and never mixed with them.

A file holds one or more tables; a line that begins with ``#`` is a heading: the first one after a table begins a
new table, and headings without rows are notes. Cells stay as printed. The functions below give the tables that an
analysis is compared with, by task.
"""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

FILES = {"michel": "michel_bert.csv", "michel-wmt": "michel_wmt.csv", "bands": "thesis_correlation_bands.csv"}


@dataclass(frozen=True)
class Published:
    """One published table: its heading and its rows by name, cells as printed."""

    title: str
    rows: dict[str, tuple[str, ...]]

    def numbers(self, row: str) -> list[float]:
        """A row as numbers: what stands before ± or brackets; NaN where a cell is empty."""
        return [_number(cell) for cell in self.rows[row]]


@cache
def published(name: str) -> tuple[Published, ...]:
    """The tables of one file, in order; ``name`` is a key of ``FILES``."""
    return tuple(tables_in((files(__name__) / FILES[name]).read_text(encoding="utf-8")))


def tables_in(text: str) -> list[Published]:
    """The tables of a file's text, in order."""
    tables: list[Published] = []
    title = ""
    rows: dict[str, tuple[str, ...]] = {}
    for line in text.splitlines():
        if line.startswith("#"):
            if rows:
                tables.append(Published(title, rows))
                rows = {}
            title = line.removeprefix("#").strip()
        elif line.strip():
            first, *cells = next(csv.reader([line]))
            rows[first] = tuple(c.strip() for c in cells)
    if rows:
        tables.append(Published(title, rows))
    return tables


def find(name: str, row: str) -> Published:
    """The table of a file that has this row."""
    return next(table for table in published(name) if row in table.rows)


def _number(cell: str) -> float:
    match = re.match(r"-?\d+(\.\d+)?", cell)
    return float(match[0]) if match else float("nan")


BERT = "BERT-base on MNLI matched, Michel et al. 2019"
WMT = "large transformer on WMT 2014 English-French, Michel et al. 2019"
NO_LOSS_TASKS = ("MNLI", "SST-2", "CoLA", "MRPC")
BATCHES = (1, 4, 16, 64)
EPOCHS = (1, 2, 3, 5, 10, 20, 30, 40)


@dataclass(frozen=True)
class PublishedTable:
    """One table; cells as printed. ``about`` says of which model and data, ``metric`` what its points are points of."""

    title: str
    about: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    metric: str = ""  # empty: no points of a metric


def nothing(task: str) -> list[PublishedTable]:
    """For analyses without published figures."""
    return []


def one_head_off(task: str) -> list[PublishedTable]:
    """The translation model's, for classifiers too: of BERT's single heads only a histogram was printed."""
    table = find("michel-wmt", "layer 1")
    header = ("encoder", *(f"head {h}" for h in range(1, 17)))
    return [
        PublishedTable(
            "Change of BLEU without one encoder head of a translation model (Table 1; * p < 0.01)",
            f"{WMT}; layers and heads count from 1",
            header,
            tuple((name, *cells) for name, cells in table.rows.items()),
            "bleu",
        )
    ]


def one_head_kept(task: str) -> list[PublishedTable]:
    layers = tuple(f"layer {i}" for i in range(1, 13))
    rows = tuple(
        (how, *find("michel", name).rows[name])
        for how, name in (("chosen on the reported data", "table3"), ("chosen on training data", "table6"))
    )
    return [
        PublishedTable(
            "Change of accuracy, points, with one head of a layer (Tables 3 and 6)",
            f"{BERT}; layers count from 1",
            ("one head kept", *layers),
            rows,
            "accuracy",
        )
    ]


def two_datasets(task: str) -> list[PublishedTable]:
    row = "fig2_pearson"
    rows = (
        ("BERT-base, MNLI matched and mismatched", *find("michel", row).rows[row]),
        ("translation model, newstest2013 and MTNT", *find("michel-wmt", row).rows[row]),
    )
    return [
        PublishedTable(
            "Agreement of both ablations (Figure 2)", "Michel et al. 2019", ("heads' ablations", "Pearson r"), rows
        )
    ]


def without_loss(task: str) -> list[PublishedTable]:
    shares = find("michel", "no_loss_share").rows["no_loss_share"]
    rows = tuple(zip(NO_LOSS_TASKS, shares, strict=True))
    (translated,) = find("michel-wmt", "no_loss_share").rows["no_loss_share"]
    return [
        PublishedTable(
            "Largest share of heads pruned without noticeable loss (Figures 3 and 6)",
            "BERT-base, and a large transformer for WMT, Michel et al. 2019",
            ("task", "share"),
            (*rows, ("WMT 2014 English-French", translated)),
        )
    ]


def during_training(task: str) -> list[PublishedTable]:
    unpruned = find("michel-wmt", "fig5_bleu").rows["fig5_bleu"]
    costs = find("michel-wmt", "fig5 from epoch 10").rows
    about = "transformer of 6 layers with 8 heads, IWSLT 2014 German-English, Michel et al. 2019"
    return [
        PublishedTable(
            "BLEU of the unpruned model in training (Figure 5)", about, tuple(f"epoch {e}" for e in EPOCHS), (unpruned,)
        ),
        PublishedTable(
            "What pruning costs in training (Figure 5)",
            about,
            ("when", "what"),
            tuple((name.removeprefix("fig5 "), *cells) for name, cells in costs.items()),
        ),
    ]


def speeds(task: str) -> list[PublishedTable]:
    rows = tuple(
        (model, *find("michel", name).rows[name])
        for model, name in (("full", "table4_full"), ("50 % of heads pruned", "table4_pruned"))
    )
    return [
        PublishedTable(
            "Examples per second (Table 4)",
            "BERT-base on a GTX 1080Ti, Michel et al. 2019",
            ("model", *(f"batch {b}" for b in BATCHES)),
            rows,
        )
    ]


def by_stack(task: str) -> list[PublishedTable]:
    tables = []
    for select, number, where in (("same", 2, "the reported data"), ("other", 5, "other data")):
        table = find("michel-wmt", f"{select} encoder")
        tables.append(
            PublishedTable(
                f"Change of BLEU with one head of a layer, chosen on {where} (Table {number}; * p < 0.01)",
                f"{WMT}; layers count from 1",
                ("stack", *(f"layer {i}" for i in range(1, 7))),
                tuple((name.split()[1], *cells) for name, cells in table.rows.items()),
                "bleu",
            )
        )
    pruned = find("michel-wmt", "fig4 encoder").rows
    tables.append(
        PublishedTable(
            "BLEU when heads of one stack are pruned (Figure 4)",
            WMT,
            ("stack", "pruned", "BLEU"),
            tuple((name.split()[1], *cells) for name, cells in pruned.items()),
        )
    )
    return [*one_head_off(task), *tables]


def bands(task: str) -> list[PublishedTable]:
    rows = tuple((name, f"{cells[0]} %") for name, cells in find("bands", "IMDB").rows.items())
    return [
        PublishedTable(
            "Share of heads with a correlation between 0.2 and 0.4",
            "fine-tuned BERT-base, inputs of at most 200 tokens, 2024 thesis, §6.5.2",
            ("task", "share of 144 heads"),
            rows,
        )
    ]
