"""Write the tables of docs/tables.md, docs/options.md and docs/families.md: ``python docs/readme_tables.py``
(``--check`` compares)."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent


def commands() -> Iterator[str]:
    from headviz.cli import COMMANDS

    yield "| command | what it does |"
    yield "|---|---|"
    for name, command in COMMANDS.items():
        yield f"| `headviz {name}` | {command.about} |"


def scores() -> Iterator[str]:
    from headviz.scores.catalogue import SCORES, THESIS

    yield (
        "High = keep; NaN where nothing was measured. Means over examples have an interval; learned gates, ranks, "
        "weights and random numbers have none."
    )
    yield ""
    yield "| score | formula | source |"
    yield "|---|---|---|"
    for s in SCORES.values():
        yield f"| `{s.name}` | {s.formula.replace('|', '&#124;')} | {s.source.replace(THESIS, '2024 thesis')} |"


def algorithms() -> Iterator[str]:
    from headviz.pruning.algorithms import ALGORITHMS

    yield "θ0 = pre-trained weights, θ* = fine-tuned weights, κ = step."
    yield ""
    yield "| algorithm | what it does | source |"
    yield "|---|---|---|"
    for a in ALGORITHMS.values():
        yield f"| `{a.name}` | {a.what} | {a.source} |"


def analyses() -> Iterator[str]:
    from headviz.analyses.analysis import MICHEL
    from headviz.analyses.catalogue import ANALYSES
    from headviz.scores.catalogue import THESIS

    yield "Each is a figure, a table and one sentence, on a page of the dashboard and as a command."
    yield ""
    yield "| command | what it answers | source |"
    yield "|---|---|---|"
    for a in ANALYSES.values():
        source = a.source.replace(MICHEL, "Michel et al. 2019").replace(THESIS, "2024 thesis")
        yield f"| `{a.line.removeprefix('headviz ')}` | {a.question} | {source} |"


def families() -> Iterator[str]:
    from headviz.models.families import FAMILIES, family_rows

    yield f"{', '.join(title for title, *_ in family_rows())}."
    yield "Heads can really be removed from all of these, with these exceptions:"
    yield ""
    for family in FAMILIES.values():
        if not family.prunable:
            yield f"* {family.why_not_prunable}."
    yield ""
    yield "[Model families](families.md) says for each what works, and why other types are refused."


def family_table() -> Iterator[str]:
    from headviz.models.families import family_rows

    yield "| family | `model_type` | heads really removed | conductance maps | evaluation under a mask |"
    yield "|---|---|---|---|---|"
    for title, name, *rest in family_rows():
        yield f"| {title} | `{name}` | {' | '.join(rest)} |"


def ways() -> Iterator[str]:
    """Where pruned models run, as ``tests/models/test_ways.py`` measured it; equal reasons stand once, below."""
    from headviz.models.families import family_rows

    recorded = json.loads((HERE / "ways.json").read_text(encoding="utf-8"))
    titles = {name: title for title, name, *_ in family_rows()}
    names = list(next(iter(recorded.values())))
    reasons: dict[str, int] = {}
    yield "| family | " + " | ".join(names) + " |"
    yield "|---" * (1 + len(names)) + "|"
    for name, ways_of_model in recorded.items():
        cells = []
        for value in ways_of_model.values():
            if isinstance(value, str):
                number = reasons.setdefault(_reason(value), len(reasons) + 1)
                cells.append(f"no ({number})")
            else:
                cells.append("yes" if value == 0 else f"{value:.0e}")
        family, _, job = name.partition(" ")
        yield f"| {titles.get(family, family)}{job and f', `{job}`'} | {' | '.join(cells)} |"
    yield ""
    for reason, number in reasons.items():
        yield f"{number}. {_cell(reason)}"


def _reason(refusal: str) -> str:
    """What of a refusal says why."""
    for begin in ("Heads of this model can be masked, but not really removed: ", "A masked export is not possible: "):
        if refusal.startswith(begin):
            reason = refusal.removeprefix(begin).partition(". ")[0] + "."
            return reason[0].upper() + reason[1:]
    return re.sub(r"( does not run it) \(.*|, so it was not kept.*", r"\1", refusal).rstrip(".") + "."


def refused_types() -> Iterator[str]:
    from headviz.models.families import REFUSED

    for why in dict.fromkeys(REFUSED.values()):
        yield f"* {', '.join(f'`{name}`' for name, reason in REFUSED.items() if reason == why)}: {why}."


def _cell(text: object) -> str:
    return str(text).replace("|", "&#124;")


def _valid(one: Any) -> str:
    if one.choices is not None:
        return ", ".join(f"`{name}`" for name in one.choices)
    valid = str(one.valid).removesuffix(" and at most 1,000,000,000")
    return f"{valid}, or several" if one.several else valid


def options(*places: str) -> Iterator[str]:
    """The options of classes, as "module:Class"."""
    from headviz.options import Options, Pairs, declared

    yield "| in Python and JSON | flag | valid | default | what it is |"
    yield "|---|---|---|---|---|"
    for place in places:
        module, _, name = place.partition(":")
        for one in declared(getattr(import_module(f"headviz.{module}"), name)).values():
            if not (isinstance(one.kind, type) and issubclass(one.kind, Options)):
                flag = "" if one.flag == "" else f"`--{(one.flag or one.name).replace('_', '-')}`"
                valid = "values by name" if one.kind == Pairs else _valid(one)
                yield f"| `{one.name}` | {flag} | {valid} | {_cell(one.usually)} | {_cell(one.help)} |"


def options_of_entries(entries: Iterable[Any], first: str) -> Iterator[str]:
    from headviz.options import declared

    yield f"| {first} | option | valid | default | what it is |"
    yield "|---|---|---|---|---|"
    for entry in entries:
        own = entry.options if isinstance(entry.options, tuple) else declared(entry.options).values()
        for one in own:
            yield f"| `{entry.name}` | `{one.name}` | {_valid(one)} | {_cell(one.usually)} | {_cell(one.help)} |"


def score_options() -> Iterator[str]:
    from headviz.scores.catalogue import SCORES

    return options_of_entries(SCORES.values(), "score")


def analysis_options() -> Iterator[str]:
    from headviz.analyses.catalogue import ANALYSES

    return options_of_entries(ANALYSES.values(), "analysis")


def command_options() -> Iterator[str]:
    from headviz.cli import COMMANDS

    yield "| command | flag | valid | default | what it is |"
    yield "|---|---|---|---|---|"
    for name, command in COMMANDS.items():
        for one in getattr(import_module(command.module), "OPTIONS", ()):
            flag = f"`--{(one.flag or one.name).replace('_', '-')}`"
            yield f"| `{name}` | {flag} | {_valid(one)} | {_cell(one.usually)} | {_cell(one.help)} |"


def address() -> Iterator[str]:
    from headviz.ui.shell.view import OPTIONS

    yield "| parameter | valid | default | what it is |"
    yield "|---|---|---|---|"
    for name, one in OPTIONS.items():
        valid = "0 or 1" if one.kind is bool else _valid(one)
        default = str(int(one.default)) if one.kind is bool else _cell(one.usually)
        yield f"| `{name}` | {valid} | {default} | {_cell(one.help)} |"


TABLES = {"commands": commands, "families": families, "scores": scores, "algorithms": algorithms, "analyses": analyses}

_DISTILLATION = "extras.distillation.plan:"
OPTIONS = {
    "plan-options": partial(options, "pruning.plan:PruningPlan"),
    "training-options": partial(options, "pruning.options:FinetuneOptions"),
    "faster-options": partial(options, "pruning.options:FasterOptions"),
    "distillation-options": partial(
        options,
        "extras.distillation.plan:DistillationPlan",
        *(f"{_DISTILLATION}{name}" for name in ("TrainingOptions", "PosteriorOptions", "IterateOptions")),
    ),
    "score-options": score_options,
    "analysis-options": analysis_options,
    "command-options": command_options,
    "address": address,
}

PAGES = {
    HERE / "tables.md": TABLES,
    HERE / "options.md": OPTIONS,
    HERE / "families.md": {"family-table": family_table, "ways": ways, "refused": refused_types},
}


def filled(text: str, tables: dict[str, Callable[[], Iterator[str]]] = TABLES) -> str:
    """A page with every marked table as the code has it now."""
    for name, rows in tables.items():
        body = "\n".join(rows())
        pattern = rf"<!-- {name} -->(?:.*?<!-- /{name} -->)?"
        text, count = re.subn(pattern, lambda _, n=name, b=body: f"<!-- {n} -->\n{b}\n<!-- /{n} -->", text, flags=re.S)
        if count != 1:
            raise SystemExit(f"The page needs the mark <!-- {name} --> once, not {count} times.")
    return text


def main() -> int:
    stale = 0
    for page, tables in PAGES.items():
        now = page.read_text(encoding="utf-8")
        then = filled(now, tables)
        stale |= now != then
        if "--check" not in sys.argv:
            page.write_text(then, encoding="utf-8")
    return int(stale and "--check" in sys.argv)


if __name__ == "__main__":
    sys.exit(main())
