"""Figures and tables, each with its caption, its formula in a popover, and its downloads."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import streamlit as st

from ...display.numbers import high_end as high_end
from ...display.numbers import interval as interval
from ...display.numbers import less as less
from ...display.numbers import low_end as low_end
from ...display.numbers import metric as metric
from ...display.numbers import number as number
from ...display.numbers import p_cell as p_cell
from ...display.numbers import p_text as p_text
from ...display.numbers import points as points
from ...display.numbers import signed as signed
from ...display.table import PAGE, REPORT, Table
from ...evaluation.verdict import verdict
from ...heads import HeadId, HeadMask
from ...heads import head_name as head_name
from ...storage.tables import to_csv, to_latex
from ..widgets.component import component
from ..widgets.grid import Look
from ..widgets.grid import head_grid as draw_grid
from . import state
from . import view_report as viewreport
from .markdown import plain as plain
from .refusals import on_page
from .refusals import refused as refused

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

PLOTLY = {
    "showSendToCloud": False,
    "displaylogo": False,
    "modeBarButtons": [["toImage", "resetScale2d"]],
    "responsive": True,
}


def tone(low: float | None, high: float | None) -> Literal["orange", "blue", "gray"]:
    """The colour of a change with this interval: orange for a clear loss, blue for a clear gain, else grey.

    Streamlit's own choice goes by an ASCII minus, and would show a loss that is written well as a gain.
    """
    return {"loss": "orange", "gain": "blue"}.get(verdict(low, high), "gray")  # type: ignore[return-value]


def copy_link(on_back: Callable[[str], None]) -> None:
    """The button *Copy link*. ``on_back`` gets the query when the user goes back or forward."""

    def went() -> None:
        sent = st.session_state.get("copy_link", {}).get("back")  # gone where the page has changed
        if sent:
            on_back(str(sent["search"]))

    component("tools")(key="copy_link", data={"kind": "link"}, width="content", on_back_change=went)


def figure(
    fig: Figure, key: str, caption: str, *, formula: str = "", source: str = "", alt: str = "", wide: str = ""
) -> None:
    """A plotly figure with a caption, its formula and source in a popover, and downloads as PNG and SVG.

    ``wide`` ("28", "32", "40", "48", "64" or "96", in rem): a width below which the figure scrolls, not shrinks.
    """
    viewreport.note("figure", fig, caption)
    if state.view().present:
        fig = enlarged(fig)
    with st.container(key=key, gap="xsmall"):
        with st.container(key=f"wide{wide}_{key}") if wide else nullcontext():
            st.plotly_chart(fig, key=f"{key}_plot", config=PLOTLY, alt=alt or caption)
        note(caption, formula=formula, source=source, key=key)


def head_grid(key: str, present: HeadMask, values: Any = None, *, look: Look | None = None, **more: Any) -> None:
    """The grid of heads, as ``widgets.grid`` draws it; it is also part of the report."""
    look = look or Look()
    if not look.compact:
        shown = {"values": values, "mask": present | (more.get("mask") or present), "scale": look.scale}
        shown |= {"rows": more.get("rows"), "blank": look.blank_zeros, "grey": more.get("grey")}
        viewreport.note("grid", shown, look.title or look.name)
    draw_grid(key, present, values, look=look, **more)


LARGER = 1.45  # type of a figure in a presentation, against the page's


def enlarged(fig: Figure) -> Figure:
    """The figure with larger type, to be read from afar."""
    from plotly.graph_objects import Figure as New

    big = New(fig)
    size = (big.layout.font.size or 12) * LARGER
    big.update_layout(font={"size": size}, height=None if big.layout.height is None else big.layout.height * 1.2)
    big.update_annotations(font_size=size)
    big.for_each_trace(lambda t: t.update(textfont={"size": size}) if "textfont" in t else None)
    return big


def note(caption: str, *, formula: str = "", source: str = "", key: str = "", saves: bool = True) -> None:
    """The line below a figure or a grid."""
    line = f"note_{key}" if key else None  # its style keeps the buttons beside the text
    with st.container(horizontal=True, gap="small", vertical_alignment="center", key=line):
        st.caption(plain(caption), width="stretch")
        # in one container, so that they wrap together on a narrow page
        with st.container(horizontal=True, gap="small", vertical_alignment="center", width="content"):
            if formula or source:
                with st.popover("Formula" if formula else "Source", type="tertiary"):
                    if formula:
                        st.latex(formula)
                    if source:
                        st.markdown(plain(source))
            if saves:
                component("tools")(
                    key=f"{key}_save",
                    data={
                        "kind": "figure",
                        "key": key,
                        "name": caption[:110],
                        "file": f"headviz-{key.replace('_', '-')}",
                    },
                    width="content",
                )


def table(
    header: Sequence[str],
    rows: Sequence[Sequence[Any]],
    key: str,
    *,
    caption: str = "",
    hint: str = "",
    record: Any = None,
    cells: Mapping[str, Callable[[Any], str]] | None = None,
    formats: Mapping[str, str] | None = None,
    bounded: Mapping[str, Sequence[str]] | None = None,
    made: Table | None = None,
    **more: Any,
) -> Any:
    """A table with downloads as CSV and LaTeX, and of ``record`` as JSON. ``more`` goes to ``st.dataframe``.

    ``cells`` write the numbers of a column, or ``formats`` do in printf's way; it is still sorted by the numbers.
    ``bounded`` are the texts of columns whose numbers have intervals, by row; ``made`` is the declared table, from
    which come the report and the files. ``hint`` says what choosing a row does; it is not part of the files. Zeros
    are blank in wide tables of numbers.
    """
    import pandas as pd

    viewreport.note("table", (header, rows) if made is None else (made.titles(REPORT), made.texts(REPORT)), caption)
    frame = pd.DataFrame([list(r) for r in rows], columns=list(header))
    numbers = list(frame.select_dtypes("float"))
    likely = [name for name in numbers if name in ("p", "q")]
    written = {**dict.fromkeys(likely, p_cell), **{k: v for k, v in (cells or {}).items() if k in frame}}
    if len(numbers) >= WIDE:
        blank = [name for name in numbers if name not in written and (frame[name] == 0).mean() >= MOSTLY]
        written |= dict.fromkeys(blank, _without_zero)
    printf = {name: "%.4g" for name in numbers if name not in written} | dict(formats or {})
    below = [name for name in printf if name in numbers and (frame[name] < 0).any()]  # these need a true minus sign
    written |= printed({name: printf.pop(name) for name in below})
    columns = {name: st.column_config.NumberColumn(format=form) for name, form in printf.items()}
    columns |= {name: st.column_config.Column(width=width) for name, width in _late_widths(header, rows).items()}
    more["column_config"] = columns | more.get("column_config", {})
    more.setdefault("height", "content" if len(rows) <= 11 else 400)
    drawn = frame.style.format(written) if written or bounded else frame
    for name, texts in (bounded or {}).items():
        for row, text in enumerate(texts):
            drawn.format({name: partial(_as_it_is, text)}, subset=([row], [name]))
    event = st.dataframe(drawn, hide_index=True, key=key, placeholder="–", **more)
    downloads(*((header, rows) if made is None else made.for_files()), key, caption, record, hint)
    return event


def _as_it_is(text: str, value: Any) -> str:
    return text


def result_table(made: Table, names: Sequence[str] = (), **more: Any) -> Any:
    """A declared table, its numbers written as its columns say. ``names`` are those of the grid's rows."""
    made = made.filled()
    made = replace(made, rows=[[_cell(value, names) for value in row] for row in made.rows])
    shown, titles, texts = made.shown(PAGE), made.titles(PAGE), made.texts(PAGE)
    named = [(column, title) for (_, column), title in zip(shown, titles, strict=True)]
    more["column_config"] = {
        title: st.column_config.Column(help=plain(column.meaning)) for column, title in named if column.meaning
    } | more.get("column_config", {})
    return table(
        titles,
        [[row[i] for i, _ in shown] for row in made.rows],
        made.key,
        caption=made.caption,
        hint=made.hint,
        cells={title: column.text for column, title in named if column.format},
        bounded={title: [row[k] for row in texts] for k, (column, title) in enumerate(named) if column.title != title},
        made=made,
        **more,
    )


