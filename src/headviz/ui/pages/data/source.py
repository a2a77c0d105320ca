"""The parts of the Data & model page: forms that choose model and data, their cards, and text lengths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import streamlit as st

from ....display.figures import histograms
from ....display.recipes import command
from ....errors import TaskError, UserError
from ....models.named import NAMED
from ...shell import jobs, loaders, numbers, recipes, show, state, uploads
from ...shell.refusals import asked, on_page
from ...shell.view import View, defaults

if TYPE_CHECKING:
    from ....models.base import Model
    from ....models.classifier import Classifier
    from ....tasks import Dataset

DEVICES = ("auto", "cpu", "cuda", "mps")
PRECISIONS = ("float32", "bfloat16")
JOBS = ("as it says", "class", "number", "labels")
JOB_HELP = "What it answers with, where its configuration does not tell; also of a table of your own"


def card(clf: Classifier) -> None:
    """Size, family, classes, heads and digest of the model."""
    cost = loaders.cost(clf)
    with st.container(horizontal=True, gap="medium"):
        st.metric("layers × heads", f"{clf.num_layers} × {clf.num_heads}", width=120)
        st.metric("parameters", _million(cost.parameters), width=100)
        st.metric(f"FLOPs at {cost.length} tokens", _million(cost.flops), width=160)
    gone = len(clf.present.off)
    rows = [
        ("model", clf.name),
        ("family", clf.family.title),
        ("classes", clf.answers),
        ("heads remaining", f"{len(clf.present.kept)} of {clf.present.size}" + (f", {gone} pruned" if gone else "")),
        ("size of a head", f"{clf.head_size} of {clf.config.hidden_size} dimensions"),
        ("longest text", f"{clf.max_length} tokens"),
        ("device, precision", f"{clf.device}, {str(clf.dtype).removeprefix('torch.')}"),
        ("weights digest", clf.digest[:16]),
    ]
    show.table(
        ["", "model"], rows, "model_card", caption="The digest identifies the weights, whatever the model's name."
    )


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
            device = st.selectbox(
                "Device", DEVICES, DEVICES.index(view.device) if view.device in DEVICES else 0, width=110
            )
            dtype = st.selectbox("Precision", PRECISIONS, int(view.dtype == "bfloat16"), width=130)
            job = st.selectbox("Job", JOBS, JOBS.index(view.job) if view.job in JOBS else 0, width=150, help=JOB_HELP)
            sent = st.form_submit_button("Load", type="primary")
    if sent:
        wanted = replace(
            view.of_model(name.strip()),
            revision=revision.strip(),
            device=device,
            dtype="" if dtype == "float32" else dtype,
            job="" if job == JOBS[0] else job,
        )
        try_model(view, wanted)


def try_model(view: View, wanted: View) -> None:
    try:
        with st.spinner("Loading the model …"):
            clf = asked(lambda: loaders.model(wanted))
    except UserError as wrong:
        show.refused(wrong)
        return
    recent = [wanted.model, *st.session_state.get("recent_models", ())]
    st.session_state["recent_models"] = tuple(dict.fromkeys(recent))[:8]
    same = clf.present.num_layers, clf.present.num_heads
    old = loaders.shape(view).present
    state.update(
        model=wanted.model,
        revision=wanted.revision,
        device=wanted.device,
        dtype=wanted.dtype,
        job=wanted.job,
        **fitting_task(wanted, clf),
    )
    if wanted.model != view.model or same != (old.num_layers, old.num_heads):
        state.forget_mask()
    st.rerun()


def fitting_task(view: View, clf: Model) -> dict[str, Any]:
    """The task of a shipped model, where the data of the view are for another kind of model."""
    if view.model not in NAMED:
        return {}
    try:
        fits = not loaders.mismatch(clf, loaders.dataset(view))
    except UserError:
        fits = False
    nothing = dict.fromkeys(("data", "columns", "label", "groups", "a", "b"), "")
    return {} if fits else {"task": defaults(view.model)["task"], "example": 0, **nothing}


def data_form(view: View) -> None:
    """A form for another task or a folder of files, with the columns to read."""
    from ....tasks import TASKS

    titles = {name: task.title for name, task in TASKS.items()}
    with st.form("data_form", border=False):
        task = st.selectbox(
            "Task",
            list(titles),
            list(titles).index(view.task) if view.task in titles else 0,
            format_func=lambda name: f"{titles[name]} ({name})",
        )
        data = st.text_input(
            "Folder with its files (empty: the shipped data, or the hub)", view.data, placeholder="/path/to/GLUE/MNLI"
        )
        with st.container(horizontal=True):
            columns = st.text_input("Text columns", view.columns, placeholder="a or a,b", width=170)
            label = st.text_input("Label column", view.label, width=130)
            groups = st.text_input("Slice column", view.groups, width=130)
        row = st.container(horizontal=True, vertical_alignment="bottom")
        with row:
            # the value is part of the key, so that a link can change the field
            limit = numbers.field(
                row, "Dev examples (0 = all)", 0, 1_000_000, view.limit, f"data_limit_{view.limit}", step=100, width=190
            )
            seed = numbers.field(row, "Seed", 0, 2**31 - 1, view.seed, f"data_seed_{view.seed}", width=120)
            sent = st.form_submit_button("Use these data", type="primary")
    if not sent:
        return
    try:
        wanted = replace(
            view,
            task=task,
            data=data.strip(),
            columns=columns.replace(" ", ""),
            label=label.strip(),
            groups=groups.strip(),
            limit=limit(),
            seed=seed(),
        )
    except UserError as wrong:
        show.refused(wrong)
    else:
        try_data(wanted)


def try_data(wanted: View) -> bool:
    """Use the data of this view if they can be read; show the error otherwise."""
    try:
        found = asked(lambda: loaders.dataset(wanted))
        if not len(found):
            raise TaskError("These data have no examples.")
        if uploads.has_train(wanted.data):
            loaders.train(wanted)
    except UserError as wrong:
        show.refused(wrong)
        return False
    names = ("task", "data", "columns", "label", "groups", "limit", "seed")
    state.update(**{n: getattr(wanted, n) for n in names}, example=0, a="", b="", slice="")
    st.rerun()
    return True


def upload_form(view: View, clf: Classifier | None = None) -> None:
    """A form to upload a table: it is read, the user names its columns, and it is stored under its digest."""
    import pandas as pd

    sent = st.file_uploader("A table with texts and labels, to measure on", type=list(uploads.FORMATS), key="upload")
    if sent is None:
        st.caption(
            "csv, tsv, jsonl or parquet, with one or two text columns and a label column. It stays on this machine."
        )
        return
    further = st.file_uploader(
        "Table to train on (optional)",
        type=list(uploads.FORMATS),
        key="upload_train",
        help="It needs the same columns. Head scores are computed on it; pruning runs and fine-tuning need it. Without "
        "it, head scores are computed on the table above.",
    )
    main, train = _table(sent), None if further is None else _table(further)
    kind = main.kind
    try:
        place = uploads.keep_upload(main.content, kind, main.called, train)
        with uploads.naming():
            table = peek(place, kind)
    except UserError as wrong:
        show.refused(wrong)
        return
    names, first = list(table), pd.DataFrame({n: cells[:3] for n, cells in table.items()})
    st.dataframe(first, hide_index=True, height="content")
    guess = guess_label(table, () if clf is None else clf.classes or ())
    wanted = None if clf is None else clf.num_texts
    texts = st.multiselect(
        "Text columns (one, or two for pairs)",
        names,
        guess_texts(table, guess, wanted),
        max_selections=2,
        key=f"up_texts_{sent.file_id}",
    )
    if wanted == 2 and len(texts) == 1:
        st.warning("This model compares two texts; choose a second text column.", icon=":material/warning:")
    elif wanted == 1 and len(texts) == 2:
        st.warning("This model reads one text; choose a single text column.", icon=":material/warning:")
    left, right = st.columns(2)
    label = left.selectbox("Label column", names, names.index(guess), key=f"up_label_{sent.file_id}")
    further_labels = left.multiselect(
        "Further label columns",
        [n for n in names if n != label and "," not in n],
        key=f"up_labels_{sent.file_id}",
        help="Where each text may have several labels: a column of 0 and 1 for each",
    )
    groups = right.selectbox(
        "Slice column",
        ["(none)", *names],
        key=f"up_groups_{sent.file_id}",
        help="A column with kinds of examples, such as a phenomenon. Results are then also shown by kind",
    )
    if st.button("Use these data", type="primary", disabled=not texts, key="up_use"):
        try_data(
            replace(
                view,
                task="custom",
                data=place,
                columns=",".join(texts),
                label=",".join([label, *further_labels]),
                groups="" if groups == "(none)" else groups,
            )
        )


def _table(sent: Any) -> uploads.Table:
    return uploads.Table(sent.getvalue(), sent.name.rsplit(".", 1)[-1].lower(), sent.name)


def peek(place: str, kind: str) -> dict[str, list[Any]]:
    """The columns of an upload."""
    from ....tasks.readers import read_table, separator_hint

    table = read_table(uploads.uploads()[place] / f"dev.{kind}")
    names = list(table.columns)
    if len(names) < 2:
        raise TaskError(
            f"The table has one column only ({names[0][:60]}). It needs a text column and a label column."
            f"{separator_hint(table.name, names)}"
        )
    return {n: list(table.columns[n]) for n in names}


LABELS = ("label", "gold_label", "labels", "class", "target", "gold")


def guess_label(table: Mapping[str, Sequence[Any]], classes: Sequence[str] = ()) -> str:
    """The column with a usual name for labels, else one that holds the model's classes, else the last one."""
    names = {name.casefold().strip(): name for name in reversed(list(table))}
    called = next((names[n] for n in LABELS if n in names), None)
    known = {str(c).casefold() for c in classes}
    holds = (n for n, cells in table.items() if cells and {str(c).casefold().strip() for c in cells} <= known)
    return called or next(holds, None) or list(table)[-1]


