"""When files of the hub are fetched: where they are needed or, in a dashboard, after a press that names them.

A link that anybody made can open a page of the dashboard. So the dashboard's process reads what is in the hub's local
cache, and sends no request for anything else until a user has asked for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from ..errors import NotDownloaded

_named: frozenset[str] | None = None  # None: files are fetched where they are needed


def wait_for_press(named: Iterable[str] | None = ()) -> None:
    """From now on this process fetches only what ``NotDownloaded.fetch`` is called for, and what is ``named`` here.

    None: whatever is needed, as at first.
    """
    global _named
    _named = None if named is None else frozenset(named)


def obtain(
    name: str,
    cached: Callable[[], Path | None],
    fetch: Callable[[], Path],
    press: Callable[[], object],
    shown: str,
    more: str = "",
) -> Path:
    """Where the files of ``name`` are: fetched as the process may do it, else a ``NotDownloaded`` with ``press``.

    ``cached`` looks on this machine only. ``shown`` and ``more`` say what a press fetches.
    """
    if _named is None:
        return fetch()
    if (found := cached()) is not None:
        return found
    if name in _named:
        return fetch()
    from huggingface_hub.constants import ENDPOINT

    place = ENDPOINT.split("://")[-1]
    raise NotDownloaded(
        f"{shown} is not on this machine. It is downloaded from {place} when you ask for it{more}.", shown, press
    )
