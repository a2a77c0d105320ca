"""GLUE's QNLI as retrieval: which sentence answers a question, among those that share most words with it.

The file names no passages. A question and its sentences, with the other questions of these, come from one passage; such
groups are clustered into as many topics as SQuAD's dev set has articles, and a topic is never in both halves.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from sklearn.cluster import KMeans
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer

import headviz

ARTICLES = 48
Rows = list[dict[str, str]]


def read(data: Path) -> Rows:
    with open(data / "QNLI" / "dev.tsv", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def sentences(rows: Rows) -> list[str]:
    return list(dict.fromkeys(row["sentence"] for row in rows))


def answers(rows: Rows) -> dict[str, set[str]]:
    """The sentences that answer each question; a question of which none does is left out."""
    result: dict[str, set[str]] = {}
    for row in rows:
        if row["label"] == "entailment":
            result.setdefault(row["question"], set()).add(row["sentence"])
    return result


def halves(rows: Rows, topics: int = ARTICLES) -> tuple[Rows, Rows]:
    """Two of about equal size, by whole topics."""
    place = {text: i for i, text in enumerate(dict.fromkeys(r[c] for c in ("question", "sentence") for r in rows))}
    ends = [[place[row[column]] for row in rows] for column in ("question", "sentence")]
    links = coo_array((np.ones(len(rows)), (ends[0], ends[1])), shape=(len(place), len(place)))
    group = connected_components(links, directed=False)[1][ends[0]]
    texts = [" ".join(f"{row['question']} {row['sentence']}" for row in some) for some in _by(rows, group)]
    words = TfidfVectorizer(sublinear_tf=True, stop_words="english").fit_transform(texts)
    size, topics = min(100, words.shape[1] - 1), min(topics, len(texts))
    topic = KMeans(topics, n_init=4, random_state=0).fit_predict(
        TruncatedSVD(size, random_state=0).fit_transform(words)
    )[group]
    parts: tuple[Rows, Rows] = ([], [])
    for some in sorted(_by(rows, topic), key=len, reverse=True):
        min(parts, key=len).extend(some)
    return parts


def _by(rows: Rows, group: np.ndarray) -> list[Rows]:
    result: list[Rows] = [[] for _ in range(int(group.max()) + 1)]
    for row, number in zip(rows, group, strict=True):
        result[number].append(row)
    return result


def ranking(rows: Rows, questions: list[str], depth: int) -> headviz.Dataset:
    """The sentences with most words in common by TF-IDF for each question; those that answer it always among them."""
    corpus, known = sentences(rows), answers(rows)
    weights = TfidfVectorizer(sublinear_tf=True)
    table = weights.fit_transform(corpus)
    pairs = []
    for question in questions:
        order = np.argsort(-(weights.transform([question]) @ table.T).toarray()[0], kind="stable")
        right = sorted(known[question])
        others = [corpus[i] for i in order[: depth + len(right)] if corpus[i] not in known[question]]
        for text in (*right, *others[: depth - len(right)]):
            pairs.append({"query": question, "passage": text, "relevance": int(text in known[question])})
    return headviz.load_task("custom", data=pairs, job="rank")


def drawn(texts: list[str], count: int, seed: int = 0) -> list[str]:
    """So many of them, in their order; all where there are no more."""
    chosen = np.random.default_rng(seed).permutation(len(texts))[:count]
    return [texts[i] for i in sorted(chosen)]
