"""A small model and its data on disk, for pages and browser tests; made in seconds, no download."""

from __future__ import annotations

import csv
import random
from pathlib import Path

from .tiny import WORDS, tiny_model, tiny_tokenizer

LABELS = ("entailment", "neutral", "contradiction")
SLICES = ("negation", "number", "role swap")


def make_model(folder: Path, layers: int = 12, heads: int = 12, seed: int = 0) -> Path:
    """A random BERT whose three answers all occur and change with its heads."""
    import torch

    model = tiny_model("bert", layers=layers, heads=heads, hidden=4 * heads, seed=seed, spread=0.3)
    tokenizer = tiny_tokenizer()
    rng = random.Random(seed)
    texts = [" ".join(rng.choices(WORDS, k=8)) for _ in range(64)]
    with torch.inference_mode():
        logits = model(**tokenizer(texts, texts[::-1], padding=True, return_tensors="pt")).logits
        model.classifier.bias -= logits.mean(0)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def make_data(folder: Path, rows: int = 60, seed: int = 0) -> Path:
    """Train and dev pairs with a slice column."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = random.Random(seed)
    for split in ("train", "dev"):
        with (folder / f"{split}.csv").open("w", newline="", encoding="utf-8") as file:
            out = csv.writer(file)
            out.writerow(["premise", "hypothesis", "label", "phenomenon"])
            for i in range(rows):
                text = [" ".join(rng.choices(WORDS, k=rng.randint(3, 9))) for _ in range(2)]
                out.writerow([*text, LABELS[i % 3], SLICES[i // 3 % 3]])
    return folder


def address(folder: Path) -> dict[str, str]:
    """The query parameters that lead to the ``model`` and the ``data`` of a folder."""
    return {
        "model": str(folder / "model"),
        "task": "custom",
        "data": str(folder / "data"),
        "columns": "premise,hypothesis",
        "label": "label",
        "groups": "phenomenon",
    }


def answered(model: Path, data: Path, name: str = "answered") -> Path:
    """The same data with the model's own answers as labels."""
    import headviz

    folder = data.parent / name
    folder.mkdir(exist_ok=True)
    clf = headviz.load(str(model), device="cpu")
    for split in ("train", "dev"):
        columns = {"text_columns": "premise,hypothesis", "label_column": "label"}
        result = headviz.evaluate(clf, headviz.load_task("custom", split=split, data=str(data), **columns))
        with (data / f"{split}.csv").open(newline="") as given, (folder / f"{split}.csv").open("w", newline="") as new:
            rows, out = list(csv.reader(given)), csv.writer(new)
            out.writerow(rows[0])
            out.writerows([*r[:2], clf.labels[p], *r[3:]] for r, p in zip(rows[1:], result.predictions, strict=True))
    return folder


def make_translation(folder: Path) -> Path:
    """A random translation model in ``translator``, and sentences with references in ``pairs``."""
    from .tiny_translation import SOURCES, TARGETS, tiny_translator_folder

    tiny_translator_folder(folder / "translator")
    (folder / "pairs").mkdir()
    lines = [f"{a}\t{b}" for a, b in zip(SOURCES * 2, TARGETS * 2, strict=True)]
    for split in ("train", "dev"):
        (folder / "pairs" / f"{split}.tsv").write_text("\n".join(["source\ttarget", *lines]) + "\n", encoding="utf-8")
    return folder


PLANTED = (2, 1)  # the one head of the planted model that can be seen at its output
FLIPS = "not"  # the word that this head looks for
SIZE = (4, 4)


def make_planted(folder: Path, labels: tuple[str, ...] = LABELS) -> Path:
    """A BERT whose answer depends on one head: that head alone carries the word ``not`` to [CLS].

    Everything else between the embeddings and the classifier is silent, so [CLS] stays what it was. The head
    attends to all tokens alike; of what they are, it passes on the direction in which ``not`` differs.
    """
    import torch

    layers, heads = SIZE
    model = tiny_model("bert", layers=layers, heads=heads, hidden=8 * heads, labels=labels, seed=5)
    tokenizer = tiny_tokenizer()
    bert, hidden = model.bert, model.config.hidden_size
    seen = torch.zeros(hidden)
    seen[3] = 1.0  # the direction that the head looks along, and the one it writes to
    written = torch.zeros(hidden)
    written[7] = 4.0
    with torch.no_grad():
        for layer in bert.encoder.layer:
            attention, out = layer.attention.self, layer.attention.output.dense
            for linear in (attention.query, attention.key, attention.value, out, layer.output.dense):
                linear.weight.zero_()
                linear.bias.zero_()
        bert.embeddings.word_embeddings.weight[:, 3] = 0.0
        bert.embeddings.word_embeddings.weight[tokenizer.convert_tokens_to_ids(FLIPS), 3] = 6.0
        layer, head = PLANTED
        first = head * (hidden // heads)
        attention = bert.encoder.layer[layer].attention
        attention.self.value.weight[first] = seen
        attention.output.dense.weight[:, first] = written
        said, silent = (
            bert(**tokenizer(text, "a cat runs", return_token_type_ids=True, return_tensors="pt")).pooler_output[0]
            for text in (f"a dog sleeps {FLIPS}", "a dog sleeps")
        )
        way = said - silent
        model.classifier.weight.zero_()
        model.classifier.bias.copy_(torch.tensor([-6.0, 0.0, 0.0]))
        model.classifier.weight[2] = 8 * way / way.dot(way)  # the third class, half way between the two
        model.classifier.bias[2] = -model.classifier.weight[2].dot((said + silent) / 2)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
