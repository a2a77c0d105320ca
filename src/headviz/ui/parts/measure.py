"""A mask on the data against the full model, and what stands in the place of heads that are off."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

import streamlit as st

import headviz

from ...errors import OptionError
from ...heads import HeadMask
from ...models.stand_in import ZERO, StandIn
from ..shell import frame, jobs, loaders, state
from ..shell.loaders import StandInChoice
from ..shell.messages import plain

if TYPE_CHECKING:
    from ...evaluation.mask_evaluator import Growing
    from ...models.base import TransformerModel
    from ...models.classifier import Classifier
    from ...tasks import Dataset

REST = 0.3  # seconds after a page was drawn before something is computed ahead


def key_of(clf: TransformerModel, data: Dataset, *more: object) -> tuple[object, ...]:
    """The key of a computation: model, device, precision, data, and ``more``."""
    return (*loaders.identity(clf), str(clf.device), state.view().exact, data.digest, *more)


def measured(clf: Classifier, data: Dataset, mask: HeadMask, choice: StandInChoice, rank: int = 0) -> Growing | None:
    """The mask against the full model, or None; progress is shown on the page until it is the whole.

    ``choice`` as in ``loaders``, ``rank`` as in ``jobs``.
    """
    loaders.check(clf, data)
    key, work = _evaluation(clf, data, mask, choice)
    return jobs.need_so_far(key, "Evaluating", work, rank)


def request(clf: Classifier, data: Dataset, mask: HeadMask, choice: StandInChoice, rank: int = 0) -> Growing | None:
    """The same without progress on the page: what is known within the time that a page waits."""
    key, work = _evaluation(clf, data, mask, choice)
    return jobs.request(key, "Evaluating", work, rank)


def _evaluation(
    clf: Classifier, data: Dataset, mask: HeadMask, choice: StandInChoice
) -> tuple[tuple[object, ...], jobs.Work[Growing]]:
    """The key of the evaluation of a mask, and what computes it."""
    whole = clf.under(mask)
    key = key_of(clf, data, "mask", whole.hex, choice.stand_in)

    def work(progress: jobs.Progress, cancel: jobs.Cancel) -> Growing:
        # encodes all of the data, so it is made here
        evaluator = loaders.evaluator(clf, data, choice, progress=progress, cancel=cancel)
        for step in evaluator.growing(whole, progress=progress, cancel=cancel):
            if not step.final:
                jobs.offer(key, step)
        return step

    return key, work


def ahead(clf: Classifier, data: Dataset, mask: HeadMask, choice: StandInChoice) -> None:
    """Evaluate what a click on any head would ask for next, while the page asks for nothing else."""
    whole = clf.under(mask)

    def work(progress: jobs.Progress, cancel: jobs.Cancel) -> None:
        from ...evaluation.mask_evaluator import compute_ahead, give_way

        give_way()
        time.sleep(REST)
        compute_ahead(loaders.evaluator(clf, data, choice, cancel=cancel), whole, progress=progress, cancel=cancel)

    jobs.start(key_of(clf, data, "ahead", whole.hex, choice.stand_in), work, rank=jobs.LAST)


def last(clf: Classifier, data: Dataset, measured: Growing | None) -> Growing | None:
    """What to show: the result, or the one before while a new one is computed."""
    key = key_of(clf, data)
    if measured is not None:
        st.session_state["measured"] = (key, measured)
    key_before, result = st.session_state.get("measured", ((), None))
    return result if key_before == key else None


def precision(clf: Classifier) -> None:
    """For a large model: its size, and a button for bfloat16; in bfloat16, a button back to float32."""
    from ...evaluation.evaluator import faster_in_bfloat16, is_large, memory_note

    if state.view().dtype == "bfloat16":
        st.caption("Computed in bfloat16: faster, and answers agree with those of float32 mostly, not always.")
        st.button("Compute in float32", key="other_precision", on_click=state.update, kwargs={"dtype": ""})
    elif is_large(clf):
        st.caption(plain(f"A large model: {memory_note(clf)}. A first answer takes seconds."))
        if faster_in_bfloat16(clf):
            st.button(
                "Compute in bfloat16",
                key="other_precision",
                help="For a look: faster, and answers agree with those of float32 mostly, not always",
                on_click=state.update,
                kwargs={"dtype": "bfloat16"},
            )


def computed_in(measured: Growing) -> None:
    """What a GPU has taken instead of float32, and a button for float32."""
    faster = {"tf32": "TF32", "bfloat16": "bfloat16"}.get(measured.comparison.precision)
    if faster is None or state.view().dtype:  # weights in bfloat16 have a line of their own
        return
    st.caption(f"Computed in {faster}, which agrees with float32 on the first texts.")
    if frame.controls():
        st.button("Compute in float32", key="exact", on_click=state.update, kwargs={"dtype": "float32"})


# ---- what stands in the place of heads that are off

M = TypeVar("M", bound="TransformerModel")


def stand_in() -> StandIn:
    """The view's choice; one that cannot be read is zero, with a notice."""
    try:
        return StandIn.of(state.view().ablation)
    except OptionError as error:
        state.notify(error)
        state.update(ablation=ZERO)
        return StandIn()


def stand_in_choice() -> StandInChoice:
    """The choice, and the view whose training examples it is measured on."""
    return StandInChoice(stand_in(), state.view())


def stand_in_of_model(mask: HeadMask) -> StandIn:
    """The choice on a page that explains single texts. It is zero if no head is off, and if the choice has another
    vector for every text, which is no part of a model. The page's head says so."""
    choice = stand_in()
    return StandIn() if not mask.off or choice.of_the_text else choice


def filled(clf: M) -> M | None:
    """The model with the choice in the place of heads that are off; None while it is measured."""
    choice, view = stand_in_of_model(state.mask(clf.present)), state.view()
    if choice.kind == ZERO:
        return clf
    loaders.require_source(view)
    source = (view.task, *replace(view, limit=0).reading("train").items())

    def work(progress: jobs.Progress, cancel: jobs.Cancel) -> M:
        return headviz.standing_in(clf, choice, loaders.reference(view, choice), progress=progress, cancel=cancel)

    key = (*loaders.identity(clf), str(clf.device), "reference", choice, source)
    model: M | None = jobs.need(key, "Measuring what stands in a head's place", work)
    return model
