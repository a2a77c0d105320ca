"""What surrounds every page: navigation, the line with model and data, links, messages."""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import streamlit as st

from ... import plugins
from ...errors import Cancelled, OptionError, UserError
from ...heads import HeadId
from ...models.stand_in import StandIn
from ...runs import reading
from ...tasks import TASKS
from . import jobs, kept, loaders, show, state
from .messages import plain, refused
from .view import FIELDS, FIRST, OF_DATA, PAGES, View

# -----------------------------------------------------------------------------------------------
# A part of a page that is drawn alone after a click, so that nobody waits for the rest of the page.
#
# What is ``clickable`` calls ``redraw`` in its callback. A part shows some fields of the view; where anything else
# has changed, the whole page is redrawn.


SENT = 0.02  # seconds until what was drawn has left for the browser; a new run drops what has not
HEAD, MASK = "part_head", "part_mask"  # what shows the chosen head, and what the mask costs
_DRAWN = "parts_drawn"  # keys of the parts that this page has


def part(key: str, draw: Callable[[], None], *shows: str, follows: bool = False) -> None:
    """Draw a part that shows the fields ``shows`` of the view. If the rest of the page shows them too, it
    ``follows``: the whole page is redrawn after the part."""
    with_page, errors = True, list[Exception]()
    blank: dict[str, Any] = dict.fromkeys(shows, "")
    other_fields = replace(state.view(), **blank)

    @st.fragment(key=key)
    def alone() -> None:
        nonlocal with_page
        if with_page:
            with_page = False
            try:
                draw()
            except Exception as error:  # the page shows it in its own way
                errors.append(error)
            return
        if replace(state.view(), **blank) != other_fields or state.session().shown:  # the next click removes a notice
            st.rerun()
        if not follows:
            draw()
            state.publish()
            return
        jobs.page_begins(state.session().page)
        with suppress(UserError, Cancelled):  # the page meets it again, and shows it
            draw()
        time.sleep(SENT)
        st.rerun()

    st.session_state[_DRAWN] = (*st.session_state.get(_DRAWN, ()), key)
    alone()
    for error in errors:
        raise error


def clickable(draw: Callable[[], None]) -> None:
    """Draw what calls ``redraw``. A click on it must not begin a run of the page, which would drop its downloads."""
    st.fragment(draw)()


def redraw(key: str) -> None:
    """In a callback: draw this part alone. A page that does not have it yet is drawn from its beginning."""
    st.rerun(key if key in st.session_state.get(_DRAWN, ()) else "app")


def select(chosen: HeadId) -> None:
    """Choose this head. The part of the page that shows it is drawn alone."""
    state.select(chosen)
    redraw(HEAD)


# The whole page --------------------------------------------------------------------------------


TEXTS = ("One head", "Compare")  # pages about single texts: what depends on the text cannot stand in a head's place
# pages that work while the view's data do not exist
CHOOSING = tuple(page.title for page in PAGES.values() if page.without_data)

_OPEN = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {0} 26" height="26" width="{0}">'
_DOTS = (
    '<g fill="#1b8da1"><rect x="1" y="2" width="6" height="6" rx="1.5"/>'
    '<rect x="9" y="2" width="6" height="6" rx="1.5" opacity=".35"/>'
    '<rect x="17" y="2" width="6" height="6" rx="1.5"/><rect x="1" y="10" width="6" height="6" rx="1.5" opacity=".35"/>'
    '<rect x="9" y="10" width="6" height="6" rx="1.5" fill="#c4651f"/>'
    '<rect x="17" y="10" width="6" height="6" rx="1.5" opacity=".6"/><rect x="1" y="18" width="6" height="6" rx="1.5"/>'
    '<rect x="9" y="18" width="6" height="6" rx="1.5" opacity=".6"/>'
    '<rect x="17" y="18" width="6" height="6" rx="1.5" opacity=".35"/></g>'
)
MARK = f"{_OPEN.format(24)}{_DOTS}</svg>"
LOGO = (
    f"{_OPEN.format(108)}{_DOTS}"
    '<text x="31" y="19" font-family="Inter, Helvetica, Arial, sans-serif" font-size="17" font-weight="650" '
    'fill="#1b8da1">headviz</text></svg>'
)

