"""The translation demo's tokenizer: stems and endings apart, every sentence back as it was."""

from pathlib import Path
from typing import Any

import pytest

from tools.demo.translation.corpus import generate
from tools.demo.translation.tokenizer import MAX_TOKENS, build_tokenizer, pieces

PAIRS = list(generate("train", 1400, seed=21))


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return build_tokenizer(tmp_path_factory.mktemp("tokenizer"))


def test_pieces_are_stems_and_endings(tokenizer: Any) -> None:
    assert tokenizer.tokenize("nisul le rebag lomi griten.") == "nis ##ul le rebag lomi grit ##en .".split()
    assert tokenizer.tokenize("fikerkebol") == ["fikerk", "##eb", "##ol"]
    assert tokenizer.tokenize("muruskan") == ["mu", "##rusk", "##an"]
    assert tokenizer.tokenize("The king's girl") == ["The", "king", "'", "s", "girl"]


def test_translations_come_back_as_they_were(tokenizer: Any) -> None:
    for pair in PAIRS:
        ids = tokenizer(pair.target)["input_ids"]
        assert tokenizer.decode(ids, skip_special_tokens=True) == pair.target


def test_no_sentence_is_unknown_or_too_long(tokenizer: Any) -> None:
    for pair in PAIRS:
        for text in (pair.source, pair.target):
            ids = tokenizer(text)["input_ids"]
            assert tokenizer.unk_token_id not in ids
            assert len(ids) < MAX_TOKENS


def test_other_words_fall_into_letters(tokenizer: Any) -> None:
    assert tokenizer.unk_token_id not in tokenizer("Zebras zigzag!")["input_ids"]


def test_the_same_vocabulary_each_time(tokenizer: Any, tmp_path: Path) -> None:
    again = build_tokenizer(tmp_path)
    assert again.get_vocab() == tokenizer.get_vocab() == {p: i for i, p in enumerate(pieces())}
    assert len(pieces()) < 1000
