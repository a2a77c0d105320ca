"""The session of one browser tab: its view, its masks, its notices; and the address bar that mirrors the view."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
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
        _put(Session(view=from_address({})[0]))
    session: Session = st.session_state[_KEY]
    return session


def _put(changed: Session) -> None:
    st.session_state[_KEY] = changed


def view() -> View:
    return session().view


def open_address(page: str) -> None:
    """Take the view from the address bar if the address came from outside: a pasted link, or the back button.

    Streamlit empties the address when the page changes; then the session's view is kept. So an address that comes with
    another page is never an echo.
    """
    now = session()
    moved = page != now.page
    _put(replace(now, page=page, shown=()))
    read = tuple(sorted(st.query_params.to_dict().items()))
    if read and (moved or not now.echoes(read)):
        _take(read)


def went_back(query: str) -> None:
    """Take the view from this address, to which the user went back or forward."""
    _take(tuple(sorted(parse_qsl(query.removeprefix("?"), keep_blank_values=True))))


def _take(read: Address) -> None:
    now = session()
    values = dict(read)
    too_long = [name for name in values.pop(LONG, "").split(",") if name]  # for an address; they stay in the session
    kept = {n: t for n in ("a", "b") if n in too_long and len(t := getattr(now.view, n)) > LONGEST_TEXT}
    if lost := [n for n in too_long if n not in kept]:
        values[LONG] = ",".join(lost)
    new_view, complaints = from_address(values)
    new_view = replace(new_view, **kept)
    history = now.history.push(new_view.mask) if now.written else History(present=new_view.mask)
    _put(replace(now, view=new_view, history=history, notices=tuple(complaints), written=((time.monotonic(), read),)))


def publish() -> None:
    """Write the view to the address bar, if it changed."""
    now = session()
    wanted = to_address(now.view)
    if now.page == PAGES[FIRST].title:
        wanted = {name: text for name, text in wanted.items() if name not in OF_SCORES}
    address = tuple(sorted(wanted.items()))
    if st.query_params.to_dict() != wanted:
        st.query_params.from_dict(wanted)
    if not now.written or now.written[-1][1] != address:
        _put(replace(now, written=(*now.written[-15:], (time.monotonic(), address))))
    published()["view"] = now.view


def published() -> dict[str, View]:
    """Holds the ``view`` of the address bar, for what runs later and outside of the session."""
    kept: dict[str, View] = st.session_state.setdefault("published", {})
    return kept


def update(**changes: Any) -> None:
    """Change the view. A new mask enters the history; a chosen example replaces an empty text.

    Another model has its own names for its classes.
    """
    now = session()
    if changes.get("model", now.view.model) != now.view.model:
        changes.setdefault("classes", "")
    if "example" in changes:
        changes.setdefault("blank", False)
    history = now.history.push(changes["mask"]) if "mask" in changes else now.history
    _put(replace(now, view=replace(now.view, **changes), history=history))


def open_view(shown: View) -> None:
    """Show another view, as a link to it would; its mask enters the history."""
    now = session()
    history = now.history.push(shown.mask)
    _put(replace(now, view=shown, history=history))


def set_mask(mask: HeadMask, *, base: HeadMask | None = None) -> None:
    """Set the mask; ``base`` as in ``History.push``."""
    now = session()
    history = now.history.push(_text(mask), base=None if base is None else _text(base))
    _put(replace(now, view=replace(now.view, mask=history.present), history=history))


def _text(mask: HeadMask) -> str:
    return "" if mask.is_full else mask.hex


def undo() -> None:
    now = session()
    history = now.history.undo()
    _put(replace(now, history=history, view=replace(now.view, mask=history.present)))


def redo() -> None:
    now = session()
    history = now.history.redo()
    _put(replace(now, history=history, view=replace(now.view, mask=history.present)))


def forget_mask() -> None:
    """All heads on, without history, because another model's masks do not fit."""
    now = session()
    _put(replace(now, history=History(), view=replace(now.view, mask="", head=""), saved=(), kept_of="", texts=()))


def save_mask(saved: dict[str, str]) -> None:
    _put(replace(session(), saved=tuple(saved.items())))


def take_kept(digest: str, masks: Mapping[str, str], texts: tuple[tuple[str, str], ...]) -> None:
    """What the workspace now has of the model."""
    saved = tuple(masks.items())
    _put(replace(session(), saved=saved, kept_of=digest, kept_masks=saved, texts=texts, new_texts=()))


def keep_text(a: str, b: str) -> None:
    """An own text that is finished, to be kept."""
    now = session()
    if a.strip() or b.strip():
        _put(replace(now, new_texts=((a, b), *now.new_texts)))


def saved_masks(present: HeadMask) -> dict[str, tuple[HeadMask, str]]:
    """Each saved mask by its name, with what stood in the place of its heads."""
    masks = {}
    for name, text in session().saved:
        digits, _, ablation = text.partition(" ")
        masks[name] = HeadMask.from_hex(digits, present.num_layers, present.num_heads), ablation or FIELDS["ablation"]
    return masks


def notify(message: UserError | str) -> None:
    now, text = session(), on_page(message)
    if text not in now.notices:
        _put(replace(now, notices=(*now.notices, text)))


def take_notices() -> tuple[str, ...]:
    now = session()
    if now.notices:
        _put(replace(now, notices=(), shown=(*now.shown, *now.notices)))
    return now.notices


