"""How far runs give way: the environment, then what was chosen, then the default."""

from __future__ import annotations

from pathlib import Path

import pytest

from headviz.errors import RunError
from headviz.runs import niceness


def test_the_environment_stands_above_what_was_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADVIZ_HOME", str(tmp_path))
    monkeypatch.delenv(niceness.VARIABLE, raising=False)
    assert niceness.niceness() == niceness.NICENESS
    niceness.choose(0)
    assert niceness.niceness() == 0
    monkeypatch.setenv(niceness.VARIABLE, "19")
    assert niceness.niceness() == 19
    monkeypatch.setenv(niceness.VARIABLE, "no number")
    assert niceness.niceness() == niceness.NICENESS
    with pytest.raises(RunError, match="0 to 19"):
        niceness.choose(-5)
