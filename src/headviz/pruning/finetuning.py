"""Fine-tuning through transformers' Trainer: a classifier or translator, with all heads or pruned.

The caller's model is copied, never changed. A training with a folder writes checkpoints there and continues from the
last complete one; the result equals that of an uninterrupted training bit for bit. Trainer's checkpoints hold pickles:
they are read as tensors only (``weights_only``), and its pickled arguments are never read.
"""

from __future__ import annotations

import copy
import json
import platform
import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from .. import __version__, plugins
from ..answers.class_names import parse_order
from ..attention import quiet, transformers
from ..errors import Cancelled, OptionError, TaskError, seed_number, whole_number
from ..evaluation.dispatch import check_gold, gold_answers
from ..evaluation.plain import gold_for, metrics_for
from ..models.as_described import without_wrappers
from ..models.classifier import NUM_TEXTS
from ..models.hub import locate
from ..models.loading import wrap
from ..options import read_options
from ..progress import stop_if
from ..storage.exchange import MaskLike
from ..storage.store import make_key
from ..tasks.sampling import limited
from .options import IN_BATCH, FinetuneOptions
from .state import Point
from .trainer import Diverged, Rows, Teacher, Watch, divergence, learning_curve, trainer_for, updates_of
from .training_folder import claim, training_folder, whole_checkpoint

if TYPE_CHECKING:
    from ..models.classifier import Classifier
    from ..progress import Cancel, Progress
    from ..storage.store import Store
    from ..tasks import Dataset


@dataclass(frozen=True, eq=False)
class Trained:
    """A trained classifier and its training."""

    classifier: Classifier
    curve: tuple[Point, ...]
    updates: int
    epochs: float  # fewer than asked for when stopped early
    best_epoch: float | None  # the epoch whose weights these are, where early stopping chose
    seconds: float


def fine_tune(
    clf: Classifier,
    train: Dataset,
    options: FinetuneOptions,
    seed: int = 0,
    *,
    mask: MaskLike | None = None,
    dev: Dataset | None = None,
    label_order: Sequence[str] | str | None = None,
    teacher: Teacher | None = None,
    folder: str | Path | None = None,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
    curve: Callable[[tuple[Point, ...]], None] | None = None,
) -> Trained:
    """Train a copy of ``clf`` on ``train``. Equal inputs, seeds and thread counts give equal weights.

    First put a fresh head on a pre-trained encoder, with ``headviz.load(base, fresh_labels=…, seed=…)``. A translator
    learns the tokens of its references one after the other. ``dev`` is used for early stopping and for dev metrics
    per epoch only. With a ``teacher`` it learns that model's answers, too. ``progress`` counts updates; ``curve`` gets
    the learning curve so far, about once a second.

    ``mask`` switches heads off all through the training; they stay in the model, untrained, so evaluate it under the
    same mask. That is for comparisons: a pruned model has the same gradients, is faster and needs no mask afterwards.
    """
    start = time.perf_counter()
    seed_number(seed)
    require_trainable(clf, train, dev, options)
    dev = None if dev is None else clf.answer.judged(dev)
    mask = None if mask is None else clf.read(mask)
    order, gold = gold_answers(clf, train, label_order)
    rows = Rows(clf, train, gold)
    measured = None
    if dev is not None and order is not None and _measures(options):
        measured = Rows(clf, dev, gold_for(dev, order))
    with training_folder(folder) as place, _own_random_numbers(), quiet():
        claim(place, clf, train, options, seed, order, mask, None if teacher is None else teacher.to_dict())
        model: Any = copy.deepcopy(clf.model)
        model.requires_grad_(True)
        if order is not None:
            setattr(model.config, NUM_TEXTS, 1 if train.pairs is None else 2)
        metrics = None if dev is None or order is None else lambda logits: metrics_for(dev, logits, order)
        saves = folder is not None or options.early_stopping is not None
        report = None if curve is None else lambda history: curve(learning_curve(history, dev))
        watch = Watch(rows.order(options, seed), progress, cancel, saves, options.checkpoint_steps, report)
        checkpoint = whole_checkpoint(place)
        trainer = trainer_for(
            clf, model, rows, measured, metrics, options, seed, place, watch, checkpoint, mask, teacher
        )
        trainer.train(resume_from_checkpoint=checkpoint)
        without_wrappers(model)  # the weights are float32, and so is everything that is computed with them
        _without_cache_setting(model.config, clf.config)
        history, best = trainer.state.log_history, trainer.state.best_model_checkpoint
        updates, epochs = int(trainer.state.global_step), float(trainer.state.epoch or 0.0)
        per_epoch = updates / epochs if epochs else 0.0
    if not all(bool(torch.isfinite(p).all()) for p in model.parameters()):
        raise Diverged(divergence(updates, updates, options), learning_curve(history, dev))
    best_epoch = None if best is None else int(best.rsplit("-", 1)[1]) / per_epoch
    return Trained(
        replace(clf, model=model),
        learning_curve(history, dev),
        updates,
        epochs,
        best_epoch,
        time.perf_counter() - start,
    )


