"""Smaller vocabularies: the texts that were read keep their pieces and answers, in memory and from the saved folder."""

import dataclasses
import itertools
import json
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast

import headviz
from headviz.cli import main
from headviz.errors import ModelError, TaskError
from headviz.models.vocabulary import changed_share, smaller_vocabulary, used_pieces, with_pieces
from support.tiny import tiny_classifier, tiny_folder, tiny_model

BEGIN, VERBS, END = ("the red dog", "a blue cat"), ("sleeps", "runs", "eats"), ("well", "here", "slowly now")
CORPUS = [f"{a} {b} {c}" for a in BEGIN for b in VERBS for c in END]
TEXTS, OTHER = CORPUS[:9], ["a blue cat runs slowly now", "zzz qqq"]
SPECIAL = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]


def tokenizer_of(kind: str) -> Any:
    """A tokenizer that was trained on the corpus, with numbers as RoBERTa's has them."""
    if kind == "BPE":
        backend = Tokenizer(models.BPE())
        backend.pre_tokenizer, backend.decoder = pre_tokenizers.ByteLevel(), decoders.ByteLevel()
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        trainer: Any = trainers.BpeTrainer(
            vocab_size=330, special_tokens=SPECIAL, initial_alphabet=alphabet, show_progress=False
        )
    else:
        backend = Tokenizer(models.Unigram())
        backend.pre_tokenizer, backend.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
        trainer = trainers.UnigramTrainer(vocab_size=60, special_tokens=SPECIAL, unk_token="<unk>", show_progress=False)
    backend.train_from_iterator(CORPUS, trainer)
    numbers = {name: backend.token_to_id(name) for name in SPECIAL}
    backend.post_processor = processors.RobertaProcessing(("</s>", numbers["</s>"]), ("<s>", numbers["<s>"]))
    names = {
        "unk_token": "<unk>",
        "pad_token": "<pad>",
        "cls_token": "<s>",
        "sep_token": "</s>",
        "mask_token": "<mask>",
    }
    return PreTrainedTokenizerFast(tokenizer_object=backend, **names, model_max_length=64)


@pytest.mark.parametrize("kind", ["WordPiece", "Unigram", "BPE"])
def test_texts_that_were_read_keep_their_answers(kind: str, tmp_path: Path) -> None:
    if kind == "WordPiece":
        clf = tiny_classifier()
    else:
        tokenizer = tokenizer_of(kind)
        model = tiny_model("roberta")
        model.resize_token_embeddings(max(len(tokenizer), model.config.vocab_size))
        clf = headviz.wrap(model.eval(), tokenizer)
    weights = {name: w.clone() for name, w in clf.model.state_dict().items()}
    small = with_pieces(clf, used_pieces(clf, TEXTS))
    assert 5 < len(small.tokenizer) < len(clf.tokenizer)
    assert small.config.vocab_size == len(small.tokenizer) == len(small.model.get_input_embeddings().weight)
    assert small.tokenizer.pad_token_id == small.config.pad_token_id
    small.save(tmp_path / "small")
    for one in (small, headviz.load(tmp_path / "small", device="cpu")):
        assert changed_share(clf, one, TEXTS) == 0
        wanted, own = (m.logits(m.collate(m.encode(TEXTS, TEXTS[::-1]))) for m in (clf, one))
        assert torch.equal(wanted, own)
    small.logits(small.collate(small.encode(OTHER, OTHER)))  # with pieces that are gone, too
    assert all(torch.equal(w, clf.model.state_dict()[name]) for name, w in weights.items())


def test_what_cannot_have_a_smaller_vocabulary() -> None:
    clf = tiny_classifier()
    with pytest.raises(TaskError, match="no text"):
        used_pieces(clf, [])
    slow = dataclasses.replace(clf, tokenizer=object())
    with pytest.raises(ModelError, match="fast"):
        with_pieces(slow, {"a"})


def test_the_command_takes_the_texts_of_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base = tiny_folder(tmp_path / "base")
    (tmp_path / "texts.txt").write_text("\n".join(["the dog sleeps", "", "a cat runs"]))
    texts, out = str(tmp_path / "texts.txt"), str(tmp_path / "small")
    words = ["prune", "--model", str(base), "--vocabulary", texts, "--out", out]
    assert main(words) == 0
    assert "pieces" in capsys.readouterr().out
    one, other = headviz.load(base, device="cpu"), headviz.load(tmp_path / "small", device="cpu")
    assert len(other.tokenizer) < len(one.tokenizer)
    pair = (["the dog sleeps"], ["a cat runs"])
    torch.testing.assert_close(*(m.logits(m.collate(m.encode(*pair))) for m in (one, other)))
    _, record = smaller_vocabulary(one, tmp_path / "texts.txt", ["the dog sleeps", "red"])
    assert (record["texts"], record["changed"]) == (2, 0.5)
    assert record["pieces"]["after"] == len(other.tokenizer)
    assert main([*words[:-1], str(tmp_path / "none"), "--vocabulary", str(tmp_path / "nowhere")]) == 2


def test_the_command_compares_with_the_whole_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Parameters and the change on dev are against the model before its vocabulary became smaller."""
    base = tiny_folder(tmp_path / "base")
    (tmp_path / "texts.txt").write_text("the dog sleeps")
    labels = headviz.load(base, device="cpu").labels
    rows = [
        f"{one}\t{two}\t{labels[i % len(labels)]}" for i, (one, two) in enumerate(itertools.permutations(CORPUS, 2))
    ]
    table = ["one\ttwo\tlabel", *rows]
    (tmp_path / "dev.tsv").write_text("\n".join(table) + "\n")
    columns = ["--text-columns", "one,two", "--label-column", "label"]
    words = [
        "prune",
        "--model",
        str(base),
        "--vocabulary",
        str(tmp_path / "texts.txt"),
        "--out",
        str(tmp_path / "small"),
    ]
    assert main([*words, "--task", "custom", "--data", str(tmp_path), *columns, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    whole, small = (headviz.load(tmp_path / name, device="cpu") for name in ("base", "small"))
    parameters = [sum(p.numel() for p in clf.model.parameters()) for clf in (whole, small)]
    assert parameters[1] < parameters[0]
    assert [result["parameters"][end] for end in ("before", "after")] == parameters
    data = headviz.load_task("custom", data=tmp_path, text_columns=["one", "two"], label_column="label")
    before, after = (headviz.evaluate(clf, data) for clf in (whole, small))
    assert (before.predictions != after.predictions).any()
    paired = headviz.paired(before.gold, before.predictions, after.predictions, data.task.metrics[0])
    assert result["change"]["difference"] == pytest.approx(paired.difference)
