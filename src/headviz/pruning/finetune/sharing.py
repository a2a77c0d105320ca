"""The fine-tuned full model is the same for all algorithms and scores of one seed, so it is trained once per machine.

It is stored in the cache under a key of everything that its weights depend on, thread count and device included. A run
that finds it there gets the same bits as one that trains it. Each run still keeps its own copy among its models.
"""

from __future__ import annotations

import copy
import dataclasses
import json
import platform
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from ... import __version__, plugins
from ...attention import transformers
from ...evaluation.dispatch import gold_answers
from ...storage.store import make_key
from ..options import FinetuneOptions, read_options
from ..state import Point
from .training import Trained

if TYPE_CHECKING:
    from ...models.classifier import Classifier
    from ...storage.store import Store
    from ...tasks import Dataset

LARGEST = 0.25  # of the cache: larger models are not stored
WORDS = "training"
VERSION = 4  # raise it when the same training would give another model


def trained_once(
    store: Store | None,
    clf: Classifier,
    train: Dataset,
    options: FinetuneOptions,
    seed: int,
    *,
    dev: Dataset,
    label_order: Sequence[str] | None,
    training: Callable[[], Trained],
) -> Trained:
    """The result of ``training``, from the store if the same training has been done before."""
    if store is None:
        return training()
    order, _ = gold_answers(clf, train, label_order)  # the digest of a model does not hold the names of its classes
    key = make_key(
        "full-model",
        version=VERSION,
        weights=clf.digest,
        tokenizer=clf.tokenizer_digest,
        train=train.digest,
        dev=dev.digest,  # where early stopping looks
        options=options.to_dict(),
        seed=seed,
        order=None if order is None else order.tolist(),
        threads=torch.get_num_threads(),
        device=str(clf.device),
        machine=[platform.machine(), torch.backends.cpu.get_cpu_capability()],
        versions=[__version__, torch.__version__, transformers.__version__, np.__version__],
        **clf.reads_with,
        **plugins.key_part("task", dev.task.name),
    )
    begun = time.perf_counter()
    found = _read(store, key, clf)
    if found is not None:
        return dataclasses.replace(found, seconds=time.perf_counter() - begun)
    trained = training()
    _write(store, key, clf, trained)
    return trained


def _read(store: Store, key: str, clf: Classifier) -> Trained | None:
    entry = store.get(key)
    if entry is None:
        return None
    about = json.loads(entry.words[WORDS])
    model: Any = copy.deepcopy(clf.model)
    model.load_state_dict({name: torch.from_numpy(array) for name, array in entry.arrays.items()})
    for name, value in about.pop("settings").items():
        setattr(model.config, name, value)
    curve = tuple(read_options(Point, p, "field of a learning curve") for p in about.pop("curve"))
    # a copy of clf: the same kind of model, tokenizer and heads
    return Trained(dataclasses.replace(clf, model=model), curve, seconds=0.0, **about)


def _write(store: Store, key: str, clf: Classifier, trained: Trained) -> None:
    model: Any = trained.classifier.model
    weights = {name: t.detach().cpu().numpy() for name, t in model.state_dict().items()}
    if sum(w.nbytes for w in weights.values()) > LARGEST * store.limit:
        return
    before, after = clf.config.to_dict(), model.config.to_dict()
    about = {
        "settings": {k: v for k, v in after.items() if before.get(k) != v},  # of the config, changed by training
        "curve": [dataclasses.asdict(p) for p in trained.curve],
        "updates": trained.updates,
        "epochs": trained.epochs,
        "best_epoch": trained.best_epoch,
    }
    store.put(key, weights, {WORDS: json.dumps(about)})