def head_labels(train: Dataset, label_order: Sequence[str] | str | None = None) -> tuple[str, ...]:
    """The names of a new head's outputs: the task's classes, in the user's order if there is one."""
    if not (names := tuple(train.label_names)):
        return train.answer.fresh
    ordered = names if label_order is None else tuple(parse_order(label_order))
    return ordered if len(ordered) == len(names) else names  # class_order refuses a wrong order before training


def require_trainable(clf: Classifier, train: Dataset, dev: Dataset | None, options: FinetuneOptions) -> None:
    """A ``UserError`` if this training cannot begin."""
    check_gold(clf, train, "training needs them")
    if _measures(options):
        clf.check_classes(
            OptionError(
                "Dev metrics per epoch and early stopping are for classifiers: translating dev after each epoch takes "
                "longer than the epoch. Leave them out and measure the trained model."
            )
        )
    if len(train) < 1:
        raise TaskError("There is nothing to train on: the data set has no examples.")
    if options.early_stopping is not None and dev is None:
        raise OptionError("Early stopping needs a dev set to watch.")
    if options.precision == "float16" and clf.device.type != "cuda":
        raise OptionError(
            f"float16 training needs a CUDA device, and this is {clf.device}. Choose bfloat16 or float32."
        )
    if options.negatives == IN_BATCH and (not clf.answer.negatives or options.batch < 2):
        raise OptionError(
            "Negatives from the batch are for embedders (the job vector) and batches of at least 2 pairs. Leave "
            "negatives as they are given."
        )
    if clf.dtype != torch.float32:
        raise OptionError(f"Weights are trained in float32, not {clf.dtype}. Load the model without a dtype.")


def _measures(options: FinetuneOptions) -> bool:
    return options.evaluate_epochs or options.early_stopping is not None


def _without_cache_setting(config: Any, before: Any) -> None:
    """Remove ``use_cache``, which Trainer adds to any config, where the family has no such setting.

    Loading drops it there, so the saved model would have another digest than the trained one.
    """
    if hasattr(config, "use_cache") and not hasattr(before, "use_cache"):
        del config.use_cache


@contextmanager
def _own_random_numbers() -> Iterator[None]:
    """Restore the caller's random number generators afterwards, because Trainer seeds all global ones."""
    python, numpy = random.getstate(), np.random.get_state()
    with torch.random.fork_rng():
        try:
            yield
        finally:
            random.setstate(python)
            np.random.set_state(numpy)


RECIPE = "recipe.json"  # {"finetune": {options of FinetuneOptions}, "examples": how many to train on}


def recipe_of(model: str | Path) -> FinetuneOptions | None:
    """The options in ``recipe.json`` of a model's folder; None = there is none, and the thesis's defaults apply."""
    recipe = _recipe(model)
    return None if recipe is None else FinetuneOptions.from_dict(recipe["finetune"])


def examples_of(model: str | Path) -> int | None:
    """How many examples the recipe trains on; None = all of the training split."""
    recipe = _recipe(model)
    if recipe is None or recipe.get("examples") is None:
        return None
    whole_number(recipe["examples"], f"'examples' in {RECIPE} of '{model}'", 1)
    return int(recipe["examples"])


