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
    yield "# Which head score is right?"
    yield ""
    yield "Written by `python -m tools.demo.grades`. Do not edit."
    yield ""
    yield "`headviz grade` answers it for a model and data of your own. Heads are removed in the order of a score that was"
    yield "measured on the other half of the data, both ways. *Area* is the share of what the model knows above one class"
    yield "for all that is left, averaged over 10 to 90 % of the heads off: 1 = everything, 0 = nothing."
    yield ""
    yield "## On the demo"
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
    yield "Intervals (95 %) are over examples drawn again. *Lead* is the area minus that of 20 random orders. *CPR* and"
    yield "*CMD* are the areas of the Mechanistic Interpretability Benchmark. *Agreement* is Spearman's correlation with"
    yield f"the exact cost of each head. *AUROC* and *precision* are against the {found.grades.planted} heads to which the"
    yield "demo's training gave a part; a head may matter without being one of them. *Stability* is the share of the"
    yield "lowest fifth that both halves name."
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