_CSS = f"<style>{Path(__file__).with_name('page.css').read_text(encoding='utf-8')}</style>"
_PRESENT = "<style>html {font-size: 125%} .stMainBlockContainer {max-width: 100rem}</style>"


_inside = threading.local()  # one script run is one thread


def begin() -> View:
    """The first line of every page: gives the view to draw.

    A server that has not run ``st.navigation`` yet runs a linked page without its frame. Then this declares the
    navigation and starts over.
    """
    if not getattr(_inside, "page", ""):
        navigation()
        st.rerun()
    return state.view()


def navigation() -> st.Page:
    """Declare the pages; gives the page of the address."""
    return st.navigation([_page(name) for name in PAGES], position="top")


def _page(name: str) -> st.Page:
    page = PAGES[name]
    source = (lambda: plugins.function(page.draw)()) if page.draw else f"pages/{name}.py"
    return st.Page(source, title=page.title, url_path=name)


def link(name: str, label: str, icon: str) -> None:
    """A link to a page."""
    st.page_link(_page(name), label=label, icon=icon)


def run(above: Callable[[str], None], search: Callable[[], None]) -> None:
    """The whole app: frame, chosen page, address bar.

    ``above`` draws what stands above the page of this name, ``search`` the button that finds everything by its name.
    """
    plugins.load_environment()
    st.set_page_config(page_title="headviz", page_icon=MARK, layout="wide")
    st.logo(LOGO, size="large")
    page = navigation()
    if name := kept.follow():
        st.switch_page(_page(name))
    state.open_address(page.title)
    st.set_page_config(page_title=f"{page.title} · {reading.model_title(state.view().model)} · headviz")
    st.html(_CSS + (_PRESENT if state.view().present else ""))
    try:
        _guarded(page, above, search)
    finally:
        _inside.page = ""
        state.publish()
    loaders.warm_up()


def _guarded(page: st.Page, above: Callable[[str], None], search: Callable[[], None]) -> None:
    name = next(name for name, entry in PAGES.items() if entry.title == page.title)
    try:
        line, corner = _context_line(page.title, search)
        notices = st.container()
        for refusal in plugins.refused():
            notices.warning(plain(refusal), icon=":material/extension_off:")
        _notices(notices)
        _inside.page = page.title
        show.begin_report()
        if page.title not in CHOOSING:
            loaders.require_source(state.view())
            loaders.require_fit(state.view())
        jobs.page_begins(page.title)
        st.session_state[_DRAWN] = ()
        above(name)
        page.run()
        jobs.page_ends()
        kept.keep(name)
        _notices(notices)  # what the page found wrong with the view, such as a head that the model does not have
        _write_context(line)  # the page may have loaded the data, so that their number is known now
        with corner:
            _report(name)
    except UserError as error:
        refused(error)
        if name != "data":
            st.page_link("pages/data.py", label="Choose another model or other data", icon=":material/database:")
            offer_training(error)
            _fitting_task()
    except Cancelled:
        st.info("Stopped.")
    except Exception as error:
        traceback.print_exc()
        st.error(f"headviz failed here ({plain(type(error).__name__)}). The server's log has the details.")
    except BaseException:  # streamlit's own way to start over
        state.repeat_notices()
        raise


def _notices(place: st.delta_generator.DeltaGenerator) -> None:
    for text in state.take_notices():
        place.warning(plain(text), icon=":material/info:")


def _fitting_task() -> None:
    """A button for the usual mistake: a model whose answers are not what the task asks for. It takes a shipped task."""
    view = state.view()
    with suppress(UserError, ImportError):
        reads, task = loaders.shape(view).answer.reads, TASKS.get(view.task)
        shipped = [name for name, other in TASKS.items() if other.source.module and other.job in reads]
        if shipped and (task is None or task.job not in reads):
            st.button(
                plain(f"Use the task {shipped[0]}"),
                key="take_task",
                on_click=state.update,
                kwargs={"task": shipped[0], "data": "", "columns": "", "label": "", "example": 0},
            )


def offer_training(error: UserError) -> None:
    """For an encoder without a head: a button that opens the form which trains one on the view's data."""
    if error.code == "untrained-head":
        st.button("Fine-tune it on these data", icon=":material/model_training:", on_click=_train, key="train_head")


