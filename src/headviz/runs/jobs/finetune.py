"""A fine-tuning in the background: one piece, which continues from the last checkpoint of the training."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from ...engine import Job, Tools
from ...heads import HeadMask
from ...models.source import Source
from ...options import option, seed_option
from ...progress import of_phase
from ...pruning.options import FinetuneOptions
from ...results import plain
from ..files import write_json

if TYPE_CHECKING:
    from ...models.classifier import Classifier
    from ...tasks import Dataset

TRAIN = "train"
MODEL = "model"  # the trained model's folder, below the run's
CURVE = "curve.json"  # the learning curve so far, for readers


@dataclass(frozen=True)
class FinetuneSpec(Source):
    """The options of ``headviz finetune``; ``finetune`` holds those of the training, None = the model's own recipe."""

    called: ClassVar[str] = "option of a run of kind 'finetune'"

    seed: int = seed_option()
    mask: str | None = None  # heads to remove first, in hexadecimal
    keep_head: bool = False
    train_limit: int | None = option(None, least=1)
    dev_limit: int | None = option(None, least=1)
    finetune: FinetuneOptions | None = None


def make(spec: Mapping[str, Any]) -> FinetuneJob:
    return FinetuneJob(FinetuneSpec.from_options(spec))


State = dict[str, Any]  # empty, then the result


@dataclass(frozen=True)
class FinetuneJob(Job):
    """One piece: the whole training."""

    spec: FinetuneSpec

    def begin(self) -> State:
        return {}

    def ready(self, state: State) -> list[str]:
        return [] if state else [TRAIN]

    def load(self, folder: Path | None = None) -> tuple[Classifier, Dataset, Dataset, FinetuneOptions]:
        """Model, train and dev data, and the options of the training."""
        from ...pruning.finetuning import examples_of, recipe_of

        spec, limit = self.spec, self.spec.train_limit
        if spec.finetune is None and limit is None and spec.data is None:
            limit = examples_of(spec.model)  # the recipe's, as its options
        train, dev = spec.dataset("train", limit), spec.dataset("dev", spec.dev_limit)
        options = spec.finetune or recipe_of(spec.model)
        clf = self._model(train)
        return clf, train, clf.answer.judged(dev), options or FinetuneOptions()

    def work(self, piece: str, parcel: bytes, tools: Tools) -> bytes:
        from ...evaluation.dispatch import evaluate
        from ...pruning.finetuning import fine_tune

        spec = self.spec
        clf, train, dev, options = tools.loaded
        trained = fine_tune(
            clf,
            train,
            options,
            spec.seed,
            dev=dev,
            label_order=spec.label_order,
            folder=tools.folder / "training",
            progress=of_phase(tools.progress, "training"),
            cancel=tools.cancel,
            curve=lambda points: write_json(
                tools.folder / CURVE, {"curve": plain(points), "metrics": list(dev.task.metrics)}, durable=False
            ),
        )
        result = evaluate(
            trained.classifier,
            dev,
            label_order=spec.label_order,
            precision="float32",
            progress=of_phase(tools.progress, "evaluating"),
            cancel=tools.cancel,
        )
        shutil.rmtree(tools.folder / MODEL, ignore_errors=True)  # left by an attempt that ended before its record
        trained.classifier.save(tools.folder / MODEL)
        record = result.to_dict()
        return json.dumps(
            {
                "sparsity": clf.present.sparsity,
                "mask": clf.present.hex,
                "metrics": record["metrics"],
                "cut_off": result.cut_off,
                "seconds": trained.seconds,
                "updates": trained.updates,
                "epochs": trained.epochs,
                "best_epoch": trained.best_epoch,
                "curve": plain(trained.curve),
                "digest": trained.classifier.digest,
                "labels": list(clf.classes or ()),
                "seed": spec.seed,
                "model": MODEL,
            },
            allow_nan=False,
        ).encode()

    def _model(self, train: Dataset) -> Classifier:
        from ...models.pruning import prune
        from ...pruning.finetuning import head_labels

        spec = self.spec
        labels = None if spec.keep_head else head_labels(train, spec.label_order)
        clf = spec.classifier(labels, spec.seed, train.job)
        if spec.mask is None:
            return clf
        return prune(clf, HeadMask.from_hex(spec.mask, clf.num_layers, clf.num_heads))

    def absorb(self, state: State, piece: str, result: bytes) -> State:
        return json.loads(result)

    def steps(self, state: State) -> dict[int, dict[str, Any]]:
        return {0: state} if state else {}

    def expected(self, state: State) -> int:
        return 1

    def finish(self, state: State, folder: Path) -> dict[str, Any]:
        shutil.rmtree(folder / "training", ignore_errors=True)
        (folder / CURVE).unlink(missing_ok=True)
        return {**state, "models": [MODEL]}
