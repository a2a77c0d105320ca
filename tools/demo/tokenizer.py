"""The demo model's tokenizer: whole words of the corpus, and letters for all others."""

import re
from pathlib import Path

SPECIALS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
_PUNCTUATION = tuple(".,?!'\"-:;()")
_LETTERS = tuple("abcdefghijklmnopqrstuvwxyz0123456789")
_ENDINGS = tuple("s es d ed ing er est ly y n t r ness ful less th st en al ion".split())
_WORD = re.compile(r"[a-z]+|[0-9]+")


def corpus_words(pairs: int = 400_000) -> list[str]:
    """Every word that the corpus uses, most frequent first (ties by alphabet)."""
    from collections import Counter

    from .corpus import generate

    counts: Counter[str] = Counter()
    for example in generate("train", pairs, seed=0):
        counts.update(_WORD.findall(example.premise.lower()))
        counts.update(_WORD.findall(example.hypothesis.lower()))
    return sorted(counts, key=lambda word: (-counts[word], word))


def build_vocabulary() -> list[str]:
    """The WordPiece vocabulary: specials, punctuation, single letters, endings, then the corpus words."""
    pieces = [*_LETTERS, *(f"##{piece}" for piece in dict.fromkeys((*_LETTERS, *_ENDINGS)))]
    return list(dict.fromkeys([*SPECIALS, *_PUNCTUATION, *pieces, *corpus_words()]))


def build_tokenizer(vocabulary: list[str], folder: Path) -> None:
    """Write the tokenizer's files (transformers' own format) into a folder."""
    from transformers import BertTokenizer

    tokenizer = BertTokenizer(
        vocab={piece: number for number, piece in enumerate(vocabulary)}, do_lower_case=True, model_max_length=64
    )
    tokenizer.save_pretrained(folder)
