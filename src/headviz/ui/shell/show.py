"""Figures and tables, each with its caption, its formula in a popover, and its downloads."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from html import escape
from typing import Any, Literal

import streamlit as st
from plotly.graph_objects import Figure
from plotly.io.json import to_json_plotly

from ... import __version__
from ...display.figures.style import COLUMNS, in_words, paper_layout
from ...display.numbers import number
from ...display.table import PAGE, REPORT, Table
from ...evaluation.verdict import verdict
from ...heads import HeadId, HeadMask, head_name
from ...reports.html_page import Page
from ...storage.tables import is_number, to_csv, to_latex
from ..widgets import component, grid, words_of_file
from ..widgets.grid import Look
from . import state
from .messages import on_page, plain
from .view import link_path

REM, WIDTHS = 15, (28, 32, 40, 48, 64, 96)  # pixels of a rem, and the least widths of the style sheet
PHONE = 24  # rem: the width of a page on a phone, which holds what needs no more

PLOTLY = {
    "showSendToCloud": False,
    "displaylogo": False,
    "modeBarButtons": [["toImage", "resetScale2d"]],
    "responsive": True,
}


def tone(low: float | None, high: float | None) -> Literal["orange", "blue", "gray"]:
    """The colour of a change with this interval: orange for a clear loss, blue for a clear gain, else grey.

    Streamlit's own choice looks for an ASCII minus, and would show a loss with a true minus sign as a gain.
    """
    return {"loss": "orange", "gain": "blue"}.get(verdict(low, high), "gray")  # type: ignore[return-value]


def copy_link(on_back: Callable[[str], None]) -> None:
    """The button *Copy link*. ``on_back`` gets the query when the user goes back or forward."""

    def went() -> None:
        sent = st.session_state.get("copy_link", {}).get("back")  # gone where the page has changed
        if sent:
            on_back(str(sent["search"]))

    component("tools")(key="copy_link", data={"kind": "link"}, width="content", on_back_change=went)


def figure(fig: Figure, key: str, caption: str, *, formula: str = "", source: str = "", alt: str = "") -> None:
    """A plotly figure with a caption, its formula and source in a popover, and its files.

    Below the width that its texts need it scrolls, and does not shrink.
    """
    report("figure", fig, caption)
    with st.container(key=key, gap="xsmall"):
        least = (fig.layout.meta or {}).get("least", 0) / REM
        wide = next((width for width in WIDTHS if width >= least), WIDTHS[-1])
        with st.container(key=f"wide{wide}_{key}") if least > PHONE else nullcontext():
            shown = enlarged(fig) if state.view().present else fig
            st.plotly_chart(shown, key=f"{key}_plot", config=PLOTLY, alt=alt or caption)
            words(f"{caption} As numbers:", ("what", "values"), in_words(fig))
        note(caption, formula=formula, source=source, key=key, saves=_saved(fig, key, caption))


def _saved(fig: Figure, key: str, caption: str) -> dict[str, Any]:
    """What the browser needs to draw the figure for a file: its layouts, and the type that a presentation enlarges."""
    return {
        "key": key,
        "layouts": [json.loads(to_json_plotly(paper_layout(fig, columns))) for columns in COLUMNS],
        "fonts": [t.textfont.to_plotly_json() if "textfont" in t else None for t in fig.data],
        **words_of_file(f"headviz-{key}", caption),
    }


def head_grid(key: str, present: HeadMask, values: Any = None, *, look: Look | None = None, **more: Any) -> None:
    """The grid of heads, as ``widgets.grid`` draws it; it is also part of the report."""
    look = look or Look()
    if not look.compact:
        options = {
            "values": values,
            "mask": present | (more.get("mask") or present),
            "scale": look.scale,
            "rows": more.get("rows"),
            "blank": look.blank_zeros,
            "undecided": more.get("undecided"),
            "name": look.name,
            "marks": tuple(more.get("marks", ())),
            "mark_name": more.get("mark_name", "significant"),
        }
        report("grid", options, look.title or look.name)
    grid.head_grid(key, present, values, look=look, **more)


LARGER = 1.45  # type of a figure in a presentation, against the page's


def enlarged(fig: Figure) -> Figure:
    """The figure with larger type, to be read from afar."""
    large = Figure(fig)
    size = (large.layout.font.size or 12) * LARGER
    large.update_layout(font={"size": size}, height=None if large.layout.height is None else large.layout.height * 1.2)
    large.update_annotations(font_size=size)
    large.for_each_trace(lambda t: t.update(textfont={"size": size}) if "textfont" in t else None)
    return large


def cut_off(sentence: str) -> None:
    """How many texts are cut to the model's length; nothing where none is."""
    if sentence:
        st.caption(plain(f"{sentence[0].upper()}{sentence[1:]}."))


