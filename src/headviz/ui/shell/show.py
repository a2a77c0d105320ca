"""Figures, tables and numbers, each with its caption, its formula one click away, and its exports."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Literal

import streamlit as st

from ...charts.numbers import metric as metric
from ...charts.numbers import number as number
from ...charts.numbers import p_cell as p_cell
from ...charts.numbers import p_text as p_text
from ...charts.numbers import points as points
from ...charts.numbers import signed as signed
from ...evaluation.verdict import verdict
from ...heads import head_name as head_name
from ...storage.tables import to_csv, to_latex
from ..widgets.component import component
from . import view_report as viewreport
from .markdown import plain as plain

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
    """The button; ``on_back`` is told the query when the user went back or forward."""

    def went() -> None:
        sent = st.session_state.get("copy_link", {}).get("back")  # gone where the page has changed
        if sent:
            on_back(str(sent["search"]))

    component("tools")(key="copy_link", data={"kind": "link"}, width="content", on_back_change=went)


def figure(
    fig: Figure, key: str, caption: str, *, formula: str = "", source: str = "", alt: str = "", wide: str = ""
) -> None:
    """A plotly figure, one plain sentence below it, its formula and source one click away, PNG and SVG.

    ``wide`` ("28", "32", "40", "48", "64" or "96", in rem): a width below which the figure scrolls, not shrinks.
    """
    viewreport.note_figure(fig, caption)
    with st.container(key=key, gap="xsmall"):
        with st.container(key=f"wide{wide}_{key}") if wide else nullcontext():
            st.plotly_chart(fig, key=f"{key}_plot", config=PLOTLY, alt=alt or caption)
        note(caption, formula=formula, source=source, key=key)


def note(caption: str, *, formula: str = "", source: str = "", key: str = "", saves: bool = True) -> None:
    """The line below a picture."""
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        st.caption(plain(caption))
        # together, so that where the line is too short they go to the next one as a whole
        with st.container(horizontal=True, gap="small", vertical_alignment="center", width="content"):
            if formula or source:
                with st.popover("", icon=":material/info:", type="tertiary", help="Formula and source"):
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
                        "name": caption[:60],
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
    **more: Any,
) -> Any:
    """A table with its CSV and LaTeX, and with ``record`` also as JSON. ``more`` goes to ``st.dataframe``.

    ``cells`` write a column's numbers for people; it is still sorted by the numbers. ``hint`` says what can be done
    here with a row; it stays out of the files, which have no row to choose.
    """
    import pandas as pd

    viewreport.note_table(header, rows, caption)
    frame = pd.DataFrame([list(r) for r in rows], columns=list(header))
    numbers = list(frame.select_dtypes("float"))
    likely = [name for name in numbers if name in ("p", "q")]  # written as people do, still sorted as numbers
    written = {**dict.fromkeys(likely, p_cell), **{k: v for k, v in (cells or {}).items() if k in frame}}
    others = {name: st.column_config.NumberColumn(format="%.4g") for name in numbers if name not in written}
    more["column_config"] = others | more.get("column_config", {})
    more.setdefault("height", "content" if len(rows) <= 11 else 400)
    drawn = frame.style.format(written) if written else frame
    event = st.dataframe(drawn, hide_index=True, key=key, placeholder="–", **more)
    downloads(header, rows, key, caption, record, hint)
    return event


def chosen_row(event: Any, memory: str, *about: Any) -> int | None:
    """The row just chosen, once; None while it stays chosen. ``about`` is what the rows are of.

    Without a choice the memory is emptied, so that who comes back can choose the same row again.
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
    """The CSV and LaTeX of a table, and its one-sentence caption."""
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        if said := " ".join(filter(None, (caption, hint))):
            st.caption(plain(said))
        name = f"headviz-{key.replace('_', '-')}"
        with st.container(horizontal=True, gap="small", width="content"):  # where it is narrow they wrap together
            _files(header, rows, key, name, caption, record)


def _files(
    header: Sequence[str], rows: Sequence[Sequence[Any]], key: str, name: str, caption: str, record: Any
) -> None:
    """A table as files."""
    made = {
        "CSV": (lambda: to_csv(header, rows), "csv", "text/csv"),
        "LaTeX": (lambda: to_latex(header, rows, caption), "tex", "text/x-tex"),
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
    """The sentence that a page's picture says; also the report's."""
    viewreport.note_finding(text)
    st.markdown(f"**{plain(text)}**")
