"""Where a pruned model is opened: every consumer in a fresh virtual environment of its own.

    python tools/consumers.py FOLDER [FOLDER …] --work cache/consumers --remove 0.25

Each model loses a share of its heads and is saved as usual, as portable, and as ONNX in float32 and int8. Each consumer
reads the folder as its own users do, tokenizer included, and its outputs are compared with those of the pruned model in
memory. A finished environment in the work folder is used again.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch

import headviz

ROOT = Path(__file__).resolve().parents[1]
TEXTS = (
    "a gripping and often funny film",
    "The company said its profit fell by a third in the last quarter .",
    "no",
    "It was raining when we left the house , and nobody had thought of an umbrella .",
)
PAIRS = (
    "the film bored us",
    "Profit at the company fell by 33 percent , it said .",
    "yes",
    "Somebody had an umbrella .",
)

# What every consumer's program begins with: the folder, how texts are read, and what it prints at the end.
BEGIN = """
import json, sys
folder, auto, texts, pairs = json.loads(sys.argv[1])
def done(**outputs):
    print(json.dumps({name: rows.tolist() for name, rows in outputs.items()}))
"""
TRANSFORMERS = """
import torch, transformers
tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
model = getattr(transformers, auto).from_pretrained(folder, **OPTIONS).eval()
batch = tokenizer(*([texts] if pairs is None else [texts, pairs]), padding=True, return_tensors="pt")
with torch.no_grad():
    output = model(**batch)
done(**{name: output[name] for name in ("logits", "start_logits", "end_logits", "last_hidden_state") if name in output})
"""
SENTENCES = """
import torch
from sentence_transformers import CrossEncoder, SentenceTransformer
if auto == "AutoModel":
    done(sentence_embedding=SentenceTransformer(folder, device="cpu", **OPTIONS).encode(texts))
else:
    model = CrossEncoder(folder, device="cpu", activation_fn=torch.nn.Identity(), **OPTIONS)
    scores = model.predict(texts if pairs is None else list(zip(texts, pairs)), convert_to_tensor=True)
    done(logits=scores.reshape(len(texts), -1))
"""
RUNTIME = """
import numpy, onnxruntime
from tokenizers import Tokenizer
tokenizer = Tokenizer.from_file(folder + "/tokenizer.json")
tokenizer.enable_padding(pad_id=json.load(open(folder + "/config.json"))["pad_token_id"])
rows = tokenizer.encode_batch(texts if pairs is None else list(zip(texts, pairs)))
given = {"input_ids": [r.ids for r in rows], "attention_mask": [r.attention_mask for r in rows],
         "token_type_ids": [r.type_ids for r in rows]}
