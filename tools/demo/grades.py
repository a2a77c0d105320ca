"""Grade every head score on the shipped demo, once: `python -m tools.demo.grades` (some twenty minutes).

Writes `grades.json` beside the demo, which the dashboard shows as recorded, and docs/scores.md. With `--only-page` the
page alone, from the grades that are there.
"""

import argparse
import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from headviz import __version__
from headviz.analyses import board
from headviz.analyses.grading import COLUMNS, finding
from headviz.demo import DATA
from headviz.scores.catalogue import SCORES

PAGE = Path(__file__).resolve().parents[2] / "docs" / "scores.md"
LIMIT = 400
INTRODUCTION = """\
# Which head score is right?

Written by `python -m tools.demo.grades`. Do not edit.

`headviz grade` answers it for a model and data of your own. Heads are removed in the order of a score that was measured
on the other half of the data, both ways. *Area* is the share of what the model knows above one class for all that is
left, averaged over 10 to 90 % of the heads off: 1 = everything, 0 = nothing. `shapley` is graded where it is named: it
takes minutes.

## On the demo"""
COLUMNS_READ = """\
Intervals (95 %) are over examples drawn again. *Lead* is the area minus that of 20 random orders. *CPR* and *CMD* are
the areas of the Mechanistic Interpretability Benchmark. *Agreement* is Spearman's correlation with the exact cost of
each head. *AUROC* and *precision* are against the {planted} heads to which the demo's training gave a part; a head may
matter without being one of them. *Stability* is the share of the lowest fifth that both halves name."""
SHOWN = tuple(name for name in COLUMNS if name != "agreement with Shapley")


def measure(limit: int, scores: Sequence[str] | None) -> board.Recorded:
    """The grades on so many dev examples, half of them for each side."""
    import headviz

    clf, data = headviz.load("demo", device="cpu"), headviz.load_task("demo", limit=limit)
    with headviz.progress_bar("grading") as progress:
        grades = headviz.grade(clf, data, scores, progress)
    command = f"headviz grade --model demo --task demo --limit {limit}"
    if scores is not None:
        command += f" --scores {','.join(scores)}"
    return board.Recorded(grades, datetime.now(UTC).date().isoformat(), __version__, command)


def page(found: board.Recorded) -> Iterator[str]:
    """docs/scores.md, line by line."""
    yield from INTRODUCTION.splitlines()
    yield ""
    yield f"{found.about} ({found.grades.n} examples)."
    yield ""
    yield f"**{finding(found.grades)}**"
    yield ""
    yield f"| {' | '.join(SHOWN)} |"
    yield f"|{'---|' * len(SHOWN)}"
    for grade in found.grades.scores:
        values = [getattr(grade, COLUMNS[name]) for name in SHOWN]
        yield f"| {' | '.join(_cell(v) for v in values)} |"
    yield ""
    yield from COLUMNS_READ.format(planted=found.grades.planted).splitlines()
    yield ""
    yield "## What they are"
    for score in SCORES.values():
        yield ""
        yield f"### `{score.name}`: {score.title}"
        yield ""
        yield f"{score.meaning} Formula: {score.formula}. Source: {score.source}."
        if score.caution:
            yield f"Caution: {score.caution}."


def _cell(value: object) -> str:
    if value is None:
        return "–"
    return f"{value:.3f}" if isinstance(value, float) else f"`{value}`"


def write(found: board.Recorded) -> None:
    (DATA / board.FILE).write_text(found.to_json(indent=1) + "\n", encoding="utf-8")
    write_page(found)


def write_page(found: board.Recorded) -> None:
    PAGE.write_text("\n".join(page(found)) + "\n", encoding="utf-8")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limit", type=int, default=LIMIT)
    parser.add_argument("--scores", help="names separated by commas (default: all but the slow ones)")
    parser.add_argument("--only-page", action="store_true")
    given = parser.parse_args()
    if given.only_page:
        write_page(board.read(json.loads((DATA / board.FILE).read_text(encoding="utf-8"))))
        return
    found = measure(given.limit, given.scores.split(",") if given.scores else None)
    write(found)
    print(finding(found.grades))


if __name__ == "__main__":
    main()
