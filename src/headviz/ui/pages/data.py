"""The parts of the Data & model page: model and data are chosen and described, or a base model is fine-tuned."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import streamlit as st

from ...answers import ANSWERS
from ...answers.class_names import match_names
from ...display.figures import bars
from ...display.numbers import share, span
from ...display.recipes import command
from ...display.table import Column, Table
from ...errors import LARGEST_SEED, TaskError, UserError
from ...models import DEVICES, NAMED
from ...options import Option
from ...runs import reading, service
from ...runs.kinds import make_job
from ...runs.prepare import planned_training
from ...runs.service import default_threads
from ...tasks import TASKS, sample
from ...tasks.columns import guess_label, guess_texts
from ...tasks.loading import SIGNS
from ...tasks.readers import read_table
from ...tasks.sampling import text_lengths
from ..parts import training
from ..shell import controls, frame, jobs, loaders, recipes, show, state, uploads
from ..shell.messages import on_page, plain, refused, with_download
from ..shell.view import FIELDS, OF_DATA, OPTIONS, View, defaults
from .runs import listing, models, plans

if TYPE_CHECKING:
    from ...models.base import Model
    from ...models.classifier import Classifier
    from ...pruning.options import FinetuneOptions
    from ...tasks import Dataset

# ---- models at hand

SHIPPED = {
    "demo": "demo: answers whether one sentence follows from another",
    "demo-pretrained": "demo-pretrained: the demo before it was fine-tuned (θ0)",
    "demo-translation": "demo-translation: translates an invented language",
}
LISTED = 40  # local folders that the menu lists


def picker(view: View) -> None:
    """The menu. A chosen model is opened with the task that fits it."""
    shipped = [name for name in SHIPPED if defaults(name)["task"] in TASKS]
    recent = [name for name in st.session_state.get("recent_models", ()) if name not in SHIPPED]
    names = list(dict.fromkeys([*shipped, *recent, *local_models(), view.model]))
    titles = loaders.model_titles(names) | SHIPPED
    chosen = st.selectbox(
        "Models at hand",
        names,
        names.index(view.model),
        key=f"model_pick_{view.model}",
        format_func=titles.__getitem__,
        help="Shipped models, models used lately, and folders with a model below the allowed folders",
    )
    if chosen != view.model:
        try_model(view, view.of_model(chosen))


@st.cache_data(ttl=30, show_spinner=False)
def local_models() -> list[str]:
    """Folders with a model's configuration at most three levels below an allowed root."""
    folders: list[str] = []
    for root in loaders.allowed_roots():
        for depth in ("*", "*/*", "*/*/*"):
            for file in root.glob(f"{depth}/config.json"):
                if len(folders) >= LISTED:
                    return folders
                if not any(part.startswith((".", "_")) or part == "demo" for part in file.relative_to(root).parts):
                    folders.append(str(file.parent))
    return list(dict.fromkeys(folders))


# ---- what the outputs of a model mean


def misfit(view: View, clf: Model, data: Dataset, sentence: str) -> None:
    """A warning that model and data do not fit, with lists to name the outputs where names may help. Before a task was
    chosen, only what to do next."""
    if not (view.task != FIELDS["task"] or view.data or view.model in NAMED):
        st.info("Choose the task that this model was trained for, or upload its data.", icon=":material/database:")
        return
    st.warning(plain(f"Model and data do not match. {sentence}"), icon=":material/warning:")
    outputs, names = clf.classes or (), data.label_names
    unnamed = 2 <= len(names) == len(outputs) and match_names(names, outputs) is None
    if unnamed and "," not in "".join(names) and frame.controls():
        _name_classes(outputs, names)


def _name_classes(outputs: Sequence[str], names: Sequence[str]) -> None:
    """Lists that say what each output of the model means."""
    chosen = [
        st.selectbox(plain(f"Output {i}, {output}, means"), names, i, key=f"name_{i}")
        for i, output in enumerate(outputs)
    ]
    st.caption("The model card says it. In a wrong order a good model has most answers wrong.")
    st.button(
        "Use these names",
        key="use_names",
        type="primary",
        disabled=len(set(chosen)) < len(chosen),  # each class belongs to one output
        on_click=state.update,
        kwargs={"classes": ",".join(chosen)},
    )


def named_classes(view: View) -> None:
    """That the names of the classes are the user's, and the way back."""
    if view.classes:
        st.caption(plain(f"You named the outputs: {', '.join(view.class_names or ())}."))
        if frame.controls():
            st.button("Use the model's own names", key="own_names", on_click=state.update, kwargs={"classes": ""})