def _recipe(model: str | Path) -> dict[str, Any] | None:
    file = locate(model) / RECIPE
    if not file.exists():
        return None
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise OptionError(f"{RECIPE} of '{model}' is not JSON: {error}. Remove or correct it.") from error
    if not isinstance(content, dict):
        raise OptionError(f"{RECIPE} of '{model}' holds no recipe. Remove or correct it.")
    # without these options it is a recipe for something else, such as a training from scratch
    return content if "finetune" in content else None


def randomised(clf: Classifier, seed: int) -> Classifier:
    """The same architecture with random weights, drawn by the family's own initialisation with a seed."""
    model: Any = clf.model
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        fresh = type(model)(model.config)
    return wrap(fresh.to(device=clf.device, dtype=clf.dtype), clf.tokenizer, f"{clf.name} (random weights)")


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
    stored = _stored(store, key, clf)
    if stored is not None:
        return replace(stored, seconds=time.perf_counter() - begun)
    trained = training()
    _store(store, key, clf, trained)
    return trained


def _stored(store: Store, key: str, clf: Classifier) -> Trained | None:
    entry = store.get(key)
    if entry is None:
        return None
    record = json.loads(entry.words[WORDS])
    model: Any = copy.deepcopy(clf.model)
    model.load_state_dict({name: torch.from_numpy(array) for name, array in entry.arrays.items()})
    for name, value in record.pop("settings").items():
        setattr(model.config, name, value)
    curve = tuple(read_options(Point, p, "field of a learning curve") for p in record.pop("curve"))
    # a copy of clf: the same kind of model, tokenizer and heads
    return Trained(replace(clf, model=model), curve, seconds=0.0, **record)


def _store(store: Store, key: str, clf: Classifier, trained: Trained) -> None:
    model: Any = trained.classifier.model
    weights = {name: t.detach().cpu().numpy() for name, t in model.state_dict().items()}
    if sum(w.nbytes for w in weights.values()) > LARGEST * store.limit:
        return
    before, after = clf.config.to_dict(), model.config.to_dict()
    record = {
        "settings": {k: v for k, v in after.items() if before.get(k) != v},  # of the config, changed by training
        "curve": [asdict(p) for p in trained.curve],
        "updates": trained.updates,
        "epochs": trained.epochs,
        "best_epoch": trained.best_epoch,
    }
    store.put(key, weights, {WORDS: json.dumps(record)})


UPDATES = 6  # trained to time a training, after two that warm up
TRAIN_LIMIT = 8.0  # seconds of that at most


def seconds_of(
    clf: Classifier,
    train: Dataset,
    options: FinetuneOptions,
    seed: int,
    order: Sequence[str] | None,
    cancel: Cancel | None = None,
) -> float:
    """Seconds of a whole training, from its first updates."""
    updates = updates_of(options, len(train))
    few_examples = train.subset(limited(train, options.batch * options.accumulation * (UPDATES + 2), 0))
    # neither dev metrics nor a best epoch: only the updates are timed
    without_dev = replace(options, early_stopping=None, evaluate_epochs=False)
    begun = time.perf_counter()
    times: list[tuple[int, float]] = []

    def note(done: int, _: int) -> None:
        if not times or done > times[-1][0]:
            times.append((done, time.perf_counter()))

    def enough() -> bool:
        if cancel is not None and cancel():
            return True
        last = times[-1][0] if times else 0
        return last >= UPDATES + 2 or (last >= 2 and time.perf_counter() - begun > TRAIN_LIMIT)

    with suppress(Cancelled):
        fine_tune(clf, few_examples, without_dev, seed, label_order=order, progress=note, cancel=enough)
    stop_if(cancel)
    measured = [t for t in times if t[0] >= 2] or times
    if len(measured) < 2:  # a training of one update: only its whole time is known
        return (time.perf_counter() - begun) * updates
    (first, start), (last, end) = measured[0], measured[-1]
    return (end - start) / (last - first) * updates