def note(
    caption: str,
    *,
    formula: str = "",
    source: str = "",
    more: Sequence[str] = (),
    key: str = "",
    saves: Mapping[str, Any] | None = None,
) -> None:
    """The line below a figure or a grid. *Details* folds the formula, its source, and ``more``: digests, errors of an
    integration, memory."""
    line = f"note_{key}" if key else None  # its style keeps the buttons next to the text
    with st.container(horizontal=True, gap="small", vertical_alignment="center", key=line):
        st.caption(plain(caption), width="stretch")
        # in one container, so that they wrap together on a narrow page
        with st.container(horizontal=True, gap="small", vertical_alignment="center", width="content"):
            if formula or source or more:
                with st.popover("Details", type="tertiary"):
                    if formula:
                        st.latex(formula)
                    for text in filter(None, (source, *more)):
                        st.markdown(plain(text))
            if saves:
                component("tools")(key=f"{key}_save", data={"kind": "figure", **saves}, width="content")


def table(table: Table, names: Sequence[str] = (), *, record: Any = None, **more: Any) -> Any:
    """A table with its files: CSV, a picture, LaTeX, and of ``record`` JSON. ``more`` goes to ``st.dataframe``.

    Numbers are written as their columns say, and sorted as numbers. ``names`` are those of the grid's rows. Zeros are
    blank in wide tables of numbers.
    """
    table = table.filled()
    table = replace(table, rows=[[_cell(value, names) for value in row] for row in table.rows])
    report("table", (table.titles(REPORT), table.texts(REPORT)), table.caption)
    shown, titles, texts = table.shown(PAGE), table.titles(PAGE), table.texts(PAGE)
    columns = [column for _, column in shown]
    rows = [[row[i] for i, _ in shown] for row in table.rows]
    from pandas import DataFrame

    frame = DataFrame(rows, columns=titles)
    numbers = set(frame.select_dtypes("float"))
    written: dict[str, Callable[[Any], str]] = {}
    for column, title in zip(columns, titles, strict=True):
        if column.format or title in numbers:
            blank = not column.format and len(numbers) >= WIDE and (frame[title] == 0).mean() >= MOSTLY
            written[title] = _without_zero if blank else column.text
    styled = frame.style.format(written)
    for k, (column, title) in enumerate(zip(columns, titles, strict=True)):
        if column.title != title:  # each cell ends with its interval
            for at, cells in enumerate(texts):
                styled.format({title: partial(_as_it_is, cells[k])}, subset=([at], [title]))
    widths = _late_widths(titles, rows)
    config = {
        title: st.column_config.Column(help=plain(column.meaning) or None, width=widths.get(title))
        for column, title in zip(columns, titles, strict=True)
        if title in widths or column.meaning
    }
    more["column_config"] = config | more.get("column_config", {})
    more.setdefault("height", table.height or ("content" if len(rows) <= 11 else 400))
    words(table.caption, titles, texts)
    event = st.dataframe(styled, hide_index=True, key=table.key, placeholder="–", **more)
    downloads(table, record)
    return event


SPOKEN = 60  # rows of a table that a screen reader gets; the file has all