def job_of(view: View, clf: Classifier) -> None:
    """The job that the user named, with the way back; or one that the configuration leaves in doubt, with the other."""
    doubt = "" if view.job in ANSWERS else clf.answer.choice(clf.config.to_dict())
    if doubt:
        st.caption(plain(f"Job: {clf.job}. {doubt}"))
        label, other = f"Read it as the job {clf.answer.instead}", clf.answer.instead
    elif view.job in ANSWERS:
        st.caption(plain(f"You named the job: {view.job}."))
        label, other = "Read it as its configuration says", ""
    else:
        return
    if frame.controls():
        st.button(plain(label), key="other_job", on_click=state.update, kwargs={"job": other})


# ---- model, data and their cards

PRECISIONS = ("auto", "float32", "bfloat16")
PRECISION_HELP = "auto: weights in float32; on a GPU computed in what is faster and agrees with that"
OWN_JOB = "as it says"
JOB_HELP = "What it answers with, where its configuration does not tell; also of a table of your own"


def card(clf: Classifier) -> None:
    """Size, family, classes and heads of the model; its digest and the memory in the details."""
    cost = loaders.cost(clf)
    with st.container(horizontal=True, gap="medium"):
        st.metric("layers × heads", f"{clf.num_layers} × {clf.num_heads}", width=120)
        st.metric("parameters", _million(cost.parameters), width=100)
        st.metric(f"FLOPs at {cost.length} tokens", _million(cost.flops), width=160)
    gone = len(clf.present.off)
    title = reading.model_title(clf.name)
    rows = [
        ("model", title),
        ("family", clf.family.title),
        ("answer", clf.answers),
        ("heads remaining", f"{len(clf.present.kept)} of {clf.present.size}" + (f", {gone} pruned" if gone else "")),
        ("size of a head", f"{clf.head_size} of {clf.config.hidden_size} dimensions"),
        ("longest text", f"{clf.max_length} tokens"),
        ("device, precision", f"{clf.device}, {str(clf.dtype).removeprefix('torch.')}"),
    ]
    digest = f"Digest of the weights, whatever the model's name: {clf.digest[:16]}."
    folder = [] if title == clf.name else [f"Read from {clf.name}."]
    show.table(Table("model_card", ("", "model"), rows))
    show.note("", more=[*folder, digest, loaders.memory_sentence()], key="model_card_details")


def _million(value: float) -> str:
    for size, name in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:.3g} {name}"
    return str(int(value))


def model_form(view: View) -> None:
    """A form for another model. It becomes the current one only if it loads."""
    with st.form("model_form", border=False):
        name = st.text_input(
            "Model", view.model, placeholder="demo, a hub id such as textattack/bert-base-uncased-MNLI, or a folder"
        )
        with st.container(horizontal=True, vertical_alignment="bottom"):
            revision = st.text_input("Revision (hub only)", view.revision, placeholder="main", width=160)
            device = st.selectbox("Device", DEVICES, _index(DEVICES, view.device), width=110)
            dtype = st.selectbox(
                "Precision", PRECISIONS, _index(PRECISIONS, view.dtype), width=130, help=PRECISION_HELP
            )
            job_names = [OWN_JOB, *(job for job, answer in ANSWERS.items() if answer.columns)]
            job = st.selectbox("Job", job_names, _index(job_names, view.job), width=150, help=JOB_HELP)
            submitted = st.form_submit_button("Load", type="primary")
    if submitted:
        new_view = replace(
            view.of_model(name.strip()),
            revision=revision.strip(),
            device=device,
            dtype="" if dtype == "auto" else dtype,
            job="" if job == OWN_JOB else job,
        )
        try_model(view, new_view)


def _index(options: Sequence[str], value: str) -> int:
    """The place of a value in a list; 0 for a value that is not in it."""
    return options.index(value) if value in options else 0


def try_model(view: View, new_view: View) -> None:
    """Use the model of the view ``new_view`` if it can be loaded; show the error otherwise."""
    try:
        with st.spinner("Loading the model …"):
            clf = with_download(lambda: loaders.model(new_view))
    except UserError as error:
        refused(error)
        return
    recent = [new_view.model, *st.session_state.get("recent_models", ())]
    st.session_state["recent_models"] = tuple(dict.fromkeys(recent))[:8]
    before = loaders.shape(view).present
    state.update(
        **{name: getattr(new_view, name) for name in ("model", "revision", "device", "dtype", "job")},
        **fitting_task(new_view, clf),
    )
    same_grid = (clf.num_layers, clf.num_heads) == (before.num_layers, before.num_heads)
    if new_view.model != view.model or not same_grid:
        state.forget_mask()
    st.rerun()


