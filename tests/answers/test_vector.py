"""An embedder: folders of sentence-transformers, pooling, pairs and rankings, and what cannot be."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import cycle
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModel

import headviz
from headviz.answers.rank import RANK
from headviz.pruning import FinetuneOptions
from headviz.pruning.faster import require_possible
from headviz.pruning.finetuning import fine_tune
from headviz.pruning.options import FasterOptions
from headviz.pruning.removal import repaired
from headviz.tasks import Dataset, get_task, judged_by
from support.command import call
from support.jobs import data_of
from support.tiny import PAIRS, TEXTS, tiny_embedder, tiny_folder, tiny_tokenizer

EMBEDDERS = "bert electra ernie roberta camembert xlm-roberta distilbert mpnet deberta-v2 modernbert".split()
EMBEDDERS += "nomic_bert gte jina_embeddings_v3".split()
POOLINGS = ("mean", "cls", "lasttoken")


def pairs(job: str = "number") -> Dataset:
    names = {"number": ("spearman", "pearson"), "rank": RANK.usual}[job]
    labels = np.array([0.9, 0.1, -0.3, 0.5]) if job == "number" else np.array([1, 0, 0, 1])
    texts = tuple(TEXTS) if job == "number" else (TEXTS[0], TEXTS[0], TEXTS[1], TEXTS[1])
    return Dataset(replace(get_task("custom"), job=job, metrics=names), "dev", texts, tuple(PAIRS), labels)


def alone(folder: Path, texts: list[str], pooling: str, pad: int = 0) -> np.ndarray:
    """Each text by itself through the plain transformers model."""
    model, tokenizer, result = AutoModel.from_pretrained(folder).eval(), tiny_tokenizer(pad), []
    for text in texts:
        ids = torch.tensor([tokenizer(text)["input_ids"]])
        with torch.no_grad():
            states = model(input_ids=ids)[0][0]
        result.append({"mean": states.mean(dim=0), "cls": states[0], "lasttoken": states[-1]}[pooling].numpy())
    vectors = np.stack(result)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.mark.parametrize(
    ("family", "pooling"),
    [*zip(EMBEDDERS, cycle(POOLINGS), strict=False), ("bert", "cls"), ("bert", "lasttoken"), ("modernbert", "mean")],
)
def test_the_answer_is_the_cosine_of_the_texts_alone(tmp_path: Path, family: str, pooling: str) -> None:
    folder = tiny_embedder(tmp_path / "m", family, pooling)
    clf, data = headviz.load(folder, device="cpu"), pairs()
    assert (clf.job, clf.pooling.mode, clf.max_length) == ("vector", pooling, 24)
    pad = int(clf.config.pad_token_id or 0)
    expected = (alone(folder, TEXTS, pooling, pad) * alone(folder, PAIRS, pooling, pad)).sum(axis=1)
    result = headviz.evaluate(clf, data)
    np.testing.assert_allclose(result.logits[:, 0], expected, atol=1e-5)
    assert set(result.metrics) == {"spearman", "pearson"}
    joined = clf.logits(clf.collate(clf.encode(TEXTS, PAIRS)))
    np.testing.assert_allclose(joined.numpy()[:, 0], expected, atol=1e-5)


def test_no_connection_leads_from_one_text_to_the_other(tmp_path: Path) -> None:
    clf = headviz.load(tiny_embedder(tmp_path / "m"), device="cpu")
    maps = headviz.conductance(clf, TEXTS[0], PAIRS[0], cache=False)
    first = maps.tokens.index("[SEP]") + 1
    for table in (maps.attention, maps.attribution):
        assert np.abs(table[:, :, :first, first:]).max() == np.abs(table[:, :, first:, :first]).max() == 0
    assert np.abs(maps.attribution[-1]).max() > 0
    assert maps.target_label == "similarity"
    with pytest.raises(headviz.UserError, match="only one was given"):
        headviz.conductance(clf, TEXTS[0], cache=False)


def test_a_pruned_folder_keeps_what_sentence_transformers_reads(tmp_path: Path) -> None:
    folder = tiny_embedder(tmp_path / "m", pooling="cls")
    clf = headviz.load(folder, device="cpu")
    small = headviz.prune(clf, clf.full_mask.without([(0, 1), (1, 2)]))
    small.save(tmp_path / "small")
    for name in ("modules.json", "1_Pooling/config.json", "sentence_bert_config.json"):
        assert (tmp_path / "small" / name).read_text() == (folder / name).read_text()
    assert (tmp_path / "small" / "2_Normalize").is_dir()
    data = pairs()
    again = headviz.evaluate(headviz.load(tmp_path / "small", device="cpu"), data)
    np.testing.assert_allclose(again.logits, headviz.evaluate(small, data).logits, atol=1e-6)
    AutoModel.from_pretrained(tmp_path / "small")


def test_a_new_embedder_is_made_of_a_bare_encoder(tmp_path: Path) -> None:
    base = tiny_folder(tmp_path / "base")
    headviz.load(base, fresh_labels=("value",), job="vector").save(tmp_path / "m")
    about = json.loads((tmp_path / "m" / "1_Pooling" / "config.json").read_text())
    assert about == {"word_embedding_dimension": 32, "pooling_mode_mean_tokens": True}
    assert headviz.load(tmp_path / "m").pooling.mode == "mean"


def test_an_embedder_is_judged_on_rankings(tmp_path: Path) -> None:
    clf, data = headviz.load(tiny_embedder(tmp_path / "m"), device="cpu"), pairs("rank")
    assert set(headviz.evaluate(clf, data).metrics) == set(RANK.usual)
    assert np.isfinite(headviz.score_heads(clf, data, "taylor", cache=False).values).all()


def test_a_ranking_stays_one_where_the_job_of_the_model_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, queries = tiny_embedder(tmp_path / "m"), [*TEXTS, "a man sleeps"]  # the last has no relevant passage
    rows = [f"{query}\t{text}\t{int(text is PAIRS[0] and query in TEXTS)}" for query in queries for text in PAIRS]
    for split in ("train", "dev"):
        (tmp_path / f"{split}.tsv").write_text("query\tpassage\trelevance\n" + "\n".join(rows))
    words = ("--model", model, "--task", "custom", "--data", tmp_path, "--job", "vector")
    data = headviz.load_task("custom", data=tmp_path, job="vector")
    assert (data.job, len(set(data.units))) == ("rank", 5)
    assert set(RANK.doubts(data)) <= set(data.notes) != set()
    assert tuple(call(capsys, "evaluate", *words)["metrics"]) == RANK.usual
    trained = call(capsys, "finetune", *words, "--epochs", 1, "--out", tmp_path / "out")
    assert tuple(trained["metrics"]) == RANK.usual
    assert headviz.load(tmp_path / "out").job == "vector"


def test_pairs_are_judged_by_the_order_of_their_similarities_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = tiny_embedder(tmp_path / "m")
    clf, number = headviz.load(model, device="cpu"), headviz.load(tiny_folder(tmp_path / "n", labels=("value",)))
    data = Dataset.of(TEXTS * 3, PAIRS * 3, list(np.linspace(-0.9, 0.9, 12)))
    first = {one.job: headviz.ablate(one, data).subject.metric for one in (clf, number)}
    assert first == {"vector": "spearman", "number": "pearson"}
    assert next(iter(headviz.evaluate(clf, data).metrics)) == "spearman"
    named = replace(data, task=judged_by(data.task, "pearson,spearman"))
    assert next(iter(headviz.evaluate(clf, named).metrics)) == "pearson"
    rows = [f"{a}\t{b}\t{i / 7 - 0.3:.2f}" for i, (a, b) in enumerate(zip(TEXTS, PAIRS, strict=True))]
    for split in ("train", "dev"):
        (tmp_path / f"{split}.tsv").write_text("one\tother\tscore\n" + "\n".join(rows * 8))
    words = ["--model", model, "--task", "custom", "--data", tmp_path, "--text-columns", "one,other"]
    trained = call(capsys, "finetune", *words, "--keep-head", "--epochs", 1, "--out", tmp_path / "out")
    assert next(iter(trained["curve"][-1]["metrics"])) == "spearman"
    pruned = call(capsys, "prune", *words, "--off", "0.1", "--out", tmp_path / "small")
    assert pruned["change"]["metric"] == "spearman"


def test_what_cannot_be_is_refused(tmp_path: Path) -> None:
    folder = tiny_embedder(tmp_path / "m")
    scaled = replace(pairs(), labels=pairs().gold * 5)
    with pytest.raises(headviz.UserError, match="compared with a cosine"):
        headviz.score_heads(headviz.load(folder), scaled, "taylor", cache=False)
    with pytest.raises(headviz.UserError, match="job='number'"):
        headviz.evaluate(headviz.load(tiny_folder(tmp_path / "c", labels=("value",)), job="rank"), pairs())
    with pytest.raises(headviz.UserError, match=r"no modules\.json"):
        headviz.load(tiny_folder(tmp_path / "d", labels=("value",)), job="vector")
    with pytest.raises(headviz.UserError, match="keep two texts apart"):
        headviz.load(tiny_embedder(tmp_path / "e", "esm"))
    with pytest.raises(headviz.UserError, match="convolution"):
        headviz.load(tiny_embedder(tmp_path / "f", "deberta-v2", conv_kernel_size=3))
    listed = json.loads((folder / "modules.json").read_text())
    (folder / "modules.json").write_text(json.dumps([*listed[:2], {"type": "sentence_transformers.models.Dense"}]))
    with pytest.raises(headviz.UserError, match="Transformer, Pooling, Dense"):
        headviz.load(folder)
    (folder / "modules.json").write_text("[")
    with pytest.raises(headviz.UserError, match=r"modules\.json of .* cannot be read"):
        headviz.load(folder)


@pytest.mark.parametrize("repair", ["refit", "tune", "bias", "none"])
def test_weights_are_solved_again_on_single_texts_alone(tmp_path: Path, repair: str) -> None:
    clf, pairs = headviz.load(tiny_embedder(tmp_path / "m"), device="cpu"), data_of("vector")
    options = FasterOptions(repair=repair)
    single = replace(pairs, pairs=None, labels=None)
    require_possible(clf, options, single)
    error = repaired(clf, clf.full_mask.without([(0, 1), (2, 2)]), single, repair).error
    assert repair == "none" or error["after"] < error["before"]
    if repair in ("bias", "none"):
        require_possible(clf, options, pairs)
    else:
        with pytest.raises(headviz.UserError, match="encodes each text of a pair separately"):
            require_possible(clf, options, pairs)


def test_a_partner_is_found_among_all_texts_of_a_batch(tmp_path: Path) -> None:
    clf = headviz.load(tiny_embedder(tmp_path / "m"), device="cpu")
    texts, others = [TEXTS[0], TEXTS[0], TEXTS[1], TEXTS[2]], [PAIRS[0], PAIRS[1], PAIRS[2], PAIRS[2]]
    similar = torch.tensor([1.0, 1.0, 0.0, 1.0])
    batch = clf.collate(clf.encode(texts, others))
    cosines, loss = clf.ranked_in_batch(clf.model, batch, similar)
    one, two = (clf.vectors(clf.collate(clf.encode(t)), clf.call(None)) for t in (texts, others))
    table = 20 * torch.nn.functional.normalize(one) @ torch.nn.functional.normalize(two).T
    # the other passage of the same query is no negative, nor is the partner's own text in another pair
    rivals = {0: [0, 2, 3], 1: [1, 2, 3], 3: [3, 0, 1]}
    slow = [-torch.log_softmax(table[i, at], dim=0)[0] for i, at in rivals.items()]
    np.testing.assert_allclose(float(loss), float(torch.stack(slow).mean()), atol=1e-4)
    np.testing.assert_allclose(cosines[:, 0].detach(), table.diagonal().detach() / 20, atol=1e-5)


def test_training_with_negatives_of_the_batch(tmp_path: Path) -> None:
    clf, data = headviz.load(tiny_embedder(tmp_path / "m"), device="cpu"), pairs("rank")
    options = FinetuneOptions(epochs=6, batch=4, learning_rate=2e-3, negatives="in-batch")
    trained = fine_tune(clf, data, options)
    before, after = (headviz.evaluate(one, data).logits[:, 0] for one in (clf, trained.classifier))
    relevant = data.gold[:, 0] > 0
    assert (after[relevant].mean() - after[~relevant].mean()) > (before[relevant].mean() - before[~relevant].mean())
    classifier = headviz.load(tiny_folder(tmp_path / "c"), device="cpu")
    for model, wrong in ((classifier, options), (clf, replace(options, batch=1))):
        with pytest.raises(headviz.UserError, match="Negatives from the batch are for embedders"):
            fine_tune(model, data, wrong)
