"""The shown analysis as Python and as a command."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from ....analyses.analysis import Analysis
from ....analyses.catalogue import ANALYSES
from ....analyses.recipe import EVALUATOR, evaluator_of
from ....errors import UserError
from ....heads import HeadMask
from ....models.stand_in import StandIn
from ....recipes.structure import Call, Command, Let, Name, Recipe
from ...parts import reference, scoring
from ...shell import recipes, state
from ...shell.view import View
from .section import OTHER, SAMPLES, UNSEEN, options, orders


def recipe(view: View, name: str, present: HeadMask, longest: int) -> tuple[str, str]:
    """The library's call and the command that give the same result."""
    analysis, mask = ANALYSES[name], state.mask(present)
    known = orders(view, list(scoring.all_known(view, present)))
    try:
        given = options(view, analysis, longest, known)
    except UserError:
        given = {"checkpoints": "DIR"}
    lines = () if analysis.recipe is None else tuple(_lines(view, analysis, mask, given))
    return Recipe(lines, _command(view, analysis, mask, given)).written()


def _lines(view: View, analysis: Analysis, mask: HeadMask, given: Mapping[str, Any]) -> Iterator[Any]:
    assert analysis.recipe is not None
    made = analysis.recipe(given)
    yield recipes.HEADVIZ
    if "model" in analysis.needs:
        yield recipes.load(view)
    if "data" in analysis.needs:
        yield recipes.task(view)
    if "evaluator" in made.uses:
        drawn, words, _ = recipes.stand_in(view, _stand_in(analysis))
        yield from drawn
        yield Let(EVALUATOR.text, evaluator_of("data", **words))
    if "other" in made.uses:
        unseen, other = view.task in UNSEEN, OTHER.get(view.task, view.task)
        yield recipes.task(view, "unseen", "other") if unseen else recipes.task(replace(view, task=other), name="other")
    if "some" in made.uses:
        lengths = {"lengths": Name("clf.tokenizer")} if "model" in analysis.needs else {}
        yield recipes.task(replace(view, limit=0), "train", "train")
        yield Let("some", Call("headviz.sample", (Name("train"), SAMPLES), {"seed": view.seed, **lengths}))
    if "checkpoints" in made.uses and view.model == "demo":
        yield Let("checkpoints", Call("headviz.demo_folder", ("checkpoints",)))
    elif "checkpoints" in made.uses:
        yield Let("checkpoints", view.base or "checkpoints")
    if analysis.takes_mask_away:
        yield recipes.mask_of(mask)
    yield from made.lines
    yield Call("print", (Call("found.to_json"),))


def _stand_in(analysis: Analysis) -> StandIn:
    return reference.chosen() if analysis.evaluates else StandIn()


def _command(view: View, analysis: Analysis, mask: HeadMask, given: Mapping[str, Any]) -> Command:
    given_options: recipes.Options = tuple(given.items())
    if analysis.asks("other-task"):
        other = ("other-split", "unseen") if view.task in UNSEEN else ("other-task", OTHER.get(view.task))
        given_options += (other,)
    return Command(
        tuple((analysis.command or f"analyse {analysis.name}").split()),
        (
            *(recipes.model_given(view) if "model" in analysis.needs else ()),
            *(recipes.data_given(view) if "data" in analysis.needs else ()),
            *given_options,
            *recipes.stand_in(view, _stand_in(analysis))[2],
            *(recipes.mask_given(mask) if analysis.takes_mask_away else ()),
        ),
    )
