"""What is measured of each model: heads off and removed by a score, and what each head costs alone."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import headviz
from headviz import HeadMask
from study.jobs.record import Record

OFF, SCORE = 0.3, "taylor"
GIB = 2**30
AUROC = "roc_auc"


@dataclass(frozen=True)
class Subject:
    """A model with the data that judge it, others that score its heads, and the metric."""

    clf: headviz.Classifier
    data: headviz.Dataset
    scored: headviz.Dataset
    metric: str
    more: Callable[[Record, Judge], None] | None = None  # what this experiment alone measures


class Judge:
    """The change of the metric under masks, on the same units."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        options = headviz.EvaluatorOptions(budget=2 * GIB)
        self.evaluator = headviz.evaluator_of(subject.clf, subject.data, options=options)

    def change(self, mask: HeadMask) -> dict[str, Any]:
        metric, gold = self.subject.metric, self.subject.data.gold
        masked = self.evaluator.predictions(mask, keep=False)
        if metric == AUROC:  # two classes, ordered by a number: cosines become numbers from 0 to 1
            full = self.evaluator.predictions()
            before, after = (np.clip((1 + one) / 2, 0, 1) for one in (full, masked))
            result = headviz.paired(gold.astype(int), before, after, metric)
            ends = {"delta": result.difference, "low": result.low, "high": result.high, "p": result.p}
            return {"full": auroc(gold, full), "masked": auroc(gold, masked), **ends}
        (delta,) = self.evaluator.answers().deltas([masked], metric)
        ends = {"delta": delta.delta, "low": delta.interval_low, "high": delta.interval_high, "p": delta.p_value}
        return {"full": delta.full, "masked": delta.masked, **ends}


def auroc(gold: Any, values: Any) -> float:
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(gold, values))


def about(subject: Subject) -> dict[str, Any]:
    data, scored = subject.data, subject.scored
    units = getattr(data, "units", None)
    return {
        "model": subject.clf.digest,
        "data": data.digest,
        "scored": scored.digest,
        "metric": subject.metric,
        "examples": len(data),
        "units": len(data) if units is None else len(np.unique(units)),
        "off": OFF,
    }


def removal(record: Record, subject: Subject, judge: Judge) -> None:
    """A share of the heads off, in the order of a score on other examples; then really removed, and timed."""
    clf, data = subject.clf, subject.data

    def least() -> str:
        scores = headviz.score_heads(clf, subject.scored, score=SCORE)
        count = round(OFF * clf.num_layers * clf.num_heads)
        return clf.full_mask.without(scores.ranked()[-count:]).hex

    mask = HeadMask.from_hex(record.part("mask", least), clf.num_layers, clf.num_heads)
    record.part("masked", lambda: judge.change(mask))
    small = headviz.prune(clf, mask)

    def timed(model: headviz.Classifier, under: HeadMask | None) -> dict[str, Any]:
        began = time.process_time()
        result = headviz.evaluate(model, data, mask=under)
        seconds = time.process_time() - began
        value = auroc(data.gold, result.predictions) if subject.metric == AUROC else result.metrics[subject.metric]
        return {"value": value, "seconds": seconds, "parameters": model.cost().parameters}

    for name, model, under in (("full", clf, None), ("off", clf, mask), ("pruned", small, None)):
        record.part(f"evaluated {name}", lambda model=model, under=under: timed(model, under))


def costs(record: Record, subject: Subject, judge: Judge) -> None:
    """Each head off alone; the last layers first, which are computed soonest."""
    for head in sorted(subject.clf.full_mask.kept, reverse=True):
        mask = subject.clf.full_mask.without([head])
        record.part(f"head {head.dotted}", lambda mask=mask: judge.change(mask))


STAGES: Sequence[Callable[[Record, Subject, Judge], None]] = (removal, costs)
