"""The full model of equal seeds is trained once, and a run cannot tell whether it was."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import Any

import numpy as np
import pytest

from headviz.errors import OptionError
from headviz.pruning import step
from headviz.pruning.finetuning import fine_tune, trained_once
from headviz.pruning.job import run_plan
from headviz.pruning.options import FinetuneOptions
from headviz.storage.store import Store
from support.marks import all_in_ci
from support.pruning_plans import QUICK, context, make_data, plan, without_times
from support.tiny import tiny_classifier
from support.tiny_translation import tiny_translator
from support.translation_plans import pairs


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "store")


@pytest.fixture
def trainings(monkeypatch) -> list[bool]:
    """Whether each training was one of the full model."""
    seen: list[bool] = []
    real = step.fine_tune

    def counted(clf: Any, *args: Any, **options: Any) -> Any:
        seen.append(clf.present.is_full)
        return real(clf, *args, **options)

    monkeypatch.setattr(step, "fine_tune", counted)
    return seen


def done(tmp_path, name, store, p, **options):
    *_, last = run_plan(p, context(tmp_path / name, layers=2, store=store, **options))
    return last


@pytest.mark.slow
@pytest.mark.parametrize("finetune", all_in_ci([QUICK, FinetuneOptions(epochs=2, batch=8, early_stopping=1)], [QUICK]))
def test_a_shared_full_model_is_the_one_that_would_be_trained(tmp_path, store, trainings, finetune):
    """Another algorithm of equal seed finds it, with every bit of its weights, logits and curve."""
    p = plan("one-shot-isp", until=0.25, finetune=finetune)
    first = done(tmp_path, "first", store, p)
    assert trainings == [True, False]
    q = plan("isp", until=0.25, finetune=finetune)
    shared = done(tmp_path, "shared", store, q)
    assert trainings == [True, False, False]
    alone = done(tmp_path, "alone", None, q)
    assert without_times(shared) == without_times(alone)
    assert shared.record(0, 0).model_digest == first.record(0, 0).model_digest
    assert shared.record(0, 0).curve == first.record(0, 0).curve != ()
    for name, logits in alone.logits.items():
        assert logits.tobytes() == shared.logits[name].tobytes()
    # its own copy, whatever happens to the cache
    store.clear()
    assert (tmp_path / "shared" / "run" / "models" / "seed0-step0" / "config.json").is_file()


@pytest.mark.slow
@pytest.mark.parametrize("change", all_in_ci(["seed", "options", "data", "base"], ["options"]))
def test_what_changes_the_weights_is_trained_anew(tmp_path, store, trainings, change):
    done(tmp_path, "first", store, plan("one-shot-isp", until=0.25))
    options: dict[str, Any] = {}
    settings: dict[str, Any] = {}
    if change == "seed":
        options["seeds"] = (1,)
    elif change == "options":
        options["finetune"] = FinetuneOptions(epochs=1, batch=8, learning_rate=2e-3)
    elif change == "data":
        settings["train"] = make_data(48, seed=5)
    else:
        settings["load_base"] = lambda seed: tiny_classifier(layers=2, heads=4, seed=9)
    done(tmp_path, "second", store, plan("one-shot-isp", until=0.25, **options), **settings)
    assert trainings == [True, False, True, False]


def test_a_full_model_with_its_classes_in_another_order_is_trained_anew(tmp_path, store):
    data = make_data(24)
    one, turned = (tiny_classifier(layers=1, labels=labels) for labels in (data.label_names, data.label_names[::-1]))
    assert one.digest == turned.digest
    quick = FinetuneOptions(epochs=1, batch=8, learning_rate=3e-2)

    def full(clf: Any, label_order: Any = None) -> tuple[str, bool]:
        """The digest of the trained model, and whether it was trained now."""
        new = []

        def training() -> Any:
            new.append(fine_tune(clf, data, quick, label_order=label_order))
            return new[0]

        got = trained_once(store, clf, data, quick, 0, dev=data, label_order=label_order, training=training)
        return got.classifier.digest, bool(new)

    first, second = full(one), full(turned)
    assert (first[1], second[1]) == (True, True)
    assert first[0] != second[0] == fine_tune(turned, data, quick).classifier.digest
    # said by hand it is the same training
    assert full(turned, data.label_names) == (first[0], False)


@pytest.mark.slow
def test_other_threads_train_anew(tmp_path, store, trainings):
    import torch

    done(tmp_path, "first", store, plan("one-shot-isp", until=0.25))
    before = torch.get_num_threads()
    torch.set_num_threads(before + 1)
    try:
        done(tmp_path, "second", store, plan("one-shot-isp", until=0.25))
    finally:
        torch.set_num_threads(before)
    assert trainings == [True, False, True, False]


@pytest.mark.slow
def test_a_model_too_large_for_the_cache_is_not_kept(tmp_path, trainings):
    small = Store(tmp_path / "small", limit=2**20)
    p = plan("one-shot-isp", until=0.25)
    c = context(tmp_path / "first", layers=2, store=small)
    size = sum(t.numel() for t in c.clf.model.state_dict().values()) * 4
    small.limit = 3 * size
    list(run_plan(p, c))
    assert small.usage().entries == 0
    small.limit = 5 * size
    done(tmp_path, "second", small, p)
    assert small.usage().kinds == {"full-model": 1}


@pytest.mark.slow
def test_a_damaged_entry_is_trained_anew(tmp_path, store, trainings):
    p = plan("one-shot-isp", until=0.25)
    first = done(tmp_path, "first", store, p)
    store.close()
    values = list((tmp_path / "store").glob("??/??/*.val"))
    assert len(values) == 1
    raw = bytearray(values[0].read_bytes())
    raw[len(raw) // 2] ^= 1
    values[0].write_bytes(raw)
    second = done(tmp_path, "second", store, p)
    assert trainings == [True, False, True, False]
    assert np.array_equal(first.logits[first.record(0, 0).logits], second.logits[second.record(0, 0).logits])


@pytest.mark.slow
@pytest.mark.parametrize("setting", ["prefix", "cut_at"])
def test_a_model_that_reads_other_tokens_is_trained_anew(tmp_path, store, setting):
    quick = FinetuneOptions(epochs=1, batch=8, learning_rate=3e-2)
    if setting == "prefix":
        data, one = pairs(24, "train"), tiny_translator("t5")
        other = one.reading(prefix=f"{data.texts[0]} ")
    else:
        data, one = make_data(24), tiny_classifier(layers=1)
        other = dataclasses.replace(one, cut_at=4)

    def full(clf: Any) -> str:
        training = partial(fine_tune, clf, data, quick)
        return trained_once(store, clf, data, quick, 0, dev=data, label_order=None, training=training).classifier.digest

    expected = [fine_tune(clf, data, quick).classifier.digest for clf in (one, other)]
    assert expected[0] != expected[1]
    assert [full(one), full(other), full(one)] == [*expected, expected[0]]
    fine_tune(one, data, quick, folder=tmp_path / "kept")
    with pytest.raises(OptionError, match=f"another training .different {setting}."):
        fine_tune(other, data, quick, folder=tmp_path / "kept")
