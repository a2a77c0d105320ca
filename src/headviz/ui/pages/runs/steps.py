"""A pruning run: its curve, the order in which heads were removed, one step, and one example across the steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np
import streamlit as st

from .... import plugins
from ....answers.metrics import SAME_ANSWERS, agreement_name, constant_name, metric_title
from ....display import numbers
from ....display.figures import maps
from ....display.figures.style import Scale
from ....errors import UserError
from ....heads import HeadId, HeadMask
from ....pruning import baselines
from ....pruning.baselines import can_go, finding
from ....runs.files import RunFiles
from ....runs.record import ACTIVE, PRUNE, QUEUED
from ....runs.step_models import open_run, step_maps
from ....runs.tables import curve_of, run_curves, step_table
from ....tasks import points_in
from ...parts import texts
from ...shell import frame, jobs, kept, loaders, recorded, show, state
from ...shell.job import Memo
from ...shell.messages import plain
from ...shell.view import TABS
from ...widgets.grid import Look
from ..head import FORMULA, SOURCE
from . import listing, models, playback
from .listing import state_of
from .models import look_at

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from ....plugins import Tab
    from ....runs.reading import RunView
    from ....runs.step_models import StepMaps

# ---- numbers

Step = dict[str, Any]


def choose_name(label: str, names: Sequence[str], key: str, title_of: Callable[[str], str] = str) -> str:
    """The name that a figure is about. It is asked for only where there are several."""
    if len(names) == 1:
        return names[0]
    name = st.segmented_control(
        plain(label), names, format_func=lambda name: plain(title_of(name)), default=names[0], required=True, key=key
    )
    return name or names[0]


def show_numbers(view: RunView, step: Step, metric: str) -> None:
    """The step's numbers, those of the full model it is compared with, and those of θ* where that is another model."""
    baseline = baselines.against(view.record.spec, view.baseline)
    full = baselines.full_of(view.baseline, step.get("seed"), baseline)
    teacher = baselines.full_of(view.baseline, None, baselines.GIVEN)
    change = step.get("change", {}).get(metric) or {}
    delta, low, high = (change.get(k) for k in ("delta", "low", "high"))
    scale = points_in(metric)
    note = f"Against {baselines.WORDS[baseline]}."
    if low is not None:
        note += f" 95 % interval of the change: {numbers.low_end(low, scale)} to {numbers.high_end(high, scale)} points"
    elif delta is not None:
        note += " With one seed nobody knows how much two trainings differ by chance."
    changed = "" if delta is None else (f"{numbers.points(delta, scale)} points" if delta else "unchanged")
    shown: list[tuple[str, str, str]] = [(metric_title(metric), _value(step["metrics"].get(metric), metric), changed)]
    if full is not None and baseline == baselines.RETRAINED:
        shown.append((baselines.NAMES[baseline], _value(full["metrics"].get(metric), metric), "the same seed"))
    if teacher is not None:
        agreement, measure = step.get("agreement"), agreement_name(step["metrics"])
        same = "" if agreement is None else f"{measure} {agreement:.2f}".replace("-", "−")
        if agreement is not None and measure == SAME_ANSWERS:
            same = f"{100 * agreement:.0f} % {measure}"
        shown.append((baselines.NAMES[baselines.GIVEN], _value(teacher["metrics"].get(metric), metric), same))
    if "heads_off" in step:
        shown.append(("heads removed", str(step["heads_off"]), f"{100 * step['sparsity']:.1f} %"))
    if teacher is not None and step.get("parameters") and teacher.get("parameters"):
        parameters = numbers.less(step["parameters"], teacher["parameters"])
        shown.append(("parameters", parameters, f"FLOPs {numbers.less(step['flops'], teacher['flops'])}"))
    with st.container(horizontal=True, gap="medium"):
        for i, (name, value, below) in enumerate(shown):
            st.metric(
                plain(name),
                plain(value),
                plain(below),
                delta_color="gray" if i else show.tone(low, high),
                delta_arrow="off",
                width="content",
                help="" if i else plain(note),
            )


def _value(value: float | None, metric: str) -> str:
    return "undefined" if value is None else numbers.metric(value, points_in(metric))


