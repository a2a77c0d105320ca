"""The experiments: which model, what judges it, and what its heads are scored on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import headviz
from headviz.pruning.finetuning import fine_tune, head_labels
from headviz.pruning.options import FinetuneOptions
from study.jobs import graded, matching, qnli, registry, silver, spans
from study.jobs.measure import AUROC, Judge, Subject
from study.jobs.record import Record

SCORED, SCORED_TEXTS = 20, 200  # queries of a ranking whose passages score the heads; texts of other jobs
RECIPE = FinetuneOptions(epochs=3, batch=16, learning_rate=1e-4, warmup=0.1, checkpoint_steps=25)


@dataclass(frozen=True)
class Places:
    """GLUE's files, and where packages, data made of them, trainings and models go."""

    data: Path
    work: Path


@dataclass(frozen=True)
class Experiment:
    name: str
    says: str  # what the model is and does, in a line of the page
    make: Callable[[Places], Subject]


def similarity(weights: Callable[[Path], Path], places: Places) -> Subject:
    """MRPC's two classes by the cosine of the sentences."""
    split = {
        name: headviz.load_task("mrpc", split=name, data=places.data / "MRPC", limit=limit)
        for name, limit in (("train", SCORED_TEXTS), ("dev", None))
    }
    train, dev = (numbers(split[name]) for name in ("train", "dev"))
    return Subject(embedder(weights, places), dev, train, AUROC)


def numbers(data: headviz.Dataset) -> headviz.Dataset:
    """Pairs of two classes as pairs with 0 and 1."""
    columns = {"text": data.texts, "pair": data.pairs, "value": data.gold.astype(float)}
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return headviz.load_task("custom", data=rows, text_columns="text,pair", label_column="value", job="number")


def retrieval(weights: Callable[[Path], Path], corpus: int | None, depth: int, places: Places) -> Subject:
    """QNLI's sentences for its questions; of ``corpus`` sentences only, with the questions that they answer."""
    rows = qnli.read(places.data)
    if corpus is not None:
        there = set(qnli.drawn(qnli.sentences(rows), corpus))
        rows = [row for row in rows if row["sentence"] in there]
    questions = list(qnli.answers(rows))
    apart = qnli.drawn(questions, SCORED, seed=1)
    judged = [question for question in questions if question not in set(apart)]
    data, scored = (qnli.ranking(rows, some, depth) for some in (judged, apart))
    return Subject(embedder(weights, places), data, scored, "ndcg@10")


def pairs(weights: Callable[[Path], Path], count: int, places: Places) -> Subject:
    return Subject(embedder(weights, places), graded.pairs(count, seed=0), graded.pairs(100, seed=1), "spearman")


def reranker(queries: int, learned: int, depth: int, places: Places) -> Subject:
    """A cross-encoder from MiniLM: one half of QNLI's questions to learn from, the other to be judged on."""
    halves = qnli.halves(qnli.read(places.data))
    known = [
        qnli.drawn(list(qnli.answers(half)), count) for half, count in zip(halves, (learned, queries), strict=True)
    ]
    train = qnli.ranking(halves[0], known[0], 4)
    data = qnli.ranking(halves[1], known[1], depth)
    clf = trained("reranker", train, "rank", places)
    scored = qnli.ranking(halves[0], known[0][:SCORED], depth)
    looked = qnli.ranking(halves[0], known[0][:200], 1)  # questions with the sentences that answer them

    def more(record: Record, judge: Judge) -> None:
        matching.measure(record, judge, clf, looked)

    return Subject(clf, data, scored, "ndcg@10", more)


def tagger(train: int, dev: int, places: Places) -> Subject:
    learned, data = silver.read(places.work / "packages", places.data, places.work / "tags", train, dev)
    return Subject(
        trained("tagger", learned, "tokens", places),
        data,
        learned.subset(range(min(SCORED_TEXTS, len(learned)))),
        "span_f1",
    )


def reader(train: int, dev: int, places: Places) -> Subject:
    learned, data = (spans.read(places.work / "spans", n, split) for split, n in (("train", train), ("dev", dev)))
    return Subject(
        trained("spans", learned, "span", places),
        data,
        learned.subset(range(min(SCORED_TEXTS, len(learned)))),
        "token_f1",
    )


def embedder(weights: Callable[[Path], Path], places: Places) -> headviz.Classifier:
    return headviz.load(weights(places.work / "packages"), device="cpu")


def trained(name: str, train: headviz.Dataset, job: str, places: Places) -> headviz.Classifier:
    """MiniLM with a new head, trained once; a training that was stopped goes on from its last checkpoint."""
    place = places.work / "models" / name
    if not place.exists():
        base = registry.minilm(places.work / "packages")
        fresh = headviz.load(base, fresh_labels=head_labels(train), job=job, device="cpu", seed=0)
        done = fine_tune(
            fresh,
            train,
            RECIPE,
            folder=places.work / "trainings" / name,
            progress=lambda at, of: print(f"{name}: {at} of {of}", flush=True) if at % 25 == 0 else None,
        )
        made = place.with_name(f"{name}-unfinished")
        done.classifier.save(made)
        made.rename(place)
    return headviz.load(place, device="cpu", job=job)


EXPERIMENTS = (
    Experiment("mrpc-minilm", "MiniLM as it is, similarity of MRPC's pairs (two classes)",
               partial(similarity, registry.minilm)),
    Experiment("graded-minilm", "MiniLM as it is, similarity of generated pairs", partial(pairs, registry.minilm, 600)),
    Experiment("tagger", "a tagger from MiniLM: spaCy's people, organisations, places and dates in QNLI's sentences",
               partial(tagger, 1600, 400)),
    Experiment("spans", "a reader from MiniLM: spans of generated passages", partial(reader, 1600, 400)),
    Experiment("reranker", "a cross-encoder from MiniLM: QNLI's sentences for questions of other topics",
               partial(reranker, 250, 1000, 10)),
    Experiment("qnli-minilm", "MiniLM as it is, retrieval of QNLI's sentences",
               partial(retrieval, registry.minilm, None, 20)),
    Experiment("graded-mpnet", "MPNet as it is, similarity of generated pairs", partial(pairs, registry.mpnet, 600)),
    Experiment("qnli-mpnet", "MPNet as it is, retrieval among 600 of QNLI's sentences",
               partial(retrieval, registry.mpnet, 600, 20)),
    Experiment("mrpc-mpnet", "MPNet as it is, similarity of MRPC's pairs (two classes)",
               partial(similarity, registry.mpnet)),
)  # fmt: skip
