"""docs/planted.md from docs/planted.json: what every score finds on models whose heads have known parts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.stats import t as student

from .planting import BACKUP, HARMFUL

INTRODUCTION = """\
# Scores on models with planted heads

Written by `python -m tools.family --page` from `planted.json`. Do not edit. `python -m tools.family --out FOLDER` makes
the figures; `tools/family/README.md` says what is planted and how.

On a model that people have, nobody knows which heads matter. In these small BERTs it is known: training gave every
ability heads of its own, some of the others are made harmful, and the rest idle. Half of the idle heads write nothing;
the other half are *loud*: they write noise, a quarter of what changes none of 600 answers. A score that measures how
active a head is, not whether it is needed, is led astray by those."""
READING = """\
AUROC: the probability that a needed head has a higher score than an idle one. 1 is perfect, .5 is what random numbers
get. Means over the models, with a 95 % interval (t) over them. *Loud*: the idle heads are loud ones only. *One*,
*three*, *six*: how many heads share an ability. *Backup*: either of two heads is enough, so neither is missed alone.
*Harmful*: the probability that a harmful head stands below an idle one. *Precision*: of the k highest heads, the share
that is needed, where k heads are. *Shuffled*: the AUROC of heads drawn at random in place of the needed ones, which
should be .5."""
COLUMNS = {
    "needed": "needed",
    "loud": "needed or loud",
    "one": "one of 1",
    "three": "one of 3",
    "six": "one of 6",
    "backup": BACKUP,
    "harmful": HARMFUL,
    "precision": "precision",
    "shuffled": "shuffled",
}
LEVEL = 0.5


def page(found: dict[str, Any]) -> Iterator[str]:
    """The document, line by line."""
    summary, members = found["summary"], found["members"]
    order = sorted(summary, key=lambda name: -summary[name]["needed"][0])
    yield from INTRODUCTION.splitlines()
    yield ""
    yield f"**{finding(summary, order, members)}**"
    yield ""
    yield f"| score | {' | '.join(COLUMNS)} |"
    yield f"|{'---|' * (len(COLUMNS) + 1)}"
    for name in order:
        yield f"| `{name}` | {' | '.join(_cell(summary[name].get(key)) for key in COLUMNS.values())} |"
    yield ""
    yield from READING.splitlines()
    yield ""
    yield "## The models"
    yield ""
    yield "| model | grid | accuracy | what exact ablation says against the planting |"
    yield "|---|---|---|---|"
    for member in members:
        layers, heads = member["grid"]
        said = "; ".join(member["disagreements"]) or "nothing"
        yield f"| {member['name']} | {layers}×{heads} | {member['accuracy']:.3f} | {said} |"


def finding(summary: dict[str, Any], order: list[str], members: list[dict[str, Any]]) -> str:
    """Whose mean is highest, which scores are as good as far as these models tell, and which no better than chance."""
    best = summary[order[0]]["needed"]
    said = f"Over {len(members)} models `{order[0]}` has the highest AUROC of needed heads: {_cell(best)}."
    equal = [name for name in order[1:] if not _behind(members, name, order[0])]
    chance = [name for name in order if name != "random" and summary[name]["needed"][1] <= LEVEL]
    for what, names in (("told apart from it", equal), ("shown to be better than chance", chance)):
        if names:
            said += f" Not {what}: {', '.join(f'`{name}`' for name in names)}."
    return said


def _behind(members: list[dict[str, Any]], name: str, best: str) -> bool:
    """Whether the difference, model by model, has a 95 % interval above zero."""
    lead = np.array([m["scores"][best]["needed"] - m["scores"][name]["needed"] for m in members])
    half = student.ppf(0.975, len(lead) - 1) * lead.std(ddof=1) / np.sqrt(len(lead)) if len(lead) > 1 else np.inf
    return bool(lead.mean() - half > 0)


def _cell(value: list[float] | None) -> str:
    if value is None:
        return ""
    mean, low, high, models = value
    low, high = max(low, 0.0), min(high, 1.0)  # t intervals know no bounds
    return f"{mean:.2f} [{low:.2f}, {high:.2f}]" if models > 1 else f"{mean:.2f}"