def models_table(view: RunView) -> None:
    """Every model of the run."""
    show.table(step_table(view.record.kind, view.record.spec, view.baseline, view.steps))


# ---- one example across the run

MOST = 11  # steps in the figure; of more steps, evenly spaced ones are shown
_opened: Memo[Any] = Memo(1)  # the models and data of the last run


def example(view: RunView, step: dict[str, Any]) -> None:
    """The maps of one example. They appear on request, because the run's model and data must be loaded."""
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
    loading = ("run", view.record.id)
    ready = jobs.need(loading, "Loading the run's model and data", lambda p, c: _opened_run(view.record.id) is not None)
    run_state = state_of(view)
    if not ready or run_state is None:
        return
    context, plan = _opened_run(view.record.id)
    text = texts.choose(context.dev, "run_text") if frame.controls() else texts.current(state.view(), context.dev)
    head = _head(view, run_state.num_layers, run_state.num_heads)
    seed = int(step.get("seed") or 0)
    steps = _thinned([r.step for r in run_state.steps if r.seed == step.get("seed")])
    target = state.view().target if state.view().target in context.clf.labels else None

    def work(progress: jobs.Progress, cancel: jobs.Cancel) -> StepMaps:
        options: Any = {"seed": seed, "steps": steps, "target": target}
        return step_maps(
            context, plan, run_state, head, text.text, text.pair, **options, progress=progress, cancel=cancel
        )

    key = ("step maps", view.record.id, seed, tuple(steps), str(head), text.text, text.pair, target)
    maps: StepMaps | None = jobs.need(key, f"Maps of {head}, step by step", work)
    if maps is not None:
        _draw(maps, int(step["step"]))


def _ask(run_id: str) -> None:
    st.session_state["run_maps"] = run_id


def _opened_run(run_id: str) -> Any:
    """Models and data of a run. Only the last run stays in memory."""
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


def describe(maps: StepMaps) -> str:
    """When the head is removed, and how the answer changes."""
    index = next((i for i, s in enumerate(maps.steps) if s.state == "removed"), None)
    fate = f"{maps.head} is never removed"
    if index is not None:
        before, removed = maps.steps[index - 1] if index else None, maps.steps[index]
        exactly = before is not None and before.state == "there" and before.step == removed.step - 1
        fate = f"{maps.head} is removed {'at' if exactly else 'by'} {100 * removed.sparsity:.0f} %"
    answers = [(s.sparsity, maps.labels[int(np.argmax(s.probabilities))]) for s in maps.steps if s.probabilities]
    if len(maps.labels) < 2 or not answers:
        return f"{fate}."
    where = "the answer" if len(answers) == len(maps.steps) else f"in the {len(answers)} models looked at the answer"
    turns = [(x, b) for (_, a), (x, b) in pairwise(answers) if a != b]
    if not turns:
        return f"{fate}; {where} stays {answers[0][1]}."
    changes = ", ".join(f"{b} from {100 * x:.0f} %" for x, b in turns[:4])
    changes += " and turns again later" if len(turns) > 4 else ""
    return f"{fate}; {where} {answers[0][1]} becomes {changes}."


def _panels(result: StepMaps, name: str) -> go.Figure:
    """A head's ``attention`` or ``attribution`` after every step; a text where the head or the model is gone."""
    panels = []
    for step in result.steps:
        title = "all heads" if step.step == 0 else f"{100 * step.sparsity:.0f} % removed"
        values = getattr(step, name)
        if values is None:
            values = "removed" if step.state == "removed" else "model<br>not kept"
        panels.append((title, values))
    return maps.titled_maps(panels, result.tokens, name, signed=name == "attribution")


