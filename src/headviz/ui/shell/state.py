"""The session of one browser tab: its view, its masks, its notices; and the address bar that mirrors the view."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import parse_qsl

import streamlit as st

from ...errors import MaskError, UserError
from ...heads import HeadId, HeadMask, parse_heads
from .mask_edit import History
from .messages import on_page, plain
from .view import FIELDS, FIRST, LONG, LONGEST_TEXT, OF_SCORES, OPTIONS, PAGES, View, from_address, to_address

Address = tuple[tuple[str, str], ...]

_KEY = "headviz"
ECHO = 4.0  # seconds in which an address that was replaced may still come back


@dataclass(frozen=True)
class Session:
    """One browser tab. ``written`` holds the addresses written lately, the newest last, with their times."""

    view: View = field(default_factory=View)
    history: History = field(default_factory=History)
    saved: tuple[tuple[str, str], ...] = ()  # (name, "HEX", or "HEX ABLATION" where that is not zero)
    notices: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()  # notices that stand on the page now
    written: tuple[tuple[float, Address], ...] = ()
    page: str = ""  # of the page drawn last, its title
    kept_of: str = ""  # digest of the model whose part of the workspace is here
    kept_masks: tuple[tuple[str, str], ...] = ()  # the workspace's masks when it was last read
    texts: tuple[tuple[str, str], ...] = ()  # own texts that are saved, the newest first
    new_texts: tuple[tuple[str, str], ...] = ()  # texts that are still to be saved

    def echoes(self, address: Address) -> bool:
        """Whether this address was written by us, and is not a link or the back button.

        While a page is drawn, a click still sends the address before. Taken as a link, it would undo the last edit.
        """
        until = [*(t for t, _ in self.written[1:]), float("inf")]  # when each was replaced by the next
        now = time.monotonic()
        return any(a == address and now - t < ECHO for (_, a), t in zip(self.written, until, strict=False))


def session() -> Session:
    if _KEY not in st.session_state:
        st.session_state[_KEY] = Session(view=from_address({})[0])
    session: Session = st.session_state[_KEY]
    return session


def _change(**fields: Any) -> None:
    """Set these fields of the session."""
    st.session_state[_KEY] = replace(session(), **fields)


def view() -> View:
    return session().view


def open_address(page: str) -> None:
    """Take the view from the address bar if the address came from outside: a pasted link, or the back button.

    Streamlit empties the address when the page changes; then the session's view is kept. So an address that comes with
    another page is never an echo.
    """
    moved = page != session().page
    _change(page=page, shown=())
    address = tuple(sorted(st.query_params.to_dict().items()))
    if address and (moved or not session().echoes(address)):
        _take(address)


def went_back(query: str) -> None:
    """Take the view from this address, to which the user went back or forward."""
    _take(tuple(sorted(parse_qsl(query.removeprefix("?"), keep_blank_values=True))))


def _take(address: Address) -> None:
    old, values = session(), dict(address)
    too_long = [name for name in values.pop(LONG, "").split(",") if name]  # for an address; they stay in the session
    kept = {n: t for n in ("a", "b") if n in too_long and len(t := getattr(old.view, n)) > LONGEST_TEXT}
    if lost := [n for n in too_long if n not in kept]:
        values[LONG] = ",".join(lost)
    new_view, complaints = from_address(values)
    new_view = replace(new_view, **kept)
    history = old.history.push(new_view.mask) if old.written else History(present=new_view.mask)
    written = ((time.monotonic(), address),)
    _change(view=new_view, history=history, notices=tuple(complaints), written=written)


def publish() -> None:
    """Write the view to the address bar, if it changed."""
    current = session()
    parameters = to_address(current.view)
    if current.page == PAGES[FIRST].title:
        parameters = {name: text for name, text in parameters.items() if name not in OF_SCORES}
    address = tuple(sorted(parameters.items()))
    if st.query_params.to_dict() != parameters:
        st.query_params.from_dict(parameters)
    if not current.written or current.written[-1][1] != address:
        _change(written=(*current.written[-15:], (time.monotonic(), address)))
    published()["view"] = current.view


def published() -> dict[str, View]:
    """Holds the ``view`` of the address bar, for what runs later and outside of the session."""
    holder: dict[str, View] = st.session_state.setdefault("published", {})
    return holder


def update(**changes: Any) -> None:
    """Change the view. A new mask enters the history; a chosen example replaces an empty text.

    Another model has its own names for its classes.
    """
    view, history = session().view, session().history
    if changes.get("model", view.model) != view.model:
        changes.setdefault("classes", "")
    if "example" in changes:
        changes.setdefault("blank", False)
    if "mask" in changes:
        history = history.push(changes["mask"])
    _change(view=replace(view, **changes), history=history)


def open_view(new_view: View) -> None:
    """Show another view, as a link to it would; its mask enters the history."""
    _change(view=new_view, history=session().history.push(new_view.mask))


def _set_history(history: History) -> None:
    """Take over a history, and show its present mask."""
    _change(history=history, view=replace(session().view, mask=history.present))


def set_mask(mask: HeadMask, *, base: HeadMask | None = None) -> None:
    """Set the mask; ``base`` as in ``History.push``."""
    _set_history(session().history.push(_mask_text(mask), base=None if base is None else _mask_text(base)))


def _mask_text(mask: HeadMask) -> str:
    return "" if mask.is_full else mask.hex


def undo() -> None:
    _set_history(session().history.undo())


def redo() -> None:
    _set_history(session().history.redo())


def forget_mask() -> None:
    """All heads on, without history, because another model's masks do not fit."""
    _change(history=History(), view=replace(session().view, mask="", head=""), saved=(), kept_of="", texts=())


