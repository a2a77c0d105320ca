"""The form of a distillation: remove a part of the model and train students without it, from several starts."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import fields
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import streamlit as st

from ....display.numbers import span
from ....display.recipes import call, command
from ....engine import Workplace
from ....errors import OptionError, UserError
from ....models.hub import MODELS
from ....options import declared
from ....runs import service
from ....runs.reading import model_title
from ....ui.pages.masklab import board
from ....ui.pages.runs import plans
from ....ui.parts import scoring
from ....ui.shell import controls, loaders, recipes, state
from ....ui.shell.loaders import Shape
from ....ui.shell.messages import plain, refused
from ....ui.shell.view import View
from ..job import DistillationJob
from ..plan import METHODS, DistillationPlan, TrainingOptions
from ..removal import Removal
from . import results

if TYPE_CHECKING:
    from ....models.feed_forward import StackLayer

# -----------------------------------------------------------------------------------------------
# The form on Runs: what to remove, how students start, the plan in words, and *Start*.


PLAN, TRAINING = declared(DistillationPlan), declared(TrainingOptions)


def recurrent(view: View) -> Path | None:
    """The record of a model of a format of its own, such as a recurrent translator: one attention, no heads."""
    folder = Path(loaders.model_name(view.model))
    if not folder.is_dir() or (folder / "config.json").exists():
        return None
    return next((folder / name for name in MODELS if (folder / name).is_file()), None)


def attention(view: View) -> Removal:
    """The removal of a recurrent translator's attention, if it has one."""
    record = recurrent(view)
    try:
        has_attention = record is None or bool(json.loads(record.read_text(encoding="utf-8"))["config"]["attention"])
    except (OSError, ValueError, KeyError, TypeError):
        has_attention = True  # the run reports what is wrong with the folder
    if not has_attention:
        raise OptionError("This translator has no attention to remove. Choose its teacher instead.")
    return Removal(attention=True)


def layers_form(shape: Shape) -> tuple[list[StackLayer], list[StackLayer]]:
    """The layers, and the feed-forward blocks, to remove besides the grid's heads."""
    # pills, not lists: an open list closes when it loses the focus, and a click on Start then misses
    layers = {f"{stack}.{i}" if shape.stacks else str(i): (stack, i) for stack, i in places(shape)}
    titles = {name: f"{stack} {i}" if shape.stacks else f"L{i}" for name, (stack, i) in layers.items()}
    with st.container():  # directly in a column the pills would not wrap
        removed = state.several("layers", "Whole layers", titles)
        emptied = state.several("ffn", "Feed-forward blocks", titles)
    return [layers[name] for name in removed], [layers[name] for name in emptied]


def start_form(
    view: View, shape: Shape | None, layers: Sequence[StackLayer] = (), ffn: Sequence[StackLayer] = ()
) -> DistillationPlan | None:
    """How the students start and learn. Gives the plan once it is complete; nothing starts before.

    Without a shape the model is a recurrent translator, whose attention is removed as a whole.
    """
    from ..pieces import teacher_updates

    starts, learns = st.columns([5, 6], gap="large")
    inits = starts.container().pills(
        "Students start from",
        list(METHODS),
        selection_mode="multi",
        default=["random", "copy"],
        key="distil_inits",
        format_func=lambda n: plain(METHODS[n].title),
        help="\n".join(f"- **{plain(m.title)}**: {plain(m.what)}" for m in METHODS.values()),
    )
    left, right = learns.columns(2)
    updates = teacher_updates(view.model, view.revision or None)
    steps_help = "As many as the teacher had; fewer are quicker and favour students that start from its weights"
    if updates is None:
        steps_help = "The model's folder does not tell how many the teacher had: as many make a fair comparison"
    steps = controls.field(left, TRAINING["steps"], "distil_steps", updates or 300, step=50, help=steps_help)
    rate = controls.field(
        right,
        TRAINING["learning_rate"],
        "distil_rate",
        3e-3 if shape is None else 3e-4,
        help="The highest rate; it rises over the first steps and falls to zero",
    )
    limit = controls.field(left, PLAN["train_limit"], "distil_train")
    seeds = controls.field(right, PLAN["seeds"], "distil_seeds", (0, 1, 2))
    try:
        part = attention(view) if shape is None else removal(shape, layers, ffn)
        plan = make_plan(view, part, inits, seeds(), steps(), limit(), rate())
    except UserError as error:
        refused(error, "info")
        return None
    count = len(plan.pieces)
    students = f"{count} student{'s' if count > 1 else ''} of {steps():,} steps each"
    students += f", {count * steps():,} in all" if count > 1 else ""
    st.caption(plain(f"Removes {removed_words(plan.remove)}; trains {students}."))
    ready = plans.checked("distil", ("distil", repr(plan)), lambda progress, cancel: (plans.busy(), _seconds(plan)))
    if ready is not None:
        (busy, seconds), place = ready
        st.markdown(f"About **{span(seconds)}** of training on this machine{plain(busy)}.")
        title = f"{model_title(plan.model)} without {removed_words(plan.remove)}"
        spec = plan.to_dict()
        plans.start(place, "distil", lambda owner: service.start("distill", spec, title=title[:120], owner=owner))
    return plan