def repeat_notices() -> None:
    """Show the present notices once more, because a page that redraws itself would remove them unread."""
    for text in session().shown:
        notify(text)


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
        now = session()
        _put(replace(now, view=replace(now.view, mask=_text(listed)), history=History(present=_text(listed))))
        return listed
    except MaskError as wrong:
        notify(f"{wrong} All heads are on now.")
        forget_mask()
        return full


def head(present: HeadMask) -> HeadId | None:
    """The selected head; None if there is none or the model does not have it."""
    text = view().head
    if not text:
        return None
    try:
        chosen = HeadId.parse(text)
        present.toggled([chosen])
    except MaskError as wrong:
        notify(wrong)
        update(head="")
        return None
    return chosen


def select(chosen: HeadId) -> None:
    """Choose this head, for all pages."""
    update(head=chosen.dotted)


# ---- widgets bound to a field of the view


def _bind(name: str) -> tuple[str, Callable[[], None]]:
    key = f"w_{name}"

    def take() -> None:
        value = st.session_state[key]
        if value is not None:
            update(**{name: value})

    return key, take


def _seed(name: str, options: Sequence[Any] | None = None, label: str = "") -> str:
    """Set the widget to the view's value before it is drawn, so that undo and links change it too.

    A value that is not an option becomes the first option; with a ``label``, a notice says so.
    """
    key, _ = _bind(name)
    value = getattr(view(), name)
    if options is not None and value not in options:
        if label and value not in ("", FIELDS[name]):
            instead = f"'{options[0]}'" if options[0] else "the usual one"
            notify(f"{label} '{str(value)[:40]}' does not exist here; {instead} is shown.")
        value = options[0]
        update(**{name: value})
    st.session_state[key] = value
    return key


def choose(name: str, label: str, options: Sequence[Any], **more: Any) -> Any:
    """A select box for one field. A value that is not an option becomes the first one, with a notice."""
    key = _seed(name, options, label)
    st.selectbox(label, options, key=key, on_change=_bind(name)[1], **more)
    return getattr(view(), name)


def switch(name: str, label: str, options: Sequence[Any], *, notice: bool = False, **more: Any) -> Any:
    """A row of buttons for one field; with ``notice``, a notice names a value that is not an option."""
    key = _seed(name, options, label if notice else "")
    write = more.pop("format_func", str)
    more["format_func"] = lambda option: plain(write(option))  # options are drawn as Markdown
    st.segmented_control(label, options, key=key, on_change=_bind(name)[1], required=True, **more)
    return getattr(view(), name)


def several(name: str, label: str, options: Mapping[str, str]) -> list[str]:
    """Pills for a field that lists any number of options, with commas. ``options``: their names on screen."""
    key, _ = _bind(name)
    asked = getattr(view(), name).split(",")
    known = [part for part in asked if part in options]
    if lost := [part for part in asked if part and part not in options]:
        notify(f"{label}: '{', '.join(lost)[:40]}' does not exist here and is left out.")
        update(**{name: ",".join(known)})
    st.session_state[key] = known
    more: dict[str, Any] = {"on_change": lambda: update(**{name: ",".join(st.session_state[key])}), "key": key}
    st.pills(label, list(options), selection_mode="multi", format_func=lambda part: plain(options[part]), **more)
    return known


def tabs(labels: Sequence[str], key: str) -> Sequence[Any]:
    """Tabs; the open one is kept in the address. A closed tab (``.open``) need not be drawn."""
    asked, seen = view().tab, f"{key}__seen"
    by_link = st.query_params.get("tab") == asked  # else it is left over from the previous page
    if asked and asked not in labels and by_link:
        notify(f"This page has no tab '{asked[:40]}'; its tabs are {', '.join(labels)}.")
    if asked != st.session_state.get(seen, ""):
        st.session_state[key] = asked if asked in labels else labels[0]
    made = st.tabs(labels, key=key, on_change="rerun")
    shown = st.session_state[key]
    now = "" if shown == labels[0] else shown
    if now != asked:
        update(tab=now)
    st.session_state[seen] = now
    return made


def tick(name: str, label: str, **more: Any) -> bool:
    key = _seed(name)
    st.toggle(label, key=key, on_change=_bind(name)[1], **more)
    return bool(getattr(view(), name))


def number(name: str, label: str, high: int | None = None, **more: Any) -> int:
    """A number field within the bounds that the view declares, or up to ``high``."""
    low, most = (int(bound) for bound in OPTIONS[name].bounds)
    high = most if high is None else high
    value = min(max(getattr(view(), name), low), high)
    if value != getattr(view(), name):
        update(**{name: value})
    key = _seed(name)
    st.number_input(label, low, high, key=key, on_change=_bind(name)[1], **more)
    return int(getattr(view(), name))


def margin() -> float:
    """The loss that counts as none, in points; the same for every page."""
    key = _seed("margin")
    st.number_input(
        "Margin, points",
        0.0,
        100.0,
        key=key,
        step=0.5,
        format="%g",
        on_change=_bind("margin")[1],
        width=150,
        help="A loss up to this counts as none. 'Can go' is shown only where a greater loss is excluded.",
    )
    return float(view().margin)


def text(name: str, label: str, **more: Any) -> str:
    key = _seed(name)
    st.text_input(label, key=key, on_change=_bind(name)[1], **more)
    return str(getattr(view(), name))
