"""A tokenizer keeps where it cuts texts inside it, so one thread at a time uses it."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Callable
from typing import Any

import pytest

from headviz.tasks import TASKS, Dataset, text_lengths
from headviz.tasks.tokenizer_lock import alone_with
from support.tiny import TEXTS, tiny_classifier
from support.tiny_translation import tiny_translator
from support.together import together


class Watched:
    """A tokenizer that takes its time and notes how many threads are in it at once."""

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer, self.inside, self.most = tokenizer, 0, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.tokenizer, name)

    def __call__(self, *texts: Any, **options: Any) -> Any:
        self.inside += 1
        self.most = max(self.most, self.inside)
        time.sleep(0.005)
        result = self.tokenizer(*texts, **options)
        self.inside -= 1
        return result


def _lengths(clf: Any) -> None:
    text_lengths(Dataset(TASKS["sst2"], "dev", tuple(TEXTS)), clf.tokenizer)


def _relations(clf: Any) -> None:
    from headviz.extras.analyses.roles import linked_tokens

    linked_tokens(clf, 6, (TEXTS[0],), lambda text: [])


USES: dict[str, tuple[Callable[[], Any], Callable[[Any], object]]] = {
    "texts": (tiny_classifier, lambda clf: clf.encode([*TEXTS, "dog " * 200])),
    "sentences": (tiny_translator, lambda clf: clf.encode([*TEXTS, "dog " * 200], [*TEXTS, "cat"])),
    "lengths": (tiny_classifier, _lengths),
    "relations": (tiny_classifier, _relations),
}


@pytest.mark.parametrize("what", USES)
def test_one_thread_at_a_time_uses_a_tokenizer(what: str) -> None:
    made, use = USES[what]
    clf = made()
    clf = dataclasses.replace(clf, tokenizer=Watched(clf.tokenizer))
    together(3, lambda _: use(clf))
    assert clf.tokenizer.most == 1


def test_many_texts_are_read_in_pieces_so_that_others_need_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headviz.tasks.tokenizer_lock.PIECE", 3)
    data = Dataset(TASKS["custom"], "dev", tuple(TEXTS), tuple(TEXTS[::-1]))
    for clf, given in ((tiny_classifier(), data.pairs), (tiny_translator(), data.pairs)):
        whole = [clf.encode([t], [p])[0] for t, p in zip(data.texts, given, strict=True)]
        watched = dataclasses.replace(clf, tokenizer=Watched(clf.tokenizer))
        assert watched.encode(data.texts, given) == whole
    clf = tiny_classifier()
    assert text_lengths(data, clf.tokenizer).tolist() == [len(e) for e in clf.encode(data.texts, data.pairs)]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_fork_does_not_inherit_a_closed_lock() -> None:
    clf = tiny_classifier()
    with alone_with(clf.tokenizer):
        child = os.fork()
        if not child:  # holds no lock that nobody would open
            os._exit(0 if alone_with(clf.tokenizer).acquire(timeout=5) else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