def fitting_task(view: View, clf: Model) -> dict[str, Any]:
    """The task of a shipped model, where the data of the view are for another kind of model."""
    if view.model not in NAMED:
        return {}
    with suppress(UserError):
        if not loaders.mismatch(clf, loaders.dataset(view)):
            return {}
    usual = defaults(view.model)
    empty = dict.fromkeys((*OF_DATA, "a", "b"), "")
    return {"task": usual["task"], "example": usual["example"], "skip_bad": False, **empty}


def data_form(view: View) -> None:
    """A form for another task or a folder of files, with the columns to read."""
    names, signs = list(TASKS), ("", *SIGNS)
    with st.form("data_form", border=False):
        task = st.selectbox(
            "Task", names, _index(names, view.task), format_func=lambda name: f"{TASKS[name].title} ({name})"
        )
        data = st.text_input(
            "Folder with its files (empty: the shipped data, or the hub)", view.data, placeholder="/path/to/GLUE/MNLI"
        )
        with st.container(horizontal=True):
            columns = st.text_input("Text columns", view.columns, placeholder="a or a,b", width=170)
            label = st.text_input("Label column", view.label, width=130)
            groups = st.text_input("Slice column", view.groups, width=130)
            separator = st.selectbox(
                "Columns separated by",
                signs,
                _index(signs, view.separator),
                format_func=lambda sign: sign or "as the file shows",
                help="Of a csv or tsv",
                width=190,
            )
            thresholds = view.thresholds
            answer = ANSWERS.get(view.job)
            if thresholds or "," in view.label or (answer is not None and answer.several_columns):
                meaning = plain(f"{OPTIONS['thresholds'].help.capitalize()}.")
                thresholds = st.text_input("Thresholds", thresholds, placeholder="0.5", help=meaning, width=130)
        skip_bad = st.checkbox(SKIP, view.skip_bad, key=f"data_skip_{view.skip_bad}")
        row = st.container(horizontal=True, vertical_alignment="bottom")
        with row:
            # the value is part of the key, so that a link can change the field
            limit = controls.field(row, OPTIONS["limit"], f"data_limit_{view.limit}", view.limit, step=100, width=190)
            seed = controls.field(row, OPTIONS["seed"], f"data_seed_{view.seed}", view.seed, width=120)
            submitted = st.form_submit_button("Use these data", type="primary")
    if not submitted:
        return
    try:
        new_view = replace(
            view,
            task=task,
            data=data.strip(),
            columns=columns.replace(" ", ""),
            label=label.strip(),
            groups=groups.strip(),
            separator=separator,
            skip_bad=skip_bad,
            thresholds=thresholds.replace(" ", ""),
            limit=limit(),
            seed=seed(),
        )
    except UserError as error:
        refused(error)
    else:
        try_data(new_view)


def try_data(new_view: View) -> None:
    """Use the data of this view if they can be read; show the error otherwise."""
    try:
        data = with_download(lambda: loaders.dataset(new_view))
        if not len(data):
            raise TaskError("These data have no examples.")
        if uploads.has_train(new_view.data):
            loaders.train(new_view)
    except UserError as error:
        refused(error)
        return
    names = ("task", *OF_DATA, "skip_bad", "limit", "seed")
    state.update(**{name: getattr(new_view, name) for name in names}, example=0, a="", b="", slice="")
    st.rerun()


