"""One example across a run: the attention and attribution of one head after each step, as small maps."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import streamlit as st

from ....display.figures import maps as charts_maps
from ....heads import HeadId, HeadMask
from ...parts import texts
from ...shell import frame, jobs, show, state
from ...shell.memo import Memo
from ..head.maps import FORMULA, SOURCE
from .checkpoint import state_of

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from ....runs.reading import RunView
    from ....runs.step_maps import StepMaps
    from ...parts.texts import Text

MOST = 11  # steps in the figure; of more steps, evenly spaced ones are shown
_opened: Memo[Any] = Memo(1)  # the models and data of the last run


def example(view: RunView, step: dict[str, Any]) -> None:
    """The maps of one example. They appear on request, because the run's model and data must be loaded."""
    key = ("run", view.record.id)
    if st.session_state.get("run_maps") != view.record.id and frame.controls():
        st.caption(
            "Follow one head through the run: where it looks in one text, and what that contributes to the answer, "
            "after each step until the head is removed."
        )
        st.button(
            "Load the run's model and data",
            key="run_load",
            icon=":material/play_arrow:",
            type="primary",
            on_click=_ask,
            args=(view.record.id,),
        )
        return
    ready = jobs.need(key, "Loading the run's model and data", lambda p, c: _open(view.record.id) is not None)
    known = state_of(view)
    if not ready or known is None:
        return
    context, plan = _open(view.record.id)
    shown = texts.choose(context.dev, "run_text") if frame.controls() else texts.current(state.view(), context.dev)
    chosen = _head(view, known.num_layers, known.num_heads)
    steps = _thinned([r.step for r in known.steps if r.seed == step.get("seed")])
    found = _compute(view, (context, plan, known), chosen, shown, int(step.get("seed") or 0), steps)
    if found is not None:
        _draw(found, int(step["step"]))


def _ask(run_id: str) -> None:
    st.session_state["run_maps"] = run_id


def _open(run_id: str) -> Any:
    """Models and data of a run. Only the last run stays in memory."""
    from ....runs.saving import open_run

    return _opened.get(run_id, lambda: open_run(run_id)[:2])


def _head(view: RunView, layers: int, heads: int) -> HeadId:
    """The head chosen in the grid, else the first one that the last step keeps."""
    chosen = state.head(HeadMask.full(layers, heads))
    if chosen is not None:
        return chosen
    kept = HeadMask.from_hex(view.steps[-1]["mask"], layers, heads).kept
    return kept[0] if kept else HeadId(0, 0)


def _thinned(steps: list[int]) -> list[int]:
    """At most ``MOST`` steps, evenly spaced, with the first and the last."""
    if len(steps) <= MOST:
        return steps
    return sorted({steps[round(i)] for i in np.linspace(0, len(steps) - 1, MOST)})


def _compute(view: RunView, opened: Any, head: HeadId, shown: Text, seed: int, steps: list[int]) -> StepMaps | None:
    context, plan, known = opened
    chosen = state.view().target
    target = chosen if chosen in context.clf.labels else None
    key = ("step maps", view.record.id, seed, tuple(steps), str(head), shown.text, shown.pair, target)

    def work(progress: jobs.Progress, cancel: jobs.Cancel) -> StepMaps:
        from ....runs.step_maps import step_maps

        return step_maps(
            context,
            plan,
            known,
            head,
            shown.text,
            shown.pair,
            seed=seed,
            steps=steps,
            target=target,
            progress=progress,
            cancel=cancel,
        )

    found: StepMaps | None = jobs.need(key, f"Maps of {head}, step by step", work)
    return found


def story(found: StepMaps) -> str:
    """When the head is removed, and how the answer changes."""
    at = next((i for i, s in enumerate(found.steps) if s.state == "removed"), None)
    fate = f"{found.head} is never removed"
    if at is not None:
        before, gone = found.steps[at - 1] if at else None, found.steps[at]
        known = before is not None and before.state == "there" and before.step == gone.step - 1
        fate = f"{found.head} is removed {'at' if known else 'by'} {100 * gone.sparsity:.0f} %"
    answers = [(s.sparsity, found.labels[int(np.argmax(s.probabilities))]) for s in found.steps if s.probabilities]
    if len(found.labels) < 2 or not answers:
        return f"{fate}."
    where = "the answer" if len(answers) == len(found.steps) else f"in the {len(answers)} models looked at the answer"
    turns = [(x, b) for (_, a), (x, b) in pairwise(answers) if a != b]
    if not turns:
        return f"{fate}; {where} stays {answers[0][1]}."
    changes = ", ".join(f"{b} from {100 * x:.0f} %" for x, b in turns[:4])
    changes += " and turns again later" if len(turns) > 4 else ""
    return f"{fate}; {where} {answers[0][1]} becomes {changes}."


def _panels(found: StepMaps, name: str) -> go.Figure:
    """A head's ``attention`` or ``attribution`` after every step; a text where the head or the model is gone."""
    panels = []
    for step in found.steps:
        title = "all heads" if step.step == 0 else f"{100 * step.sparsity:.0f} % removed"
        gone = "removed" if step.state == "removed" else "model<br>not kept"
        values = getattr(step, name)
        panels.append((title, gone if values is None else values))
    return charts_maps.steps(panels, found.tokens, name, signed=name == "attribution")


def _draw(found: StepMaps, step: int) -> None:
    show.finding(story(found))
    captions = {
        "attention": f"Where {found.head} looks after each step. Rows are queries and sum to 1 over the keys.",
        "attribution": f"Which connections speak for (blue) or against (orange) '{found.target}', the class explained.",
    }
    for name, caption in captions.items():
        st.markdown(f"#### {show.plain(name.capitalize())}")
        show.figure(
            _panels(found, name),
            f"run_{name}",
            caption + " One colour scale for all steps.",
            formula=FORMULA if name == "attribution" else r"A = \mathrm{softmax}(QK^\top/\sqrt{d})",
            source=SOURCE,
            wide="40",
        )
    for text in found.notes:
        st.info(show.plain(text))
    here = next((s for s in found.steps if s.step == step), None)
    with st.expander("The chosen step beside the full model, with its tokens"):
        if here is None or here.attention is None or here.attribution is None:
            st.info("After this step the head is removed, or the model was not kept. Choose an earlier step above.")
            return
        tokens, full = found.tokens, found.steps[0]
        for name in captions:
            pair = [getattr(s, name) for s in (full, here)]
            end = float(max(np.abs(m).max() for m in pair if m is not None)) or 1.0
            for box, m, title in zip(
                st.columns(2), pair, ("full model", f"{100 * here.sparsity:.0f} % removed"), strict=True
            ):
                if m is not None:
                    with box:
                        show.figure(
                            charts_maps.matrix(m, tokens, tokens, name, signed=name == "attribution", end=end),
                            f"run_{name}_{'full' if m is pair[0] else 'step'}",
                            f"{found.head}, {name}, {title}",
                        )
