"""What each difference between the thesis's text and its author's code changes in the ranking of heads:
``python -m study.author_code [--model demo] [--task demo] [--data DIR] [--samples 32]``.

One difference at a time, and all of them together (score ``thesis-2024-code``); for each the rank correlation of its
table of heads with that of the text (preset ``thesis-2024``), and the share of the lowest fifth that both name.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import numpy as np
from scipy.stats import spearmanr
from torch.nn.functional import pad

import headviz
from headviz.attribution.rules import PathOptions
from headviz.attribution.walk import Walk, baseline_ids
from headviz.evaluation.plain import encode_data
from headviz.scores.map_values import map_values
from study.author_code_score import TYPES, AuthorWalk, swept


@dataclass(frozen=True)
class Parts:
    """Which of the differences are made."""

    highest: bool = False  # explain the highest logit at each node
    no_types: bool = False  # attributions without token types
    one_sep: bool = False  # one [SEP] at the padded end of the baseline
    padding: bool = False  # padding within the correlation


class PartlyWalk(AuthorWalk):
    """The author's path with some of its differences only."""

    def __init__(self, clf, encodings, targets, mask, width, parts: Parts) -> None:
        super().__init__(clf, encodings, targets, mask, width)
        self.parts, self.own = parts, encodings
        if not parts.no_types:
            self.batch = self.with_types
        if not parts.one_sep:
            words = clf.model.get_input_embeddings()
            short = baseline_ids(clf, encodings, clf.collate(encodings)["input_ids"])
            self.start = words(pad(short, (0, width - short.shape[1]), value=int(clf.tokenizer.pad_token_id)))

    def pick(self, logits):
        return super().pick(logits) if self.parts.highest else Walk.pick(self, logits)

    def swept(self, *given):
        return super().swept(*given) if self.parts.padding else Walk.swept(self, *given)


def table(clf, encodings, parts: Parts) -> np.ndarray:
    width = max(len(e) for e in encodings)
    kept = clf.present.array()
    options = PathOptions(steps=50, rule="captum")
    result = swept(clf, encodings, options, clf.full_mask, width, lambda *given: PartlyWalk(*given, parts))
    return np.mean([value()["spearman"] for one in result for value in map_values(one, kept)], axis=0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="demo")
    parser.add_argument("--task", default="demo")
    parser.add_argument("--data")
    parser.add_argument("--samples", type=int, default=32)
    given = parser.parse_args()
    clf = headviz.load(given.model)
    train = headviz.load_task(given.task, split="train", data=given.data)
    drawn = headviz.sample(train, given.samples, seed=0, lengths=clf.tokenizer, length_filter="quantile")
    encodings = sorted(encode_data(clf, drawn), key=len)
    text = table(clf, encodings, Parts())
    fifth = round(0.2 * text.size)
    lowest = set(np.argsort(text, axis=None)[:fifth])
    print(f"{given.model}, {given.task}, {len(encodings)} texts, types: {TYPES in clf.collate(encodings[:1])}")
    print("| difference | rank correlation with the text's table | lowest fifth in common |\n|---|---|---|")
    for name, parts in {
        "highest logit at each node": Parts(highest=True),
        "attributions without token types": Parts(no_types=True),
        "one [SEP], at the padded end": Parts(one_sep=True),
        "padding in the correlation": Parts(padding=True),
        "all of them": Parts(True, True, True, True),
    }.items():
        result = table(clf, encodings, parts)
        void = int(np.isnan(result).sum())
        rho = spearmanr(text.ravel(), result.ravel(), nan_policy="omit").statistic
        share = len(lowest & set(np.argsort(result, axis=None)[:fifth])) / fifth
        print(f"| {name} | {rho:.2f} | {share:.0%} |" + (f" {void} heads void" if void else ""), flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