def save_mask(saved: dict[str, str]) -> None:
    _change(saved=tuple(saved.items()))


def take_kept(digest: str, masks: Mapping[str, str], texts: tuple[tuple[str, str], ...]) -> None:
    """Take over what the workspace has of the model."""
    saved = tuple(masks.items())
    _change(saved=saved, kept_of=digest, kept_masks=saved, texts=texts, new_texts=())


def keep_text(a: str, b: str) -> None:
    """Note an own text that is finished, to be kept."""
    if a.strip() or b.strip():
        _change(new_texts=((a, b), *session().new_texts))


def saved_masks(present: HeadMask) -> dict[str, tuple[HeadMask, str]]:
    """Each saved mask by its name, with what stood in the place of its heads."""
    masks = {}
    for name, text in session().saved:
        digits, _, ablation = text.partition(" ")
        masks[name] = HeadMask.from_hex(digits, present.num_layers, present.num_heads), ablation or FIELDS["ablation"]
    return masks


def notify(message: UserError | str) -> None:
    notices, text = session().notices, on_page(message)
    if text not in notices:
        _change(notices=(*notices, text))


def take_notices() -> tuple[str, ...]:
    current = session()
    if current.notices:
        _change(notices=(), shown=(*current.shown, *current.notices))
    return current.notices


def repeat_notices() -> None:
    """Show the present notices once more, because a page that redraws itself would remove them unread."""
    for text in session().shown:
        notify(text)


def title_of_current(mask: HeadMask) -> str:
    """What lists of masks call the current one."""
    return f"current mask ({len(mask.off)} off)"


def mask(present: HeadMask) -> HeadMask:
    """The current mask on this model's grid. One that does not fit is removed from the view, with a notice.

    A link may list heads instead (``off=3.5,7.0``); the view then takes the mask of that list.
    """
    text = view().mask
    full = HeadMask.full(present.num_layers, present.num_heads)
    if not text:
        return full
    try:
        if "." not in text:
            return HeadMask.from_hex(text, present.num_layers, present.num_heads)
        listed = full.without(parse_heads(text))
    except MaskError as error:
        notify(f"{error} All heads are on now.")
        forget_mask()
        return full
    _set_history(History(present=_mask_text(listed)))
    return listed


def head(present: HeadMask) -> HeadId | None:
    """The selected head; None if there is none or the model does not have it."""
    text = view().head
    if not text:
        return None
    try:
        chosen = HeadId.parse(text)
        present.toggled([chosen])
    except MaskError as error:
        notify(error)
        update(head="")
        return None
    return chosen


def select(chosen: HeadId) -> None:
    """Choose this head, for all pages."""
    update(head=chosen.dotted)


# ---- widgets bound to a field of the view