def _draw(result: StepMaps, step: int) -> None:
    show.finding(describe(result))
    captions = {
        "attention": f"Where {result.head} looks after each step. Rows are queries and sum to 1 over the keys.",
        "attribution": f"Which connections speak for (blue) or against (orange) the explained class '{result.target}'.",
    }
    for name, caption in captions.items():
        st.markdown(f"#### {plain(name.capitalize())}")
        show.figure(
            _panels(result, name),
            f"run_{name}",
            caption + " One colour scale for all steps.",
            formula=FORMULA if name == "attribution" else r"A = \mathrm{softmax}(QK^\top/\sqrt{d})",
            source=SOURCE,
        )
    for note in result.notes:
        st.info(plain(note))
    chosen = next((s for s in result.steps if s.step == step), None)
    with st.expander("The chosen step next to the full model, with its tokens"):
        if chosen is None or chosen.attention is None or chosen.attribution is None:
            st.info("After this step the head is removed, or the model was not kept. Choose an earlier step above.")
            return
        tokens, full = result.tokens, result.steps[0]
        for name in captions:
            matrices = {
                "full": (getattr(full, name), "full model"),
                "step": (getattr(chosen, name), f"{100 * chosen.sparsity:.0f} % removed"),
            }
            end = float(max(np.abs(m).max() for m, _ in matrices.values() if m is not None)) or 1.0
            for column, (key, (matrix, title)) in zip(st.columns(2), matrices.items(), strict=True):
                if matrix is not None:
                    with column:
                        show.figure(
                            maps.matrix(matrix, tokens, tokens, name, signed=name == "attribution", end=end),
                            f"run_{name}_{key}",
                            f"{result.head}, {name}, {title}",
                        )


# ---- the whole run


def detail(view: RunView, others: Sequence[RunView] = ()) -> None:
    """Everything below the state line."""
    if not view.steps:
        show_no_steps(view)
        return
    names = list(view.steps[-1]["metrics"])
    show.finding(finding(view.steps, names[0], state.view().margin))
    if frame.controls():
        state.margin()
    left, right = st.columns([3, 2], gap="large")
    with left:
        _curves([view, *others], names)
    with right:
        show_order(view)
    if frame.controls():
        playback.section(view)
    step = _choose(view)
    show_numbers(view, step, names[0])
    if frame.controls():
        _mask_lab_buttons(view, step)
    own: dict[str, Callable[[], Any]] = {"Steps": partial(models_table, view)}
    added = []
    if not recorded.of(view.record.id):  # which has no files, only steps
        own |= {"One example": partial(example, view, step), "Save the model": partial(models.save_form, view, step)}
        added = tabs_of(view)
    draw_tabs(own, added, [view], "run_tabs")


def tabs_of(view: RunView) -> list[Tab]:
    """The tabs that plugins add to a run."""
    of_kind = (tab for tab in TABS.values() if tab.of == view.record.kind)
    return [tab for tab in of_kind if tab.shown is None or plugins.function(tab.shown)(view)]


def draw_tabs(own: Mapping[str, Callable[[], Any]], added: Sequence[Tab], runs: Sequence[RunView], key: str) -> None:
    """The tabs of a run and those of plugins. Only the open one is drawn."""

    def draw_added(tab: Tab) -> None:
        plugins.function(tab.draw)(runs)

    titles = [plain(title) for title in (*own, *(tab.title for tab in added))]
    draws: list[Callable[[], Any]] = [*own.values(), *(partial(draw_added, tab) for tab in added)]
    for box, draw in zip(state.tabs(titles, key), draws, strict=True):
        if box.open:
            with box:
                draw()


def show_no_steps(view: RunView) -> None:
    """The message for a run that has no step yet, by its state."""
    names = [baselines.NAMES[baselines.role(s)] for s in baselines.distinct(view.baseline)]
    measured = f"So far measured: {', '.join(dict.fromkeys(names))}." if names else "Nothing is measured yet."
    if view.state in ACTIVE and view.state != "cancelling":
        coming = "The first step is being computed." if names else "The curve appears with the first step."
        sentence = f"{measured} {coming} You may leave this page; the run continues."
        st.info(plain(sentence), icon=":material/hourglass_top:")
    elif view.state == QUEUED:
        st.info(
            "The curve appears with the first step. You may leave this page; the run starts in its turn.",
            icon=":material/hourglass_top:",
        )
    else:
        st.info(plain(f"{measured} The run has no steps."), icon=":material/info:")


