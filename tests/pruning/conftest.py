"""Trainer collects garbage at every start: what is there already need not be walked each time."""

import gc

import pytest


@pytest.fixture(scope="session", autouse=True)
def frozen_heap() -> None:
    import transformers  # noqa: F401

    gc.collect()
    gc.freeze()