def _bound(name: str, options: Sequence[Any] | None = None, label: str = "") -> dict[str, Any]:
    """The ``key`` and ``on_change`` of a field's widget.

    Its value is set to the view's before it is drawn, so that undo and links change it too.
    A value that is not an option becomes the first option; with a ``label``, a notice says so.
    """
    key, value = f"w_{name}", getattr(view(), name)
    if options is not None and value not in options:
        if label and value not in ("", FIELDS[name]):
            instead = f"'{options[0]}'" if options[0] else "the usual one"
            notify(f"{label} '{str(value)[:40]}' does not exist here; {instead} is shown.")
        value = options[0]
        update(**{name: value})
    st.session_state[key] = value

    def take() -> None:
        value = st.session_state[key]
        if value is not None:
            update(**{name: value})

    return {"key": key, "on_change": take}


def choose(name: str, label: str, options: Sequence[Any], **more: Any) -> Any:
    """A select box for one field. A value that is not an option becomes the first one, with a notice."""
    st.selectbox(label, options, **_bound(name, options, label), **more)
    return getattr(view(), name)


def switch(name: str, label: str, options: Sequence[Any], *, notice: bool = False, **more: Any) -> Any:
    """A row of buttons for one field; with ``notice``, a notice names a value that is not an option."""
    write = more.pop("format_func", str)
    more["format_func"] = lambda option: plain(write(option))  # options are drawn as Markdown
    bound = _bound(name, options, label if notice else "")
    st.segmented_control(label, options, required=True, **bound, **more)
    return getattr(view(), name)


def several(name: str, label: str, options: Mapping[str, str]) -> list[str]:
    """Pills for a field that lists any number of options, with commas. ``options``: their names on screen."""
    key = f"w_{name}"
    listed = [part for part in getattr(view(), name).split(",") if part]
    chosen = [part for part in listed if part in options]
    if lost := [part for part in listed if part not in options]:
        notify(f"{label}: '{', '.join(lost)[:40]}' does not exist here and is left out.")
        update(**{name: ",".join(chosen)})
    st.session_state[key] = chosen
    st.pills(
        label,
        list(options),
        selection_mode="multi",
        format_func=lambda part: plain(options[part]),
        key=key,
        on_change=lambda: update(**{name: ",".join(st.session_state[key])}),
    )
    return chosen


def tabs(labels: Sequence[str], key: str) -> Sequence[Any]:
    """Tabs; the open one is kept in the address. A closed tab (``.open``) need not be drawn."""
    open_label, seen = view().tab, f"{key}__seen"
    by_link = st.query_params.get("tab") == open_label  # else it is left over from the previous page
    if open_label and open_label not in labels and by_link:
        notify(f"This page has no tab '{open_label[:40]}'; its tabs are {', '.join(labels)}.")
    if open_label != st.session_state.get(seen, ""):
        st.session_state[key] = open_label if open_label in labels else labels[0]
    containers = st.tabs(labels, key=key, on_change="rerun")
    open_tab = st.session_state[key]
    new_label = "" if open_tab == labels[0] else open_tab
    if new_label != open_label:
        update(tab=new_label)
    st.session_state[seen] = new_label
    return containers


def tick(name: str, label: str, **more: Any) -> bool:
    st.toggle(label, **_bound(name), **more)
    return bool(getattr(view(), name))


def number(name: str, label: str, high: int | None = None, **more: Any) -> int:
    """A number field within the bounds that the view declares, or up to ``high``."""
    low, most = (int(bound) for bound in OPTIONS[name].bounds)
    high = most if high is None else high
    value = min(max(getattr(view(), name), low), high)
    if value != getattr(view(), name):
        update(**{name: value})
    st.number_input(label, low, high, **_bound(name), **more)
    return int(getattr(view(), name))


def margin() -> float:
    """The loss that counts as none, in points; the same for every page."""
    st.number_input(
        "Margin, points",
        0.0,
        100.0,
        step=0.5,
        format="%g",
        width=150,
        help="A loss up to this counts as none. 'Can go' is shown only where a greater loss is excluded.",
        **_bound("margin"),
    )
    return float(view().margin)


def text(name: str, label: str, **more: Any) -> str:
    st.text_input(label, **_bound(name), **more)
    return str(getattr(view(), name))
