"""The shown analysis as Python and as a command."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from ....analyses.analysis import Analysis
from ....analyses.catalogue import ANALYSES
from ....display.recipes import Code, Options, call, command
from ....errors import UserError
from ....heads import HeadMask
from ....models.stand_in import StandIn
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
    return "\n".join(lines), _command(view, analysis, mask, given)


def _lines(view: View, analysis: Analysis, mask: HeadMask, given: Mapping[str, Any]) -> Iterator[str]:
    assert analysis.recipe is not None
    code = analysis.recipe(given)
    uses = {node.id for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Name)}
    yield recipes.HEADVIZ
    if "model" in analysis.needs:
        yield recipes.load(view)
    if "data" in analysis.needs:
        yield recipes.task(view)
    if "evaluator" in uses:
        drawn, words, _ = recipes.stand_in(view, _stand_in(analysis))
        yield from drawn
        yield f"evaluator = {call('headviz.evaluator_of', Code('clf'), Code('data'), **words)}"
    if "other" in uses:
        unseen, other = view.task in UNSEEN, OTHER.get(view.task, view.task)
        yield recipes.task(view, "unseen", "other") if unseen else recipes.task(replace(view, task=other), name="other")
    if "some" in uses:
        lengths = {"lengths": Code("clf.tokenizer")} if "model" in analysis.needs else {}
        yield recipes.task(replace(view, limit=0), "train", "train")
        yield f"some = {call('headviz.sample', Code('train'), SAMPLES, seed=view.seed, **lengths)}"
    if "checkpoints" in uses and view.model == "demo":
        yield "checkpoints = headviz.demo_folder('checkpoints')"
    elif "checkpoints" in uses:
        yield f"checkpoints = {view.base or 'checkpoints'!r}"
    if analysis.takes_mask_away:
        yield recipes.mask_of(mask)
    yield code
    yield "print(found.to_json())"


def _stand_in(analysis: Analysis) -> StandIn:
    return reference.chosen() if analysis.evaluates else StandIn()


def _command(view: View, analysis: Analysis, mask: HeadMask, given: Mapping[str, Any]) -> str:
    given_options: Options = tuple(given.items())
    if analysis.asks("other-task"):
        other = ("other-split", "unseen") if view.task in UNSEEN else ("other-task", OTHER.get(view.task))
        given_options += (other,)
    return command(
        analysis.command or f"analyse {analysis.name}",
        (
            *(recipes.model_options(view) if "model" in analysis.needs else ()),
            *(recipes.data_options(view) if "data" in analysis.needs else ()),
            *given_options,
            *recipes.stand_in(view, _stand_in(analysis))[2],
            *(recipes.mask_options(mask) if analysis.takes_mask_away else ()),
        ),
    )
