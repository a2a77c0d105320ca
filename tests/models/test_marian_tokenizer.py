"""The hub's Marian models bring two SentencePiece models, which want a package that headviz does not install."""

from __future__ import annotations

import importlib.util
import io
import json
from pathlib import Path

import pytest

import headviz
from headviz import HeadMask, cli
from headviz.errors import ModelError
from headviz.tasks import TASKS, Dataset
from support.tiny_translation import HEADS, ROWS, SOURCES, TARGETS, tiny_seq2seq

DATA = Dataset(TASKS["custom-translation"], "dev", tuple(SOURCES), tuple(TARGETS))


def folder_of(place: Path, source: bytes, target: bytes, vocab: dict[str, int]) -> Path:
    """A folder as the hub's Marian models have it."""
    numbers = {"pad_token_id": vocab["<pad>"], "decoder_start_token_id": vocab["<pad>"], "eos_token_id": 0}
    model = tiny_seq2seq("marian", vocab_size=len(vocab), forced_eos_token_id=None, **numbers)
    model.save_pretrained(place)
    (place / "source.spm").write_bytes(source)
    (place / "target.spm").write_bytes(target)
    (place / "vocab.json").write_text(json.dumps(vocab))
    about = {"source_lang": "en", "target_lang": "de", "tokenizer_class": "MarianTokenizer"}
    (place / "tokenizer_config.json").write_text(json.dumps(about))
    return place


def test_without_the_package_the_command_says_what_to_install(tmp_path, monkeypatch, capsys):
    vocab = {"</s>": 0, "<unk>": 1, "a": 2, "<pad>": 3}
    place = folder_of(tmp_path / "marian", b"x", b"x", vocab)
    if importlib.util.find_spec("sentencepiece") is not None:  # what transformers says where it is not there
        import transformers

        def refuse(*_: object, **__: object) -> None:
            raise ImportError("\nMarianTokenizer requires the SentencePiece library but it was not found.")

        monkeypatch.setattr(transformers.AutoTokenizer, "from_pretrained", refuse)
    with pytest.raises(ModelError, match=r"needs the package sentencepiece, which is not installed"):
        headviz.load(place)
    capsys.readouterr()
    assert cli.main(["info", "--model", str(place)]) == 2
    said = capsys.readouterr().err.strip().splitlines()
    assert len(said) == 1
    assert said[0].endswith("pip install 'headviz[translation]'.")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Recommended. pip install sacremoses")
def test_with_it_such_a_model_is_evaluated_scored_pruned_and_reloaded(tmp_path):
    spm = pytest.importorskip("sentencepiece", reason="the extra 'translation' is not installed")
    trained = []
    for side in (SOURCES, TARGETS):
        made = io.BytesIO()
        spm.SentencePieceTrainer.train(
            sentence_iterator=iter(side * 20), model_writer=made, vocab_size=40, hard_vocab_limit=False, minloglevel=2
        )
        trained.append(made.getvalue())
    read = [spm.SentencePieceProcessor(model_proto=raw) for raw in trained]
    pieces = {p.id_to_piece(i) for p in read for i in range(p.get_piece_size())} - {"<s>", "</s>", "<unk>"}
    vocab = {piece: i for i, piece in enumerate(["</s>", "<unk>", *sorted(pieces), "<pad>"])}
    clf = headviz.load(folder_of(tmp_path / "marian", *trained, vocab), device="cpu")

    assert [clf.tokenizer.decode(e.target, skip_special_tokens=True) for e in clf.encode(SOURCES, TARGETS)] == TARGETS
    mask = HeadMask.full(ROWS, HEADS).without([(0, 1), (3, 2)])
    masked = headviz.evaluate(clf, DATA, mask)
    assert headviz.score_heads(clf, DATA, "taylor", cache=False).values.shape == (ROWS, HEADS)
    headviz.prune(clf, mask).save(tmp_path / "small")
    small = headviz.load(tmp_path / "small", device="cpu")
    assert small.present == mask
    assert headviz.evaluate(small, DATA).translations == masked.translations
