"""Room is made before it is needed: what was used least recently goes, and what never fits is refused."""

from __future__ import annotations

import platform

import pytest

from headviz.errors import OptionError
from headviz.ui.shell import loaders
from headviz.ui.shell.job import Memo, give_back


@pytest.fixture
def process(monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """A process of 3 GiB with two things of 1 GiB that can go."""
    held: dict[str, object] = {"away": ["1 evaluation", "2 models"], "taken": 3 * loaders.GIB, "said": []}

    def free_memory() -> str:
        if not held["away"]:
            return ""
        held["taken"] -= loaders.GIB
        return held["away"].pop(0)

    monkeypatch.setattr(loaders, "free_memory", free_memory)
    monkeypatch.setattr(loaders, "memory_taken", lambda: held["taken"])
    monkeypatch.setattr(loaders.state, "notify", held["said"].append)
    monkeypatch.setenv(loaders.LIMIT, "4")
    return held


def test_only_as_much_goes_as_is_needed_and_the_page_says_so(process: dict[str, object]) -> None:
    loaders.make_room(loaders.GIB, "a text of 300 tokens")
    assert process["said"] == []
    loaders.make_room(3 * loaders.GIB // 2, "a text of 512 tokens")
    assert process["said"] == ["To make room for a text of 512 tokens, 1 evaluation used before went from memory."]
    assert process["away"] == ["2 models"]


def test_what_never_fits_is_refused_before_it_starts(process: dict[str, object]) -> None:
    with pytest.raises(OptionError, match=r"A text of 512 tokens needs about 3.5 GiB, and 1.0 of 4.0 GiB are taken"):
        loaders.make_room(7 * loaders.GIB // 2, "a text of 512 tokens")


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc can give freed pieces back")
def test_freed_memory_goes_back_to_the_machine() -> None:
    pieces = [bytearray(2**20 // 10) for _ in range(3000)]  # too small to be given back one by one
    held = loaders.memory_taken()
    last = pieces[-1]  # keeps the heap from shrinking by itself
    del pieces
    give_back()
    assert loaders.memory_taken() < held - 200 * 2**20
    assert len(last) == 2**20 // 10


def test_a_memo_lets_the_least_recently_used_go() -> None:
    kept: Memo[str] = Memo(4)
    for name in "abc":
        kept.get(name, lambda name=name: name)
    kept.get("a", lambda: "new")
    assert kept.drop(1) == 2
    assert "a" in kept
    assert "b" not in kept
    assert kept.drop(1) == 0