def guess_texts(table: Mapping[str, Sequence[Any]], label: str, wanted: int | None = None) -> list[str]:
    """The first columns in which most cells have several words: two, or as many as the model takes."""
    others = [n for n in table if n != label]
    found = [n for n in others if _wordy(table[n][:200])]
    return (found or others)[: 2 if len(found) > 1 and wanted != 1 else 1]


def _wordy(cells: Sequence[Any]) -> bool:
    several = sum(isinstance(c, str) and len(c.split()) > 1 for c in cells)
    return 2 * several > len(cells)


def data_card(data: Dataset) -> None:
    """Size, classes, slices and notes of the data."""
    st.markdown(f"**{show.plain(data.task.title)}**, {show.plain(data.split)}: {len(data):,} examples")
    for note in (data.origin, *data.notes):
        st.caption(show.plain(note))
    counts = None if data.labels is None else data.answer.counts(data.labels, data.label_names)
    if counts is not None:
        rows = [[k, v, v / max(1, len(data))] for k, v in counts.items()]
        show.table(["class", "examples", "share"], rows, "classes", caption="How many examples each class has.")
    if data.slices is not None:
        counts = data.slice_counts()
        with st.expander(show.plain(f"Slices: {data.slice_name or ''} ({len(counts)})")):
            show.table(
                [data.slice_name or "slice", "examples"], list(counts.items()), "slices", caption="Examples by slice."
            )