def upload_form(view: View, clf: Classifier | None = None) -> None:
    """A form to upload a table: it is read, the user names its columns, and it is stored under its digest."""
    upload = st.file_uploader("A table with texts and labels, to measure on", type=list(uploads.FORMATS), key="upload")
    if upload is None:
        st.caption(
            "csv, tsv, jsonl or parquet, with one or two text columns and a label column. It stays on this machine."
        )
        return
    upload_to_train = st.file_uploader(
        "Table to train on (optional)",
        type=list(uploads.FORMATS),
        key="upload_train",
        help="It needs the same columns. Head scores are computed on it; pruning runs and fine-tuning need it. Without "
        "it, head scores are computed on the table above.",
    )
    main, train = _table(upload), None if upload_to_train is None else _table(upload_to_train)
    try:
        place = uploads.keep_upload(main.content, main.kind, main.called, train)
        with uploads.naming():
            table = peek(place, main.kind)
    except UserError as error:
        refused(error)
        return
    names = list(table)
    st.dataframe({name: cells[:3] for name, cells in table.items()}, hide_index=True, height="content")
    guess = guess_label(table, () if clf is None else clf.classes or ())
    num_texts = None if clf is None else clf.num_texts
    texts = st.multiselect(
        "Text columns (one, or two for pairs)",
        names,
        guess_texts(table, guess, num_texts),
        max_selections=2,
        key=f"up_texts_{upload.file_id}",
    )
    if num_texts == 2 and len(texts) == 1:
        st.warning("This model compares two texts; choose a second text column.", icon=":material/warning:")
    elif num_texts == 1 and len(texts) == 2:
        st.warning("This model reads one text; choose a single text column.", icon=":material/warning:")
    left, right = st.columns(2)
    label = left.selectbox("Label column", names, names.index(guess), key=f"up_label_{upload.file_id}")
    further_labels = left.multiselect(
        "Further label columns",
        [name for name in names if name != label and "," not in name],
        key=f"up_labels_{upload.file_id}",
        help="Where each text may have several labels: a column of 0 and 1 for each",
    )
    groups = right.selectbox(
        "Slice column",
        ["(none)", *names],
        key=f"up_groups_{upload.file_id}",
        help="A column with kinds of examples, such as an ability. Results are then also shown by kind",
    )
    skip_bad = st.checkbox(SKIP, True, key=f"up_skip_{upload.file_id}")
    if st.button("Use these data", type="primary", disabled=not texts, key="up_use"):
        try_data(
            replace(
                view,
                task="custom",
                data=place,
                columns=",".join(texts),
                label=",".join([label, *further_labels]),
                groups="" if groups == "(none)" else groups,
                separator="",
                skip_bad=skip_bad,
            )
        )


def _table(upload: Any) -> uploads.Table:
    return uploads.Table(upload.getvalue(), upload.name.rsplit(".", 1)[-1].lower(), upload.name)


def peek(place: str, kind: str) -> dict[str, list[Any]]:
    """The columns of an upload."""
    columns = read_table(uploads.uploads()[place] / f"dev.{kind}").columns
    if len(columns) < 2:
        problem = f"one column only ({next(iter(columns))[:60]})" if columns else "no columns"
        raise TaskError(f"The table has {problem}. It needs a text column and a label column.")
    return columns


def data_card(data: Dataset) -> None:
    """Size, classes, slices and notes of the data."""
    units = len(np.unique(data.units))
    of_units = f" of {units:,} {data.answer.unit[units != 1]}" if units < len(data) else ""
    st.markdown(f"**{plain(data.task.title)}**, {plain(data.split)}: {len(data):,} examples{plain(of_units)}")
    for note in (data.origin, *data.notes):
        st.caption(plain(note))
    counts = None if data.labels is None else data.answer.counts(data.labels, data.label_names)
    if counts is not None:
        singular, plural = data.answer.named
        total = len(data) if plural == data.answer.unit[1] else sum(counts.values())
        rows = [[name, count, count / max(1, total)] for name, count in counts.items()]
        caption = f"How many {plural} have each {singular}."
        show.table(Table("classes", (singular, plural, Column("share", share)), rows, caption))
    if data.slices is not None:
        sizes = data.slice_counts()
        with st.expander(plain(f"Slices: {data.slice_name or ''} ({len(sizes)})")):
            titles = (data.slice_name or "slice", "examples")
            show.table(Table("slices", titles, list(sizes.items()), "Examples by slice."))


def lengths(clf: Classifier, view: View, dev: Dataset) -> None:
    """Token lengths of train and dev, and the sample that scores are computed on."""
    key = (clf.digest, dev.digest, "lengths", view.samples, view.seed, view.data, view.task)
    result = jobs.need(key, "Counting tokens", lambda p, c: _lengths(clf, view, dev))
    if result is None:
        return
    groups, report, no_train = result
    show.figure(
        bars.histogram(groups, "tokens"),
        "lengths",
        "Text lengths in tokens.",
        source="The sample for scoring has equally many examples of each class, of all lengths.",
    )
    if report is not None:
        st.caption(plain(f"Sample for scoring: {report.text()}"))
    if no_train:
        st.caption(plain(f"Head scores are computed on {dev.split}. {no_train}"))


def _lengths(clf: Classifier, view: View, dev: Dataset) -> tuple[list[tuple[str, list[float]]], Any, str]:
    """The lengths of each split, the report of the sample for scoring, and why there is none."""

    def group(name: str, data: Dataset) -> tuple[str, list[float]]:
        return f"{name} ({len(data):,})", text_lengths(data, clf.tokenizer).astype(float).tolist()

    groups = [group("dev", dev)]
    try:
        train = loaders.train(view)
    except UserError as error:
        return groups, None, on_page(error)  # a task may have no training data; the lengths of dev are still shown
    return [group("train", train), *groups], sample(train, view.samples, seed=view.seed).report, ""


