"""A widget is one script, and gets its data as they are."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from headviz.ui import widgets

HERE = Path(widgets.__file__).parent
NAMES = sorted(p.stem for p in HERE.glob("*.js") if "export default function" in p.read_text("utf-8"))
DECLARED = re.compile(r"^(?:async )?(?:const|let|class|function)\s+(\w+)", re.MULTILINE)


@pytest.fixture
def mounted(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What Streamlit is given."""
    seen: list[dict[str, Any]] = []

    def component(name: str, **more: Any) -> Any:
        seen.append({"name": name, **more})
        return lambda **call: seen.append(call)

    monkeypatch.setattr("streamlit.components.v2.component", component)
    return seen


@pytest.mark.parametrize("name", NAMES)
def test_no_name_is_declared_twice(name: str, mounted: list[dict[str, Any]]) -> None:
    """A script with a name twice is no script, and the widget stays empty."""
    widgets.component.__wrapped__(name)
    (about,) = mounted
    assert about["js"].count("export default") == about["js"].count("const drawWidget = ") == 1
    parts = ["shared", *["export"] * (name in widgets.PICTURES), *["grid"] * (name in widgets.WITH_GRID), name]
    names = [n for part in parts for n in DECLARED.findall((HERE / f"{part}.js").read_text("utf-8"))]
    assert len(names) > 3
    assert not {n for n in names if names.count(n) > 1} | {"drawWidget", "unpacked"} & set(names)


def test_bytes_go_as_they_are_and_all_else_as_one_value(mounted: list[dict[str, Any]]) -> None:
    widget = widgets.component.__wrapped__("maps")
    widget(data=b"maps", key="a")
    widget(data={"kind": "link"}, key="b")
    assert [call["data"] for call in mounted[1:]] == [b"maps", ({"kind": "link"},)]
