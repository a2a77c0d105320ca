"""Evaluation without shortcuts: whole padded batches through the model itself. What the fast ways are compared with."""

from __future__ import annotations

import numpy as np

from headviz import Classifier, HeadMask
from headviz.evaluation.plain import BATCH_TOKENS, Evaluation, batches, class_order, encode_data, gold_for, metrics_for
from headviz.tasks import Dataset


def evaluate(clf: Classifier, data: Dataset, mask: HeadMask | None = None) -> Evaluation:
    order, encodings = class_order(clf, data), encode_data(clf, data)
    logits = np.empty((len(data), clf.num_labels), dtype=np.float32)
    for index in batches([len(e) for e in encodings], BATCH_TOKENS):
        logits[index] = clf.logits(clf.collate([encodings[i] for i in index]), mask).cpu().numpy()
    return Evaluation(
        metrics=metrics_for(data, logits, order),
        logits=logits,
        gold=gold_for(data, order),
        mask=clf.under(mask),
        seconds=0.0,
        answer=data.answer,
        truncated=sum(e.truncated for e in encodings),
    )
