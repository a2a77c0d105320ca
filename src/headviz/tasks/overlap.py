"""Examples that stand in both the train and the dev split, as where one file is given for both."""

from __future__ import annotations

from .dataset import Dataset

SHARED = 0.05  # of the dev examples, from which it is said


def trained_on(train: Dataset, dev: Dataset) -> str:
    """What is said of them where a model is trained and measured; empty where they are few."""
    return _said(train, dev, "so its figures look better than they are")


def chosen_on(train: Dataset, dev: Dataset) -> str:
    """What is said of them where heads are chosen and judged; empty where they are few."""
    return _said(train, dev, "so heads are chosen on what they are judged on: losses look smaller than they are")


def _said(train: Dataset, dev: Dataset, follows: str) -> str:
    known = set(zip(train.texts, train.pairs or train.texts, strict=True))
    count = sum(one in known for one in zip(dev.texts, dev.pairs or dev.texts, strict=True))
    if count < SHARED * len(dev):
        return ""
    return f"{count:,} of {len(dev):,} dev examples are among the training examples, too, {follows}. Give two files."
