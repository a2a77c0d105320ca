"""A tiny model of each further job, with data that it mostly answers right, and their address in the dashboard."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import headviz

from .jobs import TAGS
from .tiny import WORDS, tiny_embedder, tiny_folder

NAMES = ("red", "cold", "wet")


def make(job: str, folder: Path) -> Path:
    write, names, more = MADE[job]
    if names:
        tiny_folder(folder / "model", labels=names, **more)
    else:
        tiny_embedder(folder / "model")
    (folder / "data").mkdir()
    for split in ("train", "dev"):
        write(folder, split)
    return folder


def address(job: str, folder: Path) -> dict[str, str]:
    more = {**COLUMNS[job], "groups": "kind", "samples": "8"}
    return {"model": str(folder / "model"), "task": "custom", "data": str(folder / "data"), **more}


def labels_of(folder: Path, split: str) -> None:
    """Most gold labels are the model's own answers."""
    rng, clf = random.Random(0), headviz.load(folder / "model", device="cpu")
    rows, texts = ["text\tred\tcold\twet\tkind"], [" ".join(rng.choices(WORDS, k=6)) for _ in range(60)]
    own = clf.answer.plain(clf.logits(clf.collate(clf.encode(texts))).numpy())
    for i, (text, labels) in enumerate(zip(texts, own.tolist(), strict=True)):
        labels[i % 3] = i % 2 if i % 5 == 0 else labels[i % 3]
        rows.append("\t".join([text, *map(str, labels), "ab"[i % 3 == 0]]))
    (folder / "data" / f"{split}.tsv").write_text("\n".join(rows) + "\n")


def ranking_of(folder: Path, split: str) -> None:
    """The passage that the model puts first is relevant, as a rule."""
    rng, clf = random.Random(0), headviz.load(folder / "model", device="cpu")
    rows = ["query\tpassage\trelevance\tkind"]
    for i in range(40):
        query, passages = (
            " ".join(rng.choices(WORDS, k=2 + i % 4)),
            [" ".join(rng.choices(WORDS, k=6)) for _ in range(4)],
        )
        scores = clf.logits(clf.collate(clf.encode([query] * 4, passages))).numpy()[:, 0]
        best = int(scores.argmax()) if i % 6 else i % 4
        rows += ["\t".join([query, text, str(int(k == best)), "ab"[i % 3 == 0]]) for k, text in enumerate(passages)]
    (folder / "data" / f"{split}.tsv").write_text("\n".join(rows) + "\n")


def tags_of(folder: Path, split: str) -> None:
    """Most tags are the model's own."""
    rng, clf = random.Random(0), headviz.load(folder / "model", device="cpu")
    rows, texts = [], [" ".join(rng.choices(WORDS, k=4 + i % 4)) for i in range(60)]
    own = clf.answer.plain(clf.logits(clf.collate(clf.encode(texts))).numpy())
    for i, (text, said) in enumerate(zip(texts, own, strict=True)):
        words = text.split()
        tags = [TAGS[one] for one in said[: len(words)]]
        if i % 4 == 0:
            tags[i % len(words)] = rng.choice(TAGS)
        rows.append(json.dumps({"tokens": words, "tags": tags, "kind": "ab"[i % 3 == 0]}))
    (folder / "data" / f"{split}.jsonl").write_text("\n".join(rows) + "\n")


def similarities_of(folder: Path, split: str) -> None:
    """Gold similarities are near the model's own."""
    rng, clf = random.Random(0), headviz.load(folder / "model", device="cpu")
    one, other = ([" ".join(rng.choices(WORDS, k=5)) for _ in range(60)] for _ in range(2))
    own = clf.logits(clf.collate(clf.encode(one, other))).numpy()[:, 0]
    rows = ["one\tother\tscore\tkind"]
    for i, (a, b, s) in enumerate(zip(one, other, own, strict=True)):
        rows.append(f"{a}\t{b}\t{0.9 * s + 0.1 * rng.random():.4f}\t{'ab'[i % 3 == 0]}")
    (folder / "data" / f"{split}.tsv").write_text("\n".join(rows) + "\n")


def spans_of(folder: Path, split: str) -> None:
    """Most answers are the model's own."""
    rng, clf = random.Random(0), headviz.load(folder / "model", device="cpu")
    rows = []
    for i in range(40):
        question, passage = (" ".join(rng.choices(WORDS[:-2], k=n)) for n in (3 + i % 3, 8))
        ((first, last),) = clf.answer.plain(clf.logits(clf.collate(clf.encode([question], [passage]))).numpy())
        words = passage.split()
        first, last = (first, last) if first >= 0 and i % 4 else (1, 2)
        start = len(" ".join(words[:first])) + bool(first)
        answer = {"text": " ".join(words[first : last + 1]), "answer_start": start}
        rows.append(
            json.dumps({"question": question, "context": passage, "answers": [answer], "kind": "ab"[i % 3 == 0]})
        )
    (folder / "data" / f"{split}.jsonl").write_text("\n".join(rows) + "\n")


MADE: dict[str, Any] = {
    "labels": (labels_of, NAMES, {"problem_type": "multi_label_classification"}),
    "rank": (ranking_of, ("value",), {"sentence_transformers": {"version": "5.0.0"}}),
    "span": (spans_of, ("start", "end"), {"head": "AutoModelForQuestionAnswering"}),
    "tokens": (tags_of, TAGS, {"head": "AutoModelForTokenClassification"}),
    "vector": (similarities_of, (), {}),
}
COLUMNS = {
    "labels": {"columns": "text", "label": "red,cold,wet"},
    "rank": {"columns": "", "label": ""},
    "tokens": {"columns": "", "label": ""},
    "vector": {"columns": "one,other", "label": "score"},
    "span": {"columns": "", "label": ""},
}
