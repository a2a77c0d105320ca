"""How far runs give way: the environment, then what was chosen, then the default."""

from __future__ import annotations

from pathlib import Path

import pytest

from headviz.errors import RunError
from headviz.runs.queue import NICENESS, NICENESS_VARIABLE, choose_niceness, niceness


def test_the_environment_stands_above_what_was_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADVIZ_HOME", str(tmp_path))
    monkeypatch.delenv(NICENESS_VARIABLE, raising=False)
    assert niceness() == NICENESS
    choose_niceness(0)
    assert niceness() == 0
    monkeypatch.setenv(NICENESS_VARIABLE, "19")
    assert niceness() == 19
    monkeypatch.setenv(NICENESS_VARIABLE, "no number")
    assert niceness() == NICENESS
    with pytest.raises(RunError, match="0 to 19"):
        choose_niceness(-5)
