"""Which text a page is about: an example, one's own, or an emptied one."""

from __future__ import annotations

from dataclasses import replace

import pytest

pytest.importorskip("streamlit")

from headviz.ui.parts import texts
from headviz.ui.shell.view import View, from_address, to_address


def test_an_emptied_text_stays_empty_and_its_link_says_so() -> None:
    import headviz

    data = headviz.load_task("demo", limit=6)
    view = replace(View(), example=3, blank=True)
    assert from_address(to_address(view)) == (view, [])
    shown = texts.current(view, data)
    assert (shown.text, shown.pair, shown.empty) == ("", "", True)
    again = texts.current(replace(view, blank=False), data)
    assert again.text == data[3].text
    assert not again.empty
    assert not texts.current(replace(view, b="a cat runs"), data).empty
