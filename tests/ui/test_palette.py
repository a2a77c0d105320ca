"""The search behind Ctrl+K: every kind of target is listed, and each leads to its page with what was asked for."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from headviz.heads import HeadMask
from headviz.ui.parts import abilities, palette
from headviz.ui.shell import kept, state
from headviz.ui.shell.view import PAGES, View

SCRIPT = Path(palette.__file__).parents[1] / "widgets" / "palette.js"


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """A session without a browser."""
    held: dict[str, object] = {}
    monkeypatch.setattr("streamlit.session_state", held)
    return held


def test_every_kind_of_target_is_listed(seen: dict[str, object]) -> None:
    kinds = {kind for _, kind, _ in palette.listed(View())}
    assert {"page", "ability", "score", "task", "run"} <= kinds  # the recorded runs, where there are no others
    assert len({to for _, _, to in palette.listed(View())}) == len(palette.listed(View()))


def test_abilities_that_were_measured_of_another_model_are_listed(
    seen: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    own = View(model="mine", task="custom")
    assert not [name for name, kind, _ in palette.listed(own) if kind == "ability"]
    ability = abilities.Ability("late", [], 9.0, None, np.zeros((1, 1)))
    monkeypatch.setitem(abilities._measured, own.source, {"late": ability})
    assert ("late", "ability", "ability:late") in palette.listed(own)


@pytest.mark.parametrize(
    ("to", "page", "shows"),
    [
        ("page:compare", "compare", {}),
        ("ability:negation", "workbench", {"ability": "negation"}),
        ("score:taylor", "scores", {"score": "taylor"}),
        ("run:r1", "runs", {"run": "r1"}),
        ("task:mrpc", "data", {"task": "mrpc"}),
        ("head:show:4.10", "workbench", {"head": "4.10", "mask": ""}),
        ("head:off:8.6", "workbench", {"head": "8.6", "mask": HeadMask.full(12, 12).without([(8, 6)]).hex}),
    ],
)
def test_a_target_opens_its_page_with_what_was_asked_for(
    seen: dict[str, object], to: str, page: str, shows: dict[str, str]
) -> None:
    palette.go(to)
    assert kept.follow() == page
    assert kept.follow() == ""
    assert {name: getattr(state.view(), name) for name in shows} == shows


def test_a_head_that_the_model_has_not_is_refused(seen: dict[str, object]) -> None:
    palette.go("head:off:40.1")
    assert not state.view().mask
    assert any("40.1" in notice.replace("\\", "") for notice in state.session().notices)


@pytest.mark.skipif(shutil.which("node") is None, reason="the browser's part needs node")
def test_three_keys_lead_to_any_target(seen: dict[str, object]) -> None:
    """The first letters of a name put it among the few that are shown; a head's number puts that head first."""
    code = SCRIPT.read_text(encoding="utf-8").replace("export default", "const unused =")
    targets = [{"name": name, "kind": kind, "go": to} for name, kind, to in palette.listed(View())]
    asked = [page.title[:3] for page in PAGES.values()]
    asked += ["neg", "tay", "gates", "mrp", "gat dem", "role-s", "4.10", "off 8.6", "99.1"]
    script = f"{code}\nconst data = {json.dumps({'targets': targets, 'rows': 12, 'heads': 12})};"
    script += (
        f"console.log(JSON.stringify({json.dumps(asked)}.map((q) => matching(data, q).slice(0, 9).map((t) => t.go))));"
    )
    done = subprocess.run(["node", "-e", script], capture_output=True, text=True, check=True)
    found = dict(zip(asked, json.loads(done.stdout), strict=True))
    for name, page in PAGES.items():
        assert f"page:{name}" in found[page.title[:3]]
    assert found["neg"][0] == "ability:negation"
    assert found["tay"][0].startswith("score:taylor")
    assert found["gates"][0] == "score:gates"
    assert found["mrp"][0] == "task:mrpc"
    assert found["gat dem"][0].startswith("run:")
    assert found["role-s"] == ["ability:role-swap"]
    assert found["4.10"][0] == "head:show:4.10"
    assert found["off 8.6"] == ["head:off:8.6"]
    assert found["99.1"] == []