def _train() -> None:
    state.update(base=state.view().model)
    st.session_state.pop("tune_base", None)  # what was typed there before
    st.session_state["tune_box"] = True
    kept.open_page("data")


def _report(name: str) -> None:
    view = state.view()
    if not view.present:
        mask = None
        with suppress(UserError, ImportError):
            mask = state.mask(loaders.shape(view).present)
        show.report_button(name, PAGES[name].title, _model_and_data(view), mask)


def _context_line(
    title: str, search: Callable[[], None]
) -> tuple[st.delta_generator.DeltaGenerator, st.delta_generator.DeltaGenerator]:
    """Title, model and data of this page, and its links. Returns the places of that line and of the report."""
    view = state.view()
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="context"):
        st.title(plain(title), width="content", anchor=False)
        line = st.empty()
        _write_context(line)
        corner = st.container(width="content")
        if not view.present:
            search()
            show.copy_link(state.went_back)
            if title == PAGES[FIRST].title:
                kept.continue_button()
        state.tick("present", "Presentation", help="Hide the controls and enlarge the type")
    return line, corner


def _write_context(line: st.delta_generator.DeltaGenerator) -> None:
    line.caption(plain(_model_and_data(state.view())), width="stretch")


def _model_and_data(view: View) -> str:
    parts = [f"model {reading.model_title(view.model)}"]
    with suppress(UserError, ImportError):
        shape = loaders.shape(view)
        parts.append(f"{shape.size} heads{f' in {view.dtype}' if view.dtype else ''}")
    size = None
    with suppress(UserError):
        size = loaders.dataset_size(view)
    parts.append(f"task {view.task}, {examples_text(view.limit, size)}")
    return "  ·  ".join(parts)


def in_their_place() -> str:
    """What stands in the place of heads that are off on this page; empty for zero."""
    view, page = state.view(), state.session().page  # also of a part that is drawn alone
    with suppress(OptionError):
        stand_in = StandIn.of(view.ablation)
        if stand_in.kind == FIELDS["ablation"]:
            return ""
        if page in TEXTS and stand_in.of_the_text:
            return f" (zero in their place here: {stand_in.kind} has another vector for every text)"
        if page in (*TEXTS, "Mask lab", "Analyses", "Workbench"):
            return f" ({stand_in.kind} of {stand_in.examples} training examples in their place)"
    return ""


def examples_text(limit: int, size: int | None) -> str:
    """How many dev examples there are; ``size`` is None before they are loaded."""
    if size is None:
        return f"up to {limit:,} dev examples" if limit else "all dev examples"
    return f"{size:,} dev examples" if size == limit else f"all {size:,} dev examples"


def explains_classes(view: View) -> bool:
    """Whether this page can show the view's model. For one without a number to explain it shows links to others."""
    shape = loaders.shape(view)
    if shape.labels:
        return True
    does = shape.answer.does.format(texts="a text", n="")
    st.info(
        plain(f"Attribution explains one number of an answer. A model that {does} has no such number. It is shown on:"),
        icon=":material/info:",
    )
    with st.container(horizontal=True, gap="medium"):
        for file in ("scores", "masklab", "compare", "analyses"):
            st.page_link(f"pages/{file}.py", label=plain(PAGES[file].title))
        st.button("Open the demo classifier", key="classifier_again", on_click=take_demo, args=("demo",))
    return False


def take_demo(name: str) -> None:
    """Switch to a shipped model and its task, which has the same name. Mask, text and data of before are dropped."""
    state.forget_mask()
    empty = dict.fromkeys(("revision", "base", *OF_DATA, "a", "b"), "")
    state.update(**{**empty, "model": name, "task": name, "example": 0, "skip_bad": False})


def controls() -> bool:
    """Whether a page shows its controls; a presentation hides them."""
    return not state.view().present


def recipe(python: str, command: str) -> None:
    """Show the library call and the command that give the same result."""
    if not controls():
        return
    show.report("recipe", python, command)
    _recipe(python, command)


@st.fragment
def _recipe(python: str, command: str) -> None:
    """Folded, and empty until it is opened, because the highlighting of code is slow to load."""
    with st.expander(
        "The same in Python or on the command line", icon=":material/code:", key="recipe", on_change="rerun"
    ) as box:
        if box.open:
            st.code(python, language="python")
            if command:
                st.code(command, language="bash")
