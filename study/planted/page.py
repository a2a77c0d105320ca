"""study/planted.md from study/planted.json: what every score finds on models whose heads have known parts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.stats import t as student

from .planting import BACKUP, HARMFUL

INTRODUCTION = """\
# Scores on models with planted heads

Written by `python -m study.planted --page` from `planted.json`. Do not edit. `python -m study.planted --out FOLDER`
makes the figures; `study/planted/README.md` says what is planted and how.

On a model that people have, nobody knows which heads matter. In these small BERTs it is known: training gave every
ability heads of its own, some of the others are made harmful, and the rest idle. Half of the idle heads write nothing;
the other half are *loud*: they write noise, a quarter of what changes none of 600 answers. A score that measures how
active a head is, not whether it is needed, is led astray by those.

These models are a unit test of the scores, not evidence about them: planting trains with gates, which some scores
learn, and heads of a trained encoder need not have parts like these."""
READING = """\
AUROC: the probability that a needed head has a higher score than an idle one. 1 is perfect, .5 is what random numbers
get. Means over the models, with a 95 % interval (t) over them. *Without mixed-9*: needed heads, without the model whose
idle heads change the most answers. *Loud*: the idle heads are loud ones only. *One*, *three*, *six*: how many
heads share an ability. *Backup*: either of two heads is enough, so neither is missed alone. *Harmful*: the probability
that a harmful head stands below an idle one. *Precision*: of the k highest heads, the share that is needed, if k are.
*Shuffled*: the AUROC of heads drawn at random in place of the needed ones, which should be .5."""
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
LEFT_OUT = "mixed-9"  # its idle heads are not idle
ALONE = """\
Training robs an ability of all its heads at once, and harmful heads are made together, so one alone may change
nothing. *One by one*: the AUROC of exact ablation, of needed heads outside backups and of harmful ones. It is 1 where
each needed head alone costs more, or each harmful one less, than every idle head, and .5 where they cost as little as
idle ones. The last column is about whole abilities, either head of a backup, all idle heads together, and it names the
needed and harmful heads that exact ablation does not find one at a time."""
LEVEL = 0.5


def page(result: dict[str, Any]) -> Iterator[str]:
    """The document, line by line."""
    means, members = result["summary"], result["members"]
    order = sorted(means, key=lambda name: -means[name]["needed"][0])
    yield from INTRODUCTION.splitlines()
    yield ""
    yield f"**{finding(means, order, members)}**"
    yield ""
    fewer = summary([m for m in members if m["name"] != LEFT_OUT])
    first, *rest = COLUMNS
    yield f"| score | {first} | without {LEFT_OUT} | {' | '.join(rest)} |"
    yield f"|{'---|' * (len(COLUMNS) + 2)}"
    for name in order:
        cells = [means[name].get(key) for key in COLUMNS.values()]
        cells.insert(1, fewer[name]["needed"])
        yield f"| `{name}` | {' | '.join(_cell(value) for value in cells)} |"
    yield ""
    yield from READING.splitlines()
    yield ""
    yield "## The models"
    yield ""
    yield from ALONE.splitlines()
    yield ""
    yield f"**{alone(members)}**"
    yield ""
    yield "| model | grid | accuracy | needed, one by one | harmful, one by one | what ablation of all of them says |"
    yield "|---|---|---|---|---|---|"
    for member in members:
        layers, heads = member["grid"]
        said = "; ".join(member["disagreements"]) or "nothing"
        singly = " | ".join(
            "" if v is None else f"{v:.2f}" for v in (_exact(member, "one of"), _exact(member, HARMFUL))
        )
        yield f"| {member['name']} | {layers}×{heads} | {member['accuracy']:.3f} | {singly} | {said} |"


def alone(members: list[dict[str, Any]]) -> str:
    """In how many models exact ablation of single heads does not tell a kind of head from idle ones, and how far."""
    needed = {m["name"]: result for m in members if (result := _exact(m, "one of")) is not None and result < 1}
    harmful = {m["name"]: result for m in members if (result := _exact(m, HARMFUL)) is not None and result < 1}
    told = "; ".join(
        f"{what} in {', '.join(f'{name} ({result:.2f})' for name, result in some.items())}"
        for what, some in (("needed heads outside backups", needed), ("harmful heads", harmful))
        if some
    )
    count = len(needed.keys() | harmful.keys())
    if not count:
        return "Removed one at a time, every needed head costs more than every idle one, and every harmful head less."
    said = f"Removed one at a time, heads do not stand where the planting puts them in {count} of {len(members)} models"
    return f"{said}, by the AUROC of exact ablation: {told}."


def _exact(member: dict[str, Any], kind: str) -> float | None:
    """The AUROC of exact ablation on this kind of planting; None where the model has none."""
    kinds: dict[str, float] = member["scores"].get("ablation", {})
    return next((result for name, result in kinds.items() if name.startswith(kind)), None)


def summary(members: list[dict[str, Any]]) -> dict[str, dict[str, list[float | int]]]:
    """Score -> kind -> mean over the models, the ends of its 95 % interval, and how many models there are."""
    out: dict[str, dict[str, list[float | int]]] = {}
    for name in members[0]["scores"]:
        kinds = dict.fromkeys(kind for m in members for kind in m["scores"].get(name, {}))
        out[name] = {}
        for kind in kinds:
            values = np.array([m["scores"][name][kind] for m in members if kind in m["scores"].get(name, {})])
            half = 0.0
            if len(values) > 1:
                half = float(student.ppf(0.975, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values)))
            mean = float(values.mean())
            out[name][kind] = [round(mean, 4), round(mean - half, 4), round(mean + half, 4), len(values)]
    return out


def finding(means: dict[str, Any], order: list[str], members: list[dict[str, Any]]) -> str:
    """Whose mean is highest, which scores are as good as far as these models tell, and which no better than chance."""
    best = means[order[0]]["needed"]
    said = f"Over {len(members)} models `{order[0]}` has the highest AUROC of needed heads: {_cell(best)}."
    equal = [name for name in order[1:] if not _behind(members, name, order[0])]
    chance = [name for name in order if name != "random" and means[name]["needed"][1] <= LEVEL]
    for what, names in (("significantly different from it", equal), ("shown to be better than chance", chance)):
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
