"""A tokenizer keeps where it cuts texts inside it, so one thread at a time uses it."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from typing import Any

import pytest

from headviz.attribution.relations import linked_tokens
from headviz.tasks import TASKS, Dataset, text_lengths
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
        found = self.tokenizer(*texts, **options)
        self.inside -= 1
        return found


def _lengths(clf: Any) -> None:
    text_lengths(Dataset(TASKS["sst2"], "dev", tuple(TEXTS)), clf.tokenizer)


@pytest.mark.parametrize(
    ("made", "use"),
    [
        (tiny_classifier, lambda clf: clf.encode([*TEXTS, "dog " * 200])),
        (tiny_translator, lambda clf: clf.encode([*TEXTS, "dog " * 200], [*TEXTS, "cat"])),
        (tiny_classifier, _lengths),
        (tiny_classifier, lambda clf: linked_tokens(clf, 6, (TEXTS[0],), lambda text: [])),
    ],
    ids=["texts", "sentences", "lengths", "relations"],
)
def test_one_thread_at_a_time_uses_a_tokenizer(made: Callable[[], Any], use: Callable[[Any], object]) -> None:
    clf = made()
    clf = dataclasses.replace(clf, tokenizer=Watched(clf.tokenizer))
    together(3, lambda _: use(clf))
    assert clf.tokenizer.most == 1