def _curves(views: Sequence[RunView], names: Sequence[str]) -> None:
    metric = choose_name("Metric", names, "run_metric", metric_title)
    sizes = [dev_size(v) for v in views]
    warning = why_not_comparable(views, sizes)
    drawn = (
        curve_of(v.to_dict(), metric, f"{v.record.title} ({v.record.id}{f', n = {n:,}' if warning and n else ''})")
        for v, n in zip(views, sizes, strict=True)
    )
    curves = [c for c in drawn if c is not None]
    level = " or ".join(dict.fromkeys(baselines.WORDS[c.against] for c in curves))
    several = len({s.get("seed") for s in views[0].steps}) > 1
    seeds = " Thin lines are seeds, the band one standard deviation." if several else ""
    show.figure(
        run_curves(curves),
        "run_curves",
        f"{metric_title(metric)}{_counted(sizes)} against the share of heads removed; dashed, {level}; dotted, "
        f"{constant_name(metric)}. Point at a step to see how much of the lead over that line is left.{seeds}",
    )
    if warning:
        st.warning(plain(warning), icon=":material/warning:")
    if frame.controls():
        _choose_others(views)


def _counted(sizes: Sequence[int | None]) -> str:
    """On how many examples, where that is one number."""
    (size, *others) = dict.fromkeys(sizes)
    return "" if others or size is None else f" on {size:,} dev examples"


def dev_size(view: RunView) -> int | None:
    """The number of examples that the run's models were evaluated on."""
    run_state = state_of(view)
    if run_state is not None:
        return len(run_state.logits[run_state.reference.logits])
    return sum((view.steps[-1].get("predicted") or {}).values()) or None if view.steps else None


def why_not_comparable(views: Sequence[RunView], sizes: Sequence[int | None]) -> str:
    """Why the curves in one figure cannot be compared point by point; empty if they can."""
    specs = [v.record.spec for v in views]
    tasks = list(dict.fromkeys(str(s.get("task")) for s in specs))
    if len(tasks) > 1:
        return f"These runs are of different tasks ({', '.join(tasks)}): their heights cannot be compared."
    names = ("data", "dev_split", "dev_limit", "text_columns", "label_column")
    if len({tuple(str(s.get(name)) for name in names) for s in specs}) == 1 and len(set(sizes)) == 1:
        return ""
    counts = ", ".join("not known" if n is None else f"{n:,}" for n in sizes)
    return (
        f"These runs were measured on different dev examples (n = {counts}), which explains a part of the distance "
        "between their curves."
    )


def _choose_others(views: Sequence[RunView]) -> None:
    """A field to add other runs to the figure."""
    first = views[0].record
    others = [r for r in listing.overview() if r.record.kind == PRUNE and r.steps and r.record.id != first.id]
    labels = listing.labels(others)
    if not labels:
        return
    st.session_state["run_beside"] = [v.record.id for v in views[1:] if v.record.id in labels]
    st.multiselect(
        "Compare with",
        list(labels),
        key="run_beside",
        format_func=lambda i: labels.get(i, i),
        placeholder="other runs in the same figure",
        on_change=_compare,
        args=(first.id,),
    )


def _compare(run_id: str) -> None:
    state.update(run=",".join([run_id, *st.session_state["run_beside"]]))


# ---- the order in which heads were removed


def survival(steps: Sequence[Step], layers: int, heads: int) -> np.ndarray:
    """The largest share of heads removed at which each head is still kept; 0 = removed at the first step. One seed."""
    values = np.zeros((layers, heads))
    for s in steps:
        for h in HeadMask.from_hex(s["mask"], layers, heads).kept:
            values[h] = max(values[h], s["sparsity"])
    return values