def _seconds(plan: DistillationPlan) -> float:
    """Seconds that all students train, from a few updates of one."""
    with TemporaryDirectory() as folder:
        return len(plan.pieces) * Workplace(DistillationJob(plan), Path(folder)).loaded().seconds()


def places(shape: Shape) -> list[StackLayer]:
    """The layers that can be removed. A decoder layer of a translation model covers two rows of the grid."""
    stacks = shape.stacks or (("encoder", shape.present.num_layers),)
    return [(name, i) for name, count in stacks if name != "cross" for i in range(count)]


def removal(shape: Shape, layers: Collection[StackLayer], ffn: Sequence[StackLayer]) -> Removal:
    """What the grid and the two lists remove. A removed layer includes its heads and its feed-forward block."""
    off = [h for h in state.mask(shape.present).off if h not in shape.present.off]
    if not (off or layers or ffn):
        raise OptionError(
            "Choose what to remove: switch heads off in the grid, or choose a layer or a feed-forward block."
        )
    heads, named = [], []
    for head in off:
        stack, layer = _place(shape, head.layer)
        if ("decoder" if stack == "cross" else stack, layer) in layers:
            continue
        if shape.stacks:
            named.append(f"{stack}.{layer}.{head.head}")
        else:
            heads.append(head)
    blocks = tuple(place for place in ffn if place not in layers)
    return Removal(tuple(heads), tuple(layers), blocks, named=tuple(named))


def _place(shape: Shape, row: int) -> StackLayer:
    """The stack of a row of the grid, and the layer in it."""
    ranges = shape.ranges or {"encoder": range(shape.present.num_layers)}
    return next((name, row - rows.start) for name, rows in ranges.items() if row in rows)


def make_plan(
    view: View,
    part: Removal,
    inits: Sequence[str],
    seeds: Sequence[int],
    steps: int,
    train_limit: int | None,
    rate: float,
) -> DistillationPlan:
    """The plan for the view's model and data."""
    options = {
        **plans.source(view),
        "remove": part.text,
        "inits": tuple(inits),
        "seeds": seeds,
        "training": {"steps": steps, "every": max(1, steps // 6), "learning_rate": rate},
        "train_limit": train_limit,
    }
    return DistillationPlan.from_dict(options)


def removed_words(remove: str) -> str:
    """A removal in words: ``layers:11`` is layer 11, ``heads:3.5,7.0+ffn:2`` is heads 3.5, 7.0 and ffn 2."""
    parts = []
    for part in remove.split("+"):
        kind, _, names = part.partition(":")
        single = kind.endswith("s") and names and "," not in names
        parts.append(f"{kind[:-1] if single else kind} {names.replace(',', ', ')}".strip())
    return " and ".join(parts)


def recipe(plan: DistillationPlan) -> tuple[str, str]:
    """The plan of the form as a call and as a command."""
    written = [f for f in fields(plan) if f.name not in ("posterior", "iterates")]
    changed = {f.name: getattr(plan, f.name) for f in written if getattr(plan, f.name) != f.default}
    training = {name: getattr(plan.training, name) for name in ("steps", "every", "learning_rate")}
    lines = (
        recipes.HEADVIZ,
        f"plan = {call('headviz.DistillationPlan', **changed | {'training': training})}",
        "result = headviz.distil(plan, 'student')",
    )
    options = (
        ("model", plan.model),
        ("revision", plan.revision),
        ("device", None if plan.device == "auto" else plan.device),
        ("task", plan.task),
        ("data", plan.data),
        ("limit", plan.dev_limit),
        ("train-limit", plan.train_limit),
        ("text-columns", plan.text_columns),
        ("label-column", plan.label_column),
        ("remove", plan.remove),
        ("init", plan.inits),
        ("seeds", plan.seeds),
        ("steps", plan.training.steps),
        ("every", plan.training.every),
        ("learning-rate", plan.training.learning_rate),
        ("out", "student"),
    )
    return "\n".join(lines), command("distill", options)


# -----------------------------------------------------------------------------------------------


def form(view: View) -> tuple[str, str] | None:
    """What the Runs page asks to start a distillation: what to remove, and how students learn without it. Gives the
    plan as a call and a command once it is complete."""
    shape = None if recurrent(view) else loaders.shape(view)
    parts: tuple[Any, ...] = ()
    if shape is None:
        st.caption(
            "A recurrent translator has one attention and no heads. Distillation removes all of it: students read the "
            "mean of the encoder's states instead."
        )
    else:
        left, right = st.columns([5, 6], gap="large")
        with left:
            st.caption("The heads that you switch off here are removed from the students, which learn without them.")
            board.toolbar(shape.present, scoring.ordering(view), shape.scores)
            board.grid(shape.present, scoring.ordering(state.view()), rows=shape.rows)
        with right:
            parts = layers_form(shape)
            results.published()
    with st.container(border=True):
        plan = start_form(view, shape, *parts)
    return None if plan is None else recipe(plan)
