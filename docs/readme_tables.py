"""Write the README's tables from the code's: ``python docs/readme_tables.py`` (``--check`` only compares)."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

README = Path(__file__).resolve().parents[1] / "README.md"


def commands() -> Iterator[str]:
    from headviz.cli import COMMANDS

    yield "| command | what it does |"
    yield "|---|---|"
    for name, (_, text) in COMMANDS.items():
        yield f"| `headviz {name}` | {text} |"


def scores() -> Iterator[str]:
    from headviz.scores.catalogue import SCORES, THESIS

    yield "**Head scores** (high = keep; every one with its interval, NaN where nothing was measured):"
    yield ""
    yield "| score | formula | source |"
    yield "|---|---|---|"
    for s in SCORES.values():
        yield f"| `{s.name}` | {s.formula.replace('|', '&#124;')} | {s.source.replace(THESIS, '2024 thesis')} |"


def algorithms() -> Iterator[str]:
    from headviz.pruning.algorithms import ALGORITHMS

    yield "**Pruning algorithms** (θ0 = pre-trained weights, θ* = fine-tuned weights, κ = step):"
    yield ""
    yield "| algorithm | what it does | source |"
    yield "|---|---|---|"
    for a in ALGORITHMS.values():
        yield f"| `{a.name}` | {a.what} | {a.source} |"


def analyses() -> Iterator[str]:
    from headviz.analyses.analysis import MICHEL, THESIS
    from headviz.analyses.catalogue import ANALYSES

    yield "**Analyses** (each a figure, a table and one sentence; on a page of the dashboard and as a command):"
    yield ""
    yield "| command | what it answers | source |"
    yield "|---|---|---|"
    for a in ANALYSES.values():
        source = a.source.replace(MICHEL, "Michel et al. 2019").replace(THESIS, "2024 thesis")
        yield f"| `{a.line.removeprefix('headviz ')}` | {a.question} | {source} |"


def families() -> Iterator[str]:
    from headviz.models.families import FAMILIES

    encoders = [family for family in FAMILIES.values() if not family.translates]
    yield f"Masks, scores and evaluation work for {', '.join(f.title for f in encoders)}."
    yield "Heads can really be removed from all of these, with these exceptions:"
    for family in encoders:
        if not family.prunable:
            yield f"* {family.why_not_prunable}."


TABLES = {"commands": commands, "families": families, "scores": scores, "algorithms": algorithms, "analyses": analyses}


def filled(text: str) -> str:
    """The README with every marked table as the code has it now."""
    for name, rows in TABLES.items():
        body = "\n".join(rows())
        pattern = rf"<!-- {name} -->(?:.*?<!-- /{name} -->)?"
        text, count = re.subn(pattern, lambda _, n=name, b=body: f"<!-- {n} -->\n{b}\n<!-- /{n} -->", text, flags=re.S)
        if count != 1:
            raise SystemExit(f"README.md needs the mark <!-- {name} --> once, not {count} times.")
    return text


def main() -> int:
    now = README.read_text(encoding="utf-8")
    then = filled(now)
    if "--check" in sys.argv:
        return int(now != then)
    README.write_text(then, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