def show_order(view: RunView) -> None:
    """A grid of how long each head was kept. A click chooses the head whose maps are shown below."""
    run_state = state_of(view)
    if run_state is None and not recorded.of(view.record.id):
        return
    layers, heads = recorded.SHAPE if run_state is None else (run_state.num_layers, run_state.num_heads)
    seed = view.steps[0].get("seed")
    steps = [s for s in view.steps if s.get("seed") == seed]
    top = max(s["sparsity"] for s in steps)
    full = HeadMask.full(layers, heads)
    removed: dict[HeadId, str] = {}
    for s in sorted(steps, key=itemgetter("sparsity"), reverse=True):
        off = HeadMask.from_hex(s["mask"], layers, heads).off
        removed |= dict.fromkeys(off, f"removed at {100 * s['sparsity']:.0f} %")
    show.head_grid(
        "run_order",
        full,
        survival(steps, layers, heads),
        selected=state.head(full),
        tips={"": [[removed.get(HeadId(i, j), "never removed") for j in range(heads)] for i in range(layers)]},
        look=Look(
            name="kept up to this share of heads removed", scale=Scale(0.0, top, False), width=26, file="headviz-order"
        ),
        on_select=state.select,
    )
    first = f", seed {seed}" if len({s.get("seed") for s in view.steps}) > 1 else ""
    st.caption(
        f"Large heads were kept longest, small ones were removed first{plain(first)}. Choose one to follow its maps."
    )


# ---- one step


def _choose(view: RunView) -> Step:
    """The step to show: by its share of heads, and its seed if there are several."""
    seeds = list(dict.fromkeys(s.get("seed") for s in view.steps))
    with st.container(horizontal=True, vertical_alignment="bottom"):
        seed = seeds[0]
        if len(seeds) > 1:
            seed = st.selectbox("Seed", seeds, key="run_seed", width=90)
        steps = {int(s["step"]): s for s in view.steps if s.get("seed") == seed} or {
            int(s["step"]): s for s in view.steps
        }
        number = state.view().step
        st.session_state["run_step"] = number if number in steps else best_step(view, steps)
        options: dict[str, Any] = {
            "key": "run_step",
            "on_change": _step,
            "format_func": lambda k: f"{100 * steps[k]['sparsity']:.0f} %" if k in steps else str(k),
        }
        if len(steps) > 12:
            st.selectbox("After removing", list(steps), **options)
        else:
            st.segmented_control("After removing", list(steps), required=True, wrap=True, **options)
    return steps[st.session_state["run_step"] if st.session_state["run_step"] in steps else max(steps)]


def best_step(view: RunView, steps: Mapping[int, Step]) -> int:
    """The step that the run's sentence praises; the last one where it praises none."""
    share = can_go(view.steps, next(iter(view.steps[-1]["metrics"])), state.view().margin)
    return next((k for k, s in steps.items() if round(s["sparsity"], 9) == share), max(steps))


def _step() -> None:
    state.update(step=int(st.session_state["run_step"] or 0))


def kept_model(view: RunView, step: Step) -> str:
    """The folder of the model that a step trained; empty if the run did not keep it."""
    if not step.get("model"):
        return ""
    folder = RunFiles(view.record.id).results / str(step["model"])
    return str(folder) if folder.is_dir() else ""


def _mask_lab_buttons(view: RunView, step: Step) -> None:
    """Buttons to the Mask lab: with the step's own model if it was kept, and with the step's mask on θ*."""
    retrained = baselines.retrains(view.record.spec)
    changed = retrained or step.get("repair_error") is not None
    folder = kept_model(view, step)
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        if folder:
            st.button(
                "Open this step's model in the Mask lab",
                key="run_open_model",
                icon=":material/grid_on:",
                on_click=_open,
                args=(view.record.spec, "", folder),
            )
        st.button(
            "Try its mask on θ* in the Mask lab" if changed else "Open its mask in the Mask lab",
            key="run_open",
            icon=":material/grid_on:",
            on_click=_open,
            args=(view.record.spec, step["mask"]),
        )
        if changed:
            repair = "retrained" if retrained else "repaired"
            missing = " This step's own model was not kept." if retrained and not folder else ""
            st.caption(f"θ* under this mask is not the {repair} model, so the Mask lab shows other numbers.{missing}")


def _open(spec: dict[str, Any], mask: str, folder: str = "") -> None:
    """Open the run's model and data with this mask, or the step's own model in ``folder``."""
    try:
        if folder:
            look_at({**spec, "model": folder, "revision": None})
            state.forget_mask()
        else:
            look_at(spec)
            present = loaders.shape(state.view()).present
            state.set_mask(HeadMask.from_hex(mask, present.num_layers, present.num_heads))
        kept.open_page("masklab")
    except UserError as error:
        state.notify(error)
