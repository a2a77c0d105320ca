"""What stands in the place of heads that are off: the view's choice, and a model that has it there."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from ...errors import OptionError
from ...models.stand_in import ZERO, StandIn
from ..shell import jobs, loaders, memo, state
from ..shell.view import View

if TYPE_CHECKING:
    from ...heads import HeadMask
    from ...models.base import TransformerModel

M = TypeVar("M", bound="TransformerModel")


def chosen() -> StandIn:
    """The view's choice; one that cannot be read is zero, with a notice."""
    try:
        return StandIn.of(state.view().ablation)
    except OptionError as wrong:
        state.notify(wrong)
        state.update(ablation=ZERO)
        return StandIn()


def place() -> tuple[StandIn, View]:
    """The choice, and the view whose training examples it is measured on."""
    return chosen(), state.view()


def of_model(mask: HeadMask) -> StandIn:
    """The choice on a page that explains single texts: zero without heads that are off, and for what hangs on the
    text, which is no part of a model. The page's head says so."""
    now = chosen()
    return StandIn() if not mask.off or now.of_the_text else now


def filled(clf: M) -> M | None:
    """The model with the choice in the place of heads that are off; None while it is measured."""
    now, view = of_model(state.mask(clf.present)), state.view()
    if now.kind == ZERO:
        return clf
    loaders.require_source(view)
    source = (view.task, view.data, view.seed, view.columns, view.label, view.groups)

    def work(progress: jobs.Progress, cancel: jobs.Cancel) -> M:
        from ...evaluation.stand_ins import standing_in

        return standing_in(clf, now, loaders.reference(view, now), progress=progress, cancel=cancel)

    key = (*memo.identity(clf), str(clf.device), "reference", now, source)
    found: M | None = jobs.need(key, "Measuring what stands in a head's place", work)
    return found