def _cell(value: Any, names: Sequence[str]) -> Any:
    if isinstance(value, HeadId):
        return head_name(value, names)
    return " + ".join(_cell(one, names) for one in value) if isinstance(value, tuple) else value


def _late_widths(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> dict[str, int]:
    """Pixels of the columns whose longest word comes after the rows that the browser measures, and would be cut off."""
    found = {}
    for name, column in zip(header, zip(*rows, strict=True), strict=True) if len(rows) > MEASURED else ():
        lengths = [len(word) for word in column if isinstance(word, str)]
        longest = max(lengths, default=0)
        if len(lengths) == len(rows) and max(lengths[:MEASURED]) < longest <= LONGEST:
            found[name] = int(LETTER * longest) + PADDING
    return found


def filled(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> tuple[list[str], list[list[Any]]]:
    """A table without the columns that no row fills."""
    kept = [k for k in range(len(header)) if any(row[k] not in (None, "") for row in rows)]
    return [header[k] for k in kept], [[row[k] for k in kept] for row in rows]


def printed(formats: Mapping[str, str]) -> dict[str, Callable[[Any], str]]:
    """Cells by printf formats, with a true minus sign."""

    def one(form: str) -> Callable[[Any], str]:
        return lambda value: "–" if value is None or value != value else (form % value).replace("-", "−")

    return {name: one(form) for name, form in formats.items()}


MEASURED = 10  # rows that a column's width is made for
LETTER, PADDING, LONGEST = 7.5, 18, 30  # pixels of a letter and beside the text; letters up to which a text is a word
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
    now = (rows[0], *about)
    if st.session_state.get(memory) == now:
        return None
    st.session_state[memory] = now
    return int(rows[0])


def downloads(
    header: Sequence[str],
    rows: Sequence[Sequence[Any]],
    key: str,
    caption: str = "",
    record: Any = None,
    hint: str = "",
) -> None:
    """A table's caption and its downloads."""
    with st.container(horizontal=True, gap="small", vertical_alignment="center", key=f"note_{key}_files"):
        if said := " ".join(filter(None, (caption, hint))):
            st.caption(plain(said), width="stretch")
        name = f"headviz-{key.replace('_', '-')}"
        with st.container(horizontal=True, gap="small", width="content"):  # on a narrow page they wrap together
            _files(header, rows, key, name, caption, record)


TOP = 40  # rows of a LaTeX table that fit a page


def _files(
    header: Sequence[str], rows: Sequence[Sequence[Any]], key: str, name: str, caption: str, record: Any
) -> None:
    """The download buttons of a table."""
    made = {
        "CSV": (lambda: to_csv(header, rows), "csv", "text/csv"),
        "LaTeX": (lambda: to_latex(header, rows, caption, top=TOP), "tex", "text/x-tex"),
    }
    if record is not None:
        made["JSON"] = (lambda: json.dumps(record), "json", "application/json")
    for label, (text, ending, kind) in made.items():
        st.download_button(
            plain(f"↓ {label}"),
            text(),
            f"{name}.{ending}",
            kind,
            key=f"{key}_{ending}",
            type="tertiary",
            on_click="ignore",
        )


def finding(text: str) -> None:
    """The page's main sentence; it is also part of the report."""
    said = on_page(text)
    viewreport.note("finding", said)
    st.markdown(f"**{plain(said)}**")
