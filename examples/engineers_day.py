"""From a model that transformers' Trainer has saved to a smaller one in one's own service.

    python examples/engineers_day.py MODEL DATA OUT

MODEL is the folder of a fine-tuned classifier, DATA a folder or file with texts and labels, OUT a new folder.
"""

from __future__ import annotations

import sys
from typing import Any

import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer, pipeline

import headviz


def kappa(gold: Any, predicted: Any) -> float:
    """A metric of one's own."""
    from sklearn.metrics import cohen_kappa_score

    return float(cohen_kappa_score(gold, predicted))


def main(model: str, data: Any, out: str) -> None:
    dev = headviz.load_task("custom", data=data, skip_bad=True, metrics=["accuracy", "f1_macro", "roc_auc", kappa])
    print(*dev.notes, sep="\n")

    # the model as it is, in one's own loop: heads off for a block, no weight is touched
    plain, tokenizer = AutoModelForSequenceClassification.from_pretrained(model), AutoTokenizer.from_pretrained(model)
    batch = tokenizer(list(dev.texts[:8]), padding=True, return_tensors="pt")
    with torch.no_grad(), headviz.masked(plain, {0: [1]}):
        plain(**batch)

    # which heads cost nothing, as a table
    clf = headviz.load(model)
    evaluator = headviz.evaluator_of(clf, dev)
    costs = headviz.ablate(evaluator, metric="accuracy").to_frame().sort_values("values")
    print(costs.head())
    least = costs.head(len(costs) // 4)
    mask = {layer: rows["head"].tolist() for layer, rows in least.groupby("layer")}
    print(evaluator.compare(mask).to_frame()[["metric", "full", "masked", "interval_low", "interval_high"]])

    # without them, and in a service that knows transformers alone
    small = headviz.prune(clf, mask)
    small.save(out)
    service = pipeline("text-classification", model=out, tokenizer=out)
    print(service(list(dev.texts[:2])))


if __name__ == "__main__":
    main(*sys.argv[1:4])