session = onnxruntime.InferenceSession(folder + "/model.onnx", providers=["CPUExecutionProvider"])
names = [one.name for one in session.get_outputs()]
asked = {one.name: numpy.array(given[one.name], dtype=numpy.int64) for one in session.get_inputs()}
done(**dict(zip(names, session.run(names, asked))))
"""
OPTIMUM = """
from optimum import onnxruntime
from transformers import AutoTokenizer
kind = auto.replace("Auto", "ORT") + ("ForFeatureExtraction" if auto == "AutoModel" else "")
model = getattr(onnxruntime, kind).from_pretrained(folder)
tokenizer = AutoTokenizer.from_pretrained(folder)
batch = tokenizer(*([texts] if pairs is None else [texts, pairs]), padding=True, return_tensors="pt")
output = model(**batch)
done(**{name: output[name] for name in ("logits", "start_logits", "end_logits", "last_hidden_state") if name in output})
"""


@dataclass(frozen=True)
class Consumer:
    """``needs`` is what pip installs into its environment; ``of`` the folder that it opens."""

    name: str
    of: str
    environment: str
    needs: tuple[str, ...]
    code: str
    jobs: tuple[str, ...] = ()  # none = all


OLD = ("optimum-onnx", "onnxruntime", "transformers<4.58", "sentence-transformers<6")
NEW = (str(ROOT), "sentence-transformers")
EMBEDS_AND_RANKS = ("class", "number", "labels", "rank", "vector")
CONSUMERS = (
    Consumer(
        "transformers, import headviz", "usual", "headviz", (str(ROOT),), "import headviz\nOPTIONS = {}" + TRANSFORMERS
    ),
    Consumer(
        "transformers alone",
        "portable",
        "transformers",
        ("transformers", "torch"),
        'OPTIONS = {"trust_remote_code": True}' + TRANSFORMERS,
    ),
    Consumer(
        "sentence-transformers, import headviz",
        "usual",
        "sentence-transformers",
        NEW,
        "import headviz\nOPTIONS = {}" + SENTENCES,
        EMBEDS_AND_RANKS,
    ),
    Consumer("onnxruntime alone", "float32", "onnxruntime", ("onnxruntime", "tokenizers", "numpy"), RUNTIME),
    Consumer("onnxruntime alone, int8", "int8", "onnxruntime", ("onnxruntime", "tokenizers", "numpy"), RUNTIME),
    Consumer("optimum", "float32", "optimum", OLD, OPTIMUM),
    Consumer("optimum, int8", "int8", "optimum", OLD, OPTIMUM),
    *(
        Consumer(
            f"sentence-transformers, backend onnx{name}",
            of,
            "optimum",
            OLD,
            'OPTIONS = {"backend": "onnx"}' + SENTENCES,
            EMBEDS_AND_RANKS,
        )
        for name, of in (("", "float32"), (", int8", "int8"))
    ),
)


def python_of(consumer: Consumer, work: Path) -> Path:
    """The Python of its environment, made if it is not there."""
    place = work / "environments" / consumer.environment
    python, finished = place / "bin" / "python", place / "finished"
    if not finished.exists():
        print(f"making {place}", file=sys.stderr, flush=True)
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(place)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", *consumer.needs], check=True)
        finished.touch()
    return python


def folders(small: headviz.Classifier, place: Path) -> dict[str, Path]:
    """The pruned model in each form; those that are there already are kept."""
    out = {name: place / name for name in ("usual", "portable", "float32", "int8")}
    for name, folder in out.items():
        if folder.exists():
            continue
        if name in ("usual", "portable"):
            small.save(folder, portable=name == "portable")
        else:
            headviz.export(small, folder, name, batch=1, length=16)
    return out


def rows_of(model: str, work: Path, share: float) -> Iterator[tuple[str, str]]:
    """A consumer and the largest difference of each of its outputs from the pruned model's, or what it raises."""
    clf = headviz.load(model, device="cpu")
    small = headviz.prune(clf, clf.full_mask.without_random(round(share * clf.full_mask.size)))
    paired = clf.num_texts == 2 and clf.job != "vector"
    inputs = list(TEXTS), list(PAIRS) if paired else None
    batch = small.collate(small.encode(*inputs))
    with torch.inference_mode():
        expected = dict(zip(small.answer.graph, small.graph(batch, small.call()), strict=True))
    made = folders(small, work / "models" / small.digest[:12])
    for consumer in CONSUMERS:
        if consumer.jobs and (clf.job not in consumer.jobs or clf.num_texts == 1):  # a CrossEncoder reads pairs alone
            continue
        request = json.dumps([str(made[consumer.of]), clf.answer.auto_class, *inputs])
        words = [python_of(consumer, work), "-c", BEGIN + consumer.code, request]
        kept = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
        ended = subprocess.run(
            list(map(str, words)),
            env=kept | {"HF_HUB_OFFLINE": "1", "HF_MODULES_CACHE": str(work / "modules")},
            cwd=work,
            capture_output=True,
            text=True,
        )
        if ended.returncode:
            yield consumer.name, (ended.stderr.strip().splitlines() or ["failed"])[-1][:200]
            continue
        outputs = json.loads(ended.stdout.splitlines()[-1])
        yield (
            consumer.name,
            ", ".join(f"{name} {difference_of(rows, expected[name], batch)}" for name, rows in outputs.items()),
        )


def difference_of(rows: list[list[float]], expected: torch.Tensor, batch: dict[str, torch.Tensor]) -> str:
    """The largest difference, of tokens without their padding."""
    output = torch.tensor(rows)
    if output.shape != expected.shape:
        return f"has the shape {tuple(output.shape)}, not {tuple(expected.shape)}"
    if output.shape[:2] == batch["attention_mask"].shape:
        there = batch["attention_mask"].bool()
        output, expected = output[there], expected[there]
    return f"{float((output - expected).abs().max()):.1e}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--work", type=Path, default=ROOT / "cache" / "consumers")
    parser.add_argument("--remove", type=float, default=0.25, help="share of the heads")
    args = parser.parse_args()
    work = args.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    for model in args.models:
        print(f"\n{model}\n\n| consumer | largest difference |\n|---|---|", flush=True)
        for name, row in rows_of(model, work, args.remove):
            print(f"| {name} | {row} |", flush=True)


if __name__ == "__main__":
    main()
