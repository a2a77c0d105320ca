"""Grade every head score on the shipped demo, once: `python -m tools.demo.grades` (some three hours of a processor).

Writes `grades.json` beside the demo, which the dashboard shows as recorded, and study/scores.md. With `--add A,B` these
scores join the recorded ones, and with `--only-page` the page alone is written, from the grades that are there. Each
score is kept when it is measured (`build/grades`), so that an interrupted call goes on.
"""

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from headviz import __version__
from headviz.analyses.grades import FILE, RANDOM, Grade, Recorded, finding, read, table_of
from headviz.analyses.grading import SHAPLEY
from headviz.demo import DATA
from headviz.scores.catalogue import SCORES
from headviz.storage.store import Store

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "study" / "scores.md"
WORK = ROOT / "build" / "grades"
LIMIT = 400
SAME = 1e-4  # areas: another number of threads may turn an answer that is almost a tie
INTRODUCTION = """\
# Which head score is right?

Written by `python -m tools.demo.grades`, and with `--add A,B` for scores that came later. Do not edit.

`headviz grade` answers it for a model and data of your own. Heads are removed in the order of a score that was measured
on the other half of the data, both ways. *Area* is the share of what the model knows above one class for all that is
left, averaged over 10 to 90 % of the heads off: 1 = everything, 0 = nothing. It is of balanced accuracy, the mean over
the classes: one class for all is worth the same there whichever it is. `shapley` is graded where it is named: it takes
minutes. Translation models are not graded: areas count right answers of each class, and translations have no classes.

The table below is one model's, the demo's. The orders are others on MiniLM, fine-tuned on SST-2 and on MRPC, and on
MPNet, fine-tuned on MRPC ([side by side](results.md#over-all-boards)). These two are sentence encoders trained by
contrast, with a new pooler and classifier; they are not masked-language models.

## On the demo"""
COLUMNS_READ = """\
The data are cut into halves in five ways. Intervals (95 %) are over examples drawn again and over the half that a score
was measured on; those of *behind the best* hold for all scores at once, because the best was picked. The draws were
not kept, so other pairs of scores have no interval: name both to `headviz grade --scores`. *Lead* is the area
minus that of 20 random orders. *CPR* and *CMD* are the areas of the Mechanistic Interpretability Benchmark.
*Agreement* is Spearman's correlation with the exact cost of each head, or with its Shapley value, on the other half.
*Heads tied*: in the tables of both halves; where some do, values are means over ten drawn orders of them, and the next
column goes from the lowest area to the highest.
*AUROC* and *precision* are against the {planted} heads to which the demo's training gave a part; a head may matter
without being one of them. *Stability* is the share of the lowest fifth that both halves name. The page *Heads*, *Which
score*, draws the curves behind the areas, and the areas against the seconds."""
READ = """\
## Where recent formulas were read

`gim`: the authors' package (github.com/corticph/gim), whose gradients take the place of Taylor's. `hies`: the paper,
eq. (1) and appendix B.2.1; appendix D.8 writes the entropy without "1 −", against the paper's own reading. Its code was
not published. `gnorm`: the formula in the authors' repository (github.com/dionysus23334/Greedy-Gnorm), over single
examples; their scripts (github.com/Sheridan-Stable/greedy-gnorm) take norms over batches of 128, with dropout."""


def measure(limit: int, scores: Sequence[str] | None) -> Recorded:
    """The grades on so many dev examples, half of them for each side."""
    import headviz

    clf, data = headviz.load("demo", device="cpu"), headviz.load_task("demo", limit=limit)
    with headviz.progress_bar("grading") as progress:
        grades = headviz.grade(clf, data, scores, progress, cache=Store(WORK))
    command = f"headviz grade --model demo --task demo --limit {limit}"
    if scores is not None:
        command += f" --scores {','.join(scores)}"
    return Recorded(grades, datetime.now(UTC).date().isoformat(), __version__, command)


def added(recorded: Recorded, names: Sequence[str], limit: int) -> Recorded:
    """The recorded grades with those of further scores, measured beside the recorded best and random orders.

    With Shapley values the others are measured again as well, for their agreement with them.

    Refused where that is not the same as if all had been measured at once: other examples or weights, or a new best,
    whose lead over each of the others is not known.
    """
    old = {g.score: g for g in recorded.grades.scores}
    others = list(old) if SHAPLEY in names else [recorded.grades.best, RANDOM]
    result = measure(limit, list(dict.fromkeys([*names, *others])))
    for g in result.grades.scores:
        if g.score not in names and abs(g.area - old[g.score].area) > SAME:
            raise SystemExit(f"{g.score} has another area than recorded: measure all scores again, without --add.")
    if result.grades.best != recorded.grades.best:
        raise SystemExit(f"{result.grades.best} is the new best: measure all scores again, without --add.")
    agreed = {g.score: replace(old[g.score], shapley=g.shapley) for g in result.grades if g.score in old}
    new: dict[str, Grade] = {g.score: g for g in result.grades if g.score in names}
    for name in new.keys() & old.keys():  # measured once more: its agreement with Shapley values is of the same table
        new[name] = replace(new[name], shapley=new[name].shapley or old[name].shapley)
    if SHAPLEY in names:
        new = agreed | new
    joined = tuple(sorted((old | new).values(), key=lambda g: -g.area))
    command = f"{recorded.command} # {', '.join(names)} added on {result.date} with headviz {result.version}"
    return replace(recorded, grades=replace(recorded.grades, scores=joined), command=command)


def page(found: Recorded) -> Iterator[str]:
    """study/scores.md, line by line."""
    yield from INTRODUCTION.splitlines()
    yield ""
    yield f"{found.about} ({found.grades.n} examples)."
    yield ""
    yield f"**{finding(found.grades)}**"
    yield ""
    shown, rows = table_of(found.grades).for_files()
    yield f"| {' | '.join(shown)} |"
    yield f"|{'---|' * len(shown)}"
    for score, *values in rows:
        yield f"| `{score}` | {' | '.join(_cell(v) for v in values)} |"
    yield ""
    yield from COLUMNS_READ.format(planted=found.grades.planted).splitlines()
    yield ""
    yield from READ.splitlines()
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
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def write(found: Recorded) -> None:
    (DATA / FILE).write_text(found.to_json(indent=1) + "\n", encoding="utf-8")
    write_page(found)


def write_page(found: Recorded) -> None:
    PAGE.write_text("\n".join(page(found)) + "\n", encoding="utf-8")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limit", type=int, default=LIMIT)
    parser.add_argument("--scores", help="names separated by commas (default: all but the slow ones)")
    parser.add_argument("--add", help="names separated by commas: these join the recorded ones")
    parser.add_argument("--only-page", action="store_true")
    options = parser.parse_args()
    if options.only_page or options.add:
        recorded = read(json.loads((DATA / FILE).read_text(encoding="utf-8")))
    if options.only_page:
        write_page(recorded)
        return
    if options.add:
        result = added(recorded, options.add.split(","), options.limit)
    else:
        result = measure(options.limit, options.scores.split(",") if options.scores else None)
    write(result)
    print(finding(result.grades))


if __name__ == "__main__":
    main()