def lengths(clf: Classifier, view: View, dev: Dataset) -> None:
    """Token lengths of train and dev, and the range of lengths that scores are computed on."""
    key = (clf.digest, dev.digest, "lengths", view.samples, view.seed, view.data, view.task)
    found = jobs.need(key, "Counting tokens", lambda p, c: _lengths(clf, view, dev))
    if found is None:
        return
    groups, report, lacking = found
    band = None if report is None else report.band
    show.figure(
        histograms.histogram(groups, "tokens", band),
        "lengths",
        "Text lengths in tokens. Scores are computed on texts in the grey band." if band else "Text lengths in tokens.",
        source="The sample for scoring has equally many examples of each class and leaves out short and long texts, by "
        "default those outside the 25–75 % quantiles (“Integrated Gradients for Structured Pruning on BERT”, §6.6.1).",
    )
    if report is not None:
        st.caption(show.plain(f"Sample for scoring: {report.text()}"))
    if lacking:
        st.caption(show.plain(f"Head scores are computed on {dev.split}. {lacking}"))


def _lengths(clf: Classifier, view: View, dev: Dataset) -> tuple[list[tuple[str, list[float]]], Any, str]:
    from ....tasks import sample
    from ....tasks.sampling import text_lengths

    def counted(data: Dataset) -> list[int]:
        return text_lengths(data, clf.tokenizer).tolist()

    groups = [(f"dev ({len(dev):,})", [float(n) for n in counted(dev)])]
    try:
        train = loaders.train(view)
    except UserError as wrong:
        return (groups, None, on_page(wrong))  # a task may have no training data; the lengths of dev are still shown
    lengths = counted(train)
    groups.insert(0, (f"train ({len(train):,})", [float(n) for n in lengths]))
    drawn = sample(train, view.samples, seed=view.seed, lengths=lengths)
    return groups, drawn.report, ""


def recipe(view: View) -> tuple[str, str]:
    """How to load the same model and data."""
    lines = (recipes.HEADVIZ, recipes.load(view), recipes.task(view), "headviz.evaluate(clf, data).metrics")
    return "\n".join(lines), command("evaluate", (*recipes.model_options(view), *recipes.data_options(view)))
