"""The translation demo's tokenizer: English words whole, Veshan words as stem and endings, letters for all else.

The pieces follow from the lexicon, so there is nothing to train and the same tokenizer comes out each time.
"""

from __future__ import annotations

import string
from pathlib import Path
from typing import Any

from .clauses import PRONOUNS
from .lexicon import (
    ADJECTIVES,
    ADVERBS,
    ALONE,
    CONJUNCTIONS,
    GIVES,
    NAMES,
    NOUNS,
    NUMERALS,
    ON_ANYBODY,
    ON_THINGS,
    PREPOSITIONS,
    SAYS,
    TO_DO,
)
from .veshan import (
    AGREEMENT,
    AND,
    BE,
    CASES,
    INFINITIVE,
    MORE,
    NOT,
    PASSIVE,
    PLURAL_NOUN,
    PRONOUN_STEMS,
    QUESTION,
    TENSE_VOWELS,
    THAT,
)

PAD, END, UNKNOWN = SPECIALS = ("<pad>", "</s>", "<unk>")
MAX_TOKENS = 64
VERBS = (*ALONE, *ON_ANYBODY, *ON_THINGS, *GIVES, *SAYS, *TO_DO)
# English words of the grammar, and those that can open a sentence
AUXILIARIES = "am is are was were be been do does did has have will".split()
GRAMMAR = "a an the some that by to than and not s".split()
OPENING = ("A", "An", "The", "Some", *(word.capitalize() for word in AUXILIARIES))


def pieces() -> list[str]:
    """The whole vocabulary in a fixed order."""
    english = [*GRAMMAR, *AUXILIARIES, *OPENING]
    english += [word for p in PRONOUNS for word in (p.subject, p.subject.capitalize(), p.object)]
    for word in (*(a.english for a in ADVERBS), *CONJUNCTIONS, *NUMERALS):
        english += [word, word.capitalize()]
    english += [word for n in NOUNS for word in (n.singular, n.plural)]
    english += [word for a in ADJECTIVES for word in (a.english, a.comparative) if word]
    english += [word for v in VERBS for word in (v.base, v.third, v.past, v.participle)]
    english += [*PREPOSITIONS, *(n.name for n in NAMES)]
    veshan = [NOT, AND, THAT, QUESTION, BE, MORE]
    for case in CASES.values():
        for number in ("", "i"):
            veshan += [kind + gender + case + number for kind in "lt" for gender in "aeo"]
            veshan += [stem + case + number for stem in PRONOUN_STEMS.values() if case]
    veshan += ["w" + gender + case + number for gender in "aeo" for case in ("", "m") for number in ("", "i")]
    veshan += [*(n.stem for n in NOUNS), *(a.stem for a in ADJECTIVES), *(v.stem for v in VERBS)]
    veshan += [*PREPOSITIONS.values(), *CONJUNCTIONS.values(), *NUMERALS.values(), *(a.veshan for a in ADVERBS)]
    endings = [PLURAL_NOUN, PASSIVE, INFINITIVE]
    endings += [tense + who for tense in TENSE_VOWELS.values() for who in AGREEMENT.values()]
    endings += [gender + number for gender in "aeo" for number in ("", "n")]
    endings += [a.stem for a in ADJECTIVES if a.comparative]  # behind 'more'
    letters = [*string.ascii_letters, *string.digits, *".,?'!;:-"]
    ordered = [*SPECIALS, *letters, *(f"##{c}" for c in (*string.ascii_letters, *string.digits))]
    ordered += [*english, *veshan, *(f"##{e}" for e in endings)]
    return list(dict.fromkeys(ordered))


def build_tokenizer(folder: Path) -> Any:
    """Make the tokenizer and write it into a folder."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    vocabulary = {piece: i for i, piece in enumerate(pieces())}
    backend = Tokenizer(models.WordPiece(vocabulary, unk_token=UNKNOWN))
    backend.normalizer = normalizers.NFC()
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.decoder = decoders.WordPiece(cleanup=True)
    backend.post_processor = processors.TemplateProcessing(single=f"$A {END}", special_tokens=[(END, vocabulary[END])])
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend, pad_token=PAD, eos_token=END, unk_token=UNKNOWN, model_max_length=MAX_TOKENS
    )
    tokenizer.save_pretrained(folder)
    return tokenizer
