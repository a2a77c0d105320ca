"""The full model of equal seeds is trained once, and a run cannot tell whether it was."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import Any

import pytest

from headviz.errors import OptionError
from headviz.pruning import step
from headviz.pruning.finetuning import fine_tune, trained_once
from headviz.pruning.job import run_plan
from headviz.pruning.options import FinetuneOptions
from headviz.storage.store import Store
from support.pruning_plans import context, make_data, plan, without_times
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
def test_a_shared_full_model_is_the_one_that_would_be_trained(tmp_path, store, trainings):
    """Another algorithm of equal seed finds it, with every bit of its weights, logits and curve; another seed not."""
    finetune = FinetuneOptions(epochs=2, batch=8, early_stopping=1)
    p = plan("one-shot-isp", until=0.25, finetune=finetune)
    first = done(tmp_path, "first", store, p)
    assert trainings == [True, False]
    q = plan("isp", until=0.25, finetune=finetune, seeds=(0, 1))
    shared = done(tmp_path, "shared", store, q)
    assert trainings[2:].count(True) == 1
    alone = done(tmp_path, "alone", None, q)
    assert without_times(shared) == without_times(alone)
    assert shared.record(0, 0).model_digest == first.record(0, 0).model_digest
    assert shared.record(0, 0).curve == first.record(0, 0).curve != ()
    for name, logits in alone.logits.items():
        assert logits.tobytes() == shared.logits[name].tobytes()
    # its own copy, whatever happens to the cache
    store.clear()
    assert (tmp_path / "shared" / "run" / "models" / "seed0-step0" / "config.json").is_file()


DATA, OPTIONS = make_data(24), FinetuneOptions(epochs=0.4, batch=8)


@pytest.fixture(scope="module")
def trained() -> Any:
    return fine_tune(tiny_classifier(layers=1), DATA, OPTIONS)


def asked(store: Store, trained: Any, **change: Any) -> bool:
    """Whether a training is done anew."""
    given = {"clf": tiny_classifier(layers=1), "train": DATA, "options": OPTIONS, "seed": 0, "dev": DATA, **change}
    new: list[Any] = []
    trained_once(store, **{"label_order": None, **given}, training=lambda: new.append(1) or trained)
    return bool(new)


def test_what_changes_the_weights_is_trained_anew(store, trained):
    assert asked(store, trained)
    assert not asked(store, trained)
    for change in (
        {"clf": tiny_classifier(layers=1, seed=9)},
        {"clf": dataclasses.replace(tiny_classifier(layers=1), cut_at=4)},
        {"train": make_data(24, seed=5)},
        {"dev": make_data(24, seed=5)},
        {"options": dataclasses.replace(OPTIONS, learning_rate=2e-3)},
        {"seed": 1},
        {"label_order": DATA.label_names[::-1]},
    ):
        assert asked(store, trained, **change), change
        assert not asked(store, trained, **change)


def test_other_threads_train_anew(store, trained, monkeypatch):
    import torch

    assert asked(store, trained)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 7)
    assert asked(store, trained)


def test_a_model_too_large_for_the_cache_is_not_kept(tmp_path, trained):
    small = Store(tmp_path / "small", limit=2**20)
    size = sum(t.numel() for t in trained.classifier.model.state_dict().values()) * 4
    for limit, kept in ((3 * size, {}), (5 * size, {"full-model": 1})):
        small.limit = limit
        assert asked(small, trained)
        assert small.usage().kinds == kept


def test_a_damaged_entry_is_trained_anew(tmp_path, store, trained):
    assert asked(store, trained)
    store.close()
    (value,) = (tmp_path / "store").glob("??/??/*.val")
    raw = bytearray(value.read_bytes())
    raw[len(raw) // 2] ^= 1
    value.write_bytes(raw)
    assert asked(store, trained)


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
def test_a_model_that_reads_other_tokens_is_trained_anew(tmp_path, store):
    quick = FinetuneOptions(epochs=1, batch=8, learning_rate=3e-2)
    data, one = pairs(24, "train"), tiny_translator("t5")
    other = one.reading(prefix=f"{data.texts[0]} ")

    def full(clf: Any) -> str:
        training = partial(fine_tune, clf, data, quick)
        return trained_once(store, clf, data, quick, 0, dev=data, label_order=None, training=training).classifier.digest

    expected = [fine_tune(clf, data, quick).classifier.digest for clf in (one, other)]
    assert expected[0] != expected[1]
    assert [full(one), full(other), full(one)] == [*expected, expected[0]]
    fine_tune(one, data, quick, folder=tmp_path / "kept")
    with pytest.raises(OptionError, match=r"different prefix"):
        fine_tune(other, data, quick, folder=tmp_path / "kept")