def recipe(view: View) -> tuple[str, str]:
    """How to load the same model and data."""
    lines = (recipes.HEADVIZ, recipes.load(view), recipes.task(view), "headviz.evaluate(clf, data).metrics")
    return "\n".join(lines), command("evaluate", (*recipes.model_options(view), *recipes.data_options(view)))


# ---- fine-tuning a base model in the background

SKIP = "Leave out rows without text or label, and count them"
SEED = Option("seed", 0, "for the new head, the order of the examples and dropout", most=LARGEST_SEED)
WORDS = plans.Words(
    "Check", "Count the updates and time a few", "Checking model and data, timing a few updates", "Check it first"
)


def finetuning_form(view: View) -> None:
    """The base model and how to train it on the page's data. Defaults come from the base model's own recipe, if any."""
    if view.data in loaders.uploads() and not uploads.has_train(view.data):
        st.info(f"This upload {uploads.LACKS_TRAIN}", icon=":material/folder_open:")
        return
    default = view.base or ("demo-pretrained" if view.model == "demo" else "")
    base = st.text_input(
        "Base model",
        default,
        key="tune_base",
        placeholder="bert-base-uncased, or a folder",
        help="A pre-trained encoder; it gets a new classification head for the task's classes",
    ).strip()
    if not base:
        st.caption(
            "Name the model to train: a hub id such as bert-base-uncased, or a folder that the dashboard may read."
        )
        return
    try:
        name = loaders.model_name(base)
        recipe = training.recipe_for(name)
    except UserError as error:
        refused(error)
        return
    st.caption(plain(recipe.sentence(view)))
    options, limit, room = training.fields(f"tune_{base}", recipe, None if view.data else recipe.examples)
    seed = controls.field(room, SEED, f"tune_{base}_seed")
    try:
        spec = spec_of(view, name, options(), seed(), limit())
    except UserError as error:
        refused(error)
        return
    key = ("tune", repr(sorted(spec.items())))
    checked = plans.checked(
        "tune", key, lambda p, c: (plans.busy(), planned_training(spec, default_threads(), c)), WORDS
    )
    if checked is not None:
        (busy, planned), place = checked
        st.markdown(
            f"About **{span(planned.seconds)}** on this machine{plain(busy)}: {planned.updates:,} updates on "
            f"{planned.examples:,} training examples of {plain(view.task)}."
        )
        if planned.note:
            st.caption(plain(f"Note: {planned.note}"))
        title = f"{reading.model_title(name)} on {view.task}, seed {spec['seed']}"[:120]
        plans.start(
            place,
            "tune",
            lambda owner: service.start("finetune", spec, title=title, device=planned.device, owner=owner),
        )


FROM_VIEW = ("task", "data", "label_column", "separator", "skip_bad", "device", "dev_limit")


def spec_of(view: View, name: str, options: FinetuneOptions, seed: int, limit: int | None) -> dict[str, Any]:
    """The run's specification; ``UserError`` if it cannot work."""
    source = plans.source(view)
    if TASKS[view.task].answer.quick:
        options = replace(options, evaluate_epochs=True)
    spec: dict[str, Any] = {
        "model": name,
        **{k: source[k] for k in FROM_VIEW if k in source},
        "seed": seed,
        "finetune": options.to_dict(),
    }
    if source.get("text_columns"):
        spec["text_columns"] = list(source["text_columns"])
    if limit:
        spec["train_limit"] = limit
    make_job("finetune", spec)
    return spec


# ---- looking


def latest(view: View) -> None:
    """The fine-tuning that the address names, or the newest one."""
    runs = [run for run in listing.overview() if run.record.kind == "finetune"]
    if not runs:
        return
    run = next((run for run in runs if run.record.id == view.run), runs[0])
    st.markdown(f"**{plain(run.record.title)}**")
    st.fragment(_live, run_every=listing.POLL if listing.busy(run) else None)(run.record.id, run.state)
    if run.state == "done":
        models.result(reading.show(run.record.id, log_lines=0))
    st.page_link("pages/runs.py", label="All runs", icon=":material/list:")


def _live(run_id: str, state_drawn: str) -> None:
    listing.look_again()
    run = reading.show(run_id, log_lines=0)
    listing.state_line(run)
    if run.state != state_drawn:
        st.rerun()