def words(caption: str, titles: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table for screen readers: on the screen it is a picture, whether as a figure or as a grid of cells."""
    head = "".join(f'<th scope="col">{escape(title)}</th>' for title in titles)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows[:SPOKEN])
    cut = f" The first {SPOKEN} of {len(rows)} rows; the CSV has all." if len(rows) > SPOKEN else ""
    st.html(
        f'<div class="words"><table><caption>{escape(caption + cut)}</caption><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _as_it_is(text: str, value: Any) -> str:
    return text


def _cell(value: Any, names: Sequence[str]) -> Any:
    if isinstance(value, HeadId):
        return head_name(value, names)
    return " + ".join(_cell(part, names) for part in value) if isinstance(value, tuple) else value


def _late_widths(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> dict[str, int]:
    """Pixels of the columns whose longest word comes after the rows that the browser measures, and would be cut off."""
    widths = {}
    for name, column in zip(header, zip(*rows, strict=True), strict=True) if len(rows) > MEASURED else ():
        lengths = [len(word) for word in column if isinstance(word, str)]
        longest = max(lengths, default=0)
        if len(lengths) == len(rows) and max(lengths[:MEASURED]) < longest <= LONGEST:
            widths[name] = int(LETTER * longest) + PADDING
    return widths


MEASURED = 10  # rows that a column's width is made for
LETTER, PADDING, LONGEST = 7.5, 18, 30  # pixels of a letter and next to the text; letters up to which a text is a word
WIDE, MOSTLY = 8, 0.5  # columns of numbers from which a table is wide; share of zeros that are left blank


def _without_zero(value: float) -> str:
    return "" if value == 0 else "–" if value != value else number(value, 4)


def chosen_row(event: Any, memory: str, *about: Any) -> int | None:
    """The row that was just chosen; None while the choice is the same. ``about`` identifies the rows.

    Without a choice the memory is emptied, so that the same row can be chosen again later.
    """
    rows = event.selection.rows if hasattr(event, "selection") else []
    if not rows:
        st.session_state.pop(memory, None)
        return None
    choice = (rows[0], *about)
    if st.session_state.get(memory) == choice:
        return None
    st.session_state[memory] = choice
    return int(rows[0])


def downloads(table: Table, record: Any = None) -> None:
    """A table's caption and its downloads."""
    with st.container(horizontal=True, gap="small", vertical_alignment="center", key=f"note_{table.key}_files"):
        if caption := " ".join(filter(None, (table.caption, table.hint))):
            st.caption(plain(caption), width="stretch")
        # on a narrow page they wrap together
        with st.container(horizontal=True, gap="small", vertical_alignment="center", width="content"):
            _files(table, record)


TOP = 40  # rows of a table that fit a page of paper


def _files(table: Table, record: Any) -> None:
    """The download buttons of a table."""
    name = f"headviz-{table.key.replace('_', '-')}"
    files = [("CSV", to_csv(*table.for_files()), "text/csv")]
    if record is not None:
        files.append(("JSON", json.dumps(record), "application/json"))
    for label, text, kind in files:
        ending = label.lower()
        st.download_button(
            plain(f"↓ {label}"),
            text,
            f"{name}.{ending}",
            kind,
            key=f"{table.key}_{ending}",
            type="tertiary",
            on_click="ignore",
        )
    component("tools")(key=f"{table.key}_paper", data={"kind": "table", **_on_paper(table, name)}, width="content")


def _on_paper(table: Table, file: str) -> dict[str, Any]:
    """What the browser needs to draw a table for a file, and its LaTeX."""
    titles, rows = table.titles(REPORT), table.texts(REPORT)
    cut = f" The first {TOP} of {len(rows)} rows." if len(rows) > TOP else ""
    return {
        "titles": titles,
        "rows": rows[:TOP],
        "right": [all(map(is_number, column)) for column in zip(*rows, strict=True)] or [False] * len(titles),
        **words_of_file(file, f"{table.caption}{cut}".strip()),
        "tex": to_latex(*table.for_paper(), table.caption, top=TOP, label=file),
    }


def finding(text: str) -> None:
    """The page's main sentence; it is also part of the report."""
    text = on_page(text)
    report("finding", text)
    st.markdown(f"**{plain(text)}**")


# ---- the page's figures, tables and sentences in one file

_run = threading.local()  # one script run is one thread


def begin_report() -> None:
    _run.parts = []


def report(kind: str, content: Any, caption: str = "") -> None:
    """Note a ``figure`` (or a function that draws it), ``table`` or ``grid`` with its caption, a ``finding``, or a
    ``recipe`` (Python and a command)."""
    _parts().append((kind, content, caption))


def _parts() -> list[tuple[str, Any, str]]:
    if not hasattr(_run, "parts"):
        _run.parts = []
    parts: list[tuple[str, Any, str]] = _run.parts
    return parts


def _finding_first(parts: Sequence[tuple[str, Any, str]]) -> list[tuple[str, Any, str]]:
    """The first sentence before the grids that it is about; pages draw it into a place above them."""
    place = next((i for i, (kind, _, _) in enumerate(parts) if kind == "finding"), 0)
    grids_only = all(kind == "grid" for kind, _, _ in parts[:place])
    return [parts[place], *parts[:place], *parts[place + 1 :]] if place and grids_only else list(parts)


def report_button(page: str, title: str, context: str, mask: HeadMask | None) -> None:
    """The download button. The file is made at the click."""
    parts = list(_parts())
    if any(kind != "recipe" for kind, _, _ in parts):
        published = state.published()
        st.download_button(
            "↓ Report",
            lambda: report_html(title, context, parts, link_path(page, published["view"]), mask),
            f"headviz-{title.lower().replace(' ', '-')}.html",
            "text/html",
            key="view_report",
            type="tertiary",
            on_click="ignore",
            help="This page's figures and tables as one HTML file that needs no network",
        )


def report_html(
    title: str, context: str, parts: Sequence[tuple[str, Any, str]], path: str, mask: HeadMask | None = None
) -> str:
    """The page as one self-contained file."""
    page = Page(title, f"headviz {__version__} · {context}")
    for kind, content, caption in _finding_first(parts):
        if kind == "finding":
            page.heading(content)
        elif kind == "grid":
            page.values(caption, **content)
        elif kind == "figure":
            page.figure(content() if callable(content) else content)
        elif kind == "table":
            page.table(*content)
        if caption and kind in ("figure", "table"):
            page.text(caption, soft=True)
    if mask is not None and mask.off:
        page.heading("Mask")
        page.masks([(str(mask), mask)])
        page.code(mask.hex)
    page.heading("How to see it again")
    page.text("Behind the address of a running dashboard (headviz serve):", soft=True)
    page.code(path)
    for kind, python, command in parts:
        if kind == "recipe":
            page.text("In Python:", soft=True)
            page.code(python)
            if command:
                page.text("On the command line:", soft=True)
                page.code(command)
    return page.html()
