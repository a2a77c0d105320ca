"""Pruned models of every job without headviz, and by sentence-transformers in place; test_ways has the rest."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import headviz
from support.jobs import model_of
from support.tiny import TEXTS

JOBS = ("labels", "number", "rank", "tokens", "span", "vector")


def small(job: str) -> Any:
    """A pruned model, one of whose layers has no heads."""
    return headviz.prune(model_of(job), {0: [1], 1: range(4), 2: [0, 3]})


def expected(clf: Any, batch: Any) -> dict[str, torch.Tensor]:
    """What a graph of the model gives, by name."""
    with torch.inference_mode():
        return dict(zip(clf.answer.graph, clf.graph(batch, clf.call()), strict=True))


def test_sentence_transformers_saves_and_opens_what_lost_heads_in_place(tmp_path: Path) -> None:
    module = pytest.importorskip("sentence_transformers")
    whole = model_of("vector").save(tmp_path / "whole")
    model = module.SentenceTransformer(str(whole), device="cpu")
    headviz.prune_heads(model[0].auto_model, {0: [1, 2], 1: [0]})
    expected = model.encode(TEXTS)
    model.save(str(tmp_path / "small"))
    again = module.SentenceTransformer(str(tmp_path / "small"), device="cpu")
    np.testing.assert_array_equal(again.encode(TEXTS), expected)
    assert again[0].auto_model.num_parameters() < headviz.load(whole, device="cpu").cost().parameters


WITHOUT_HEADVIZ = """
import sys
sys.modules["headviz"] = None
import json, torch, transformers

for folder, auto, batch in json.load(sys.stdin):
    batch = {name: torch.tensor(rows) for name, rows in batch.items()}
    model = getattr(transformers, auto).from_pretrained(folder, trust_remote_code=True).eval()
    with torch.no_grad():
        print(json.dumps({name: rows.tolist() for name, rows in model(**batch).items() if rows is not None}))
"""


@pytest.mark.slow
def test_a_portable_folder_of_each_job_opens_without_headviz(tmp_path: Path) -> None:
    models = {job: small(job) for job in JOBS}
    given = []
    for job, clf in models.items():
        folder = clf.save(tmp_path / job, portable=True)
        opened = headviz.load(folder, device="cpu")
        assert (opened.job, opened.digest) == (job, clf.digest)
        batch = {name: rows.tolist() for name, rows in clf.sample(TEXTS).items() if name != "places"}
        given.append((str(folder), clf.answer.auto_class, batch))
    ended = subprocess.run(
        [sys.executable, "-c", WITHOUT_HEADVIZ],
        input=json.dumps(given),
        env={**os.environ, "HF_MODULES_CACHE": str(tmp_path / "modules")},
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stderr
    for line, (job, clf) in zip(ended.stdout.splitlines(), models.items(), strict=True):
        output = json.loads(line)
        wanted = {name: rows for name, rows in expected(clf, clf.sample(TEXTS)).items() if name in output}
        assert wanted, job
        for name, rows in wanted.items():
            np.testing.assert_allclose(output[name], rows.numpy(), atol=1e-6, err_msg=f"{job} {name}")
