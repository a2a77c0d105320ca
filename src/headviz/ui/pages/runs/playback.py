"""Playback: a run's steps as a film of its curve, its grid, and the answers to the user's own texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import streamlit as st

from ....answers.metrics import metric_title
from ....display.sentences import doubt
from ....errors import UserError
from ....heads import HeadMask
from ...parts import pair, texts
from ...parts.texts import Text
from ...shell import jobs, loaders, state
from ...shell.messages import plain, refused
from ...widgets import component

if TYPE_CHECKING:
    from ....models.classifier import Classifier
    from ....pruning.baselines import Step
    from ....runs.reading import RunView


def section(view: RunView) -> None:
    """The film, folded: it needs the model, for the answers under each step's mask."""
    with st.expander("Playback", icon=":material/movie:", key="playback_box", on_change="rerun") as box:
        if not box.open:
            return
        seed = view.steps[0].get("seed")
        steps = [step for step in view.steps if step.get("seed") == seed]
        try:
            film = _film(view, steps)
        except UserError as error:
            refused(error)
            return
        if film is None:
            return
        component("playback")(key="playback", data=film)
        if film["texts"]:
            st.caption(
                plain(
                    "The answers are those of the run's model under each step's mask. Your own text is the one on "
                    "Workbench. A text breaks at the step from which it never has its first answer again."
                )
            )


def _film(view: RunView, steps: Sequence[Step]) -> dict[str, Any] | None:
    """What the component plays; None while the answers are computed."""
    model_view = state.view().of_model(str(view.record.spec["model"]))
    clf: Any = loaders.model(model_view)
    size = clf.num_layers, clf.num_heads
    masks = [clf.full_mask, *(HeadMask.from_hex(step["mask"], *size) for step in steps)]
    played = [texts.current(model_view, loaders.dataset(model_view))]
    if model_view.on_demo:
        played += [Text(first, second, own=True) for first, second in texts.CHIPS]
    played = [text for text in dict.fromkeys(played) if not text.empty] if clf.answer.decides else []
    key = (*loaders.identity(clf), "playback", tuple(played), *(mask.hex for mask in masks))

    def work(progress: jobs.Progress, cancel: jobs.Cancel) -> list[dict[str, Any]]:
        answered = []
        for done, text in enumerate(played, 1):
            answered.append(_answers(clf, text, masks))
            progress(done, len(played))
        return answered

    answered = jobs.need(key, "Answering under each step's mask", work)
    if answered is None:
        return None
    metric = next(iter(steps[0]["metrics"]))
    full = next((step["metrics"].get(metric) for step in view.baseline if step.get("metrics")), None)
    values = [full, *(step["metrics"].get(metric) for step in steps)]
    shares = [0.0, *(step["sparsity"] for step in steps)]
    measured = [i for i, value in enumerate(values) if value is not None]
    return {
        "rows": size[0],
        "heads": size[1],
        "row_names": loaders.rows_of(clf),
        "metric": metric_title(metric),
        "steps": [
            {"share": shares[i], "value": values[i], "off": [h.layer * size[1] + h.head for h in masks[i].off]}
            for i in measured
        ],
        "texts": [{**text, **_breaks([text["answers"][i] for i in measured])} for text in answered],
    }


def _answers(clf: Classifier, text: Text, masks: Sequence[HeadMask]) -> dict[str, Any]:
    """A text and the name of its answer under each mask; *not sure* near chance."""
    answers = []
    for values in pair.answers(clf, text, masks):
        name, share = clf.answer.shares(values, clf.labels)[0]
        unsure = "know" in doubt(values.tolist())
        answers.append({"name": "not sure" if unsure else name, "share": f"{share:.2f}"})
    return {"text": " → ".join(filter(None, (text.text, text.pair))), "answers": answers}


def _breaks(answers: Sequence[dict[str, str]]) -> dict[str, Any]:
    """The answers, and the first step from which they differ from the full model's to the end; None without one."""
    last = max((i for i, answer in enumerate(answers) if answer["name"] == answers[0]["name"]), default=0)
    return {"answers": list(answers), "breaks": last + 1 if last + 1 < len(answers) else None}
