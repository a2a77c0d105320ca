"""Remarks about a text: it is cut, or has words or signs that the model does not know."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from ...tasks.tokenizing import alone_with
from .texts import Text

if TYPE_CHECKING:
    from ...models.classifier import Classifier, Encoding

MOST_NAMED = 8
# signs that programs write instead of those on the keyboard, and what to type
STRAIGHT = (("’‘ʼ´`", "a straight '"), ("“”„«»", 'a straight "'), ("–—−", "-"), ("…", "..."))


def about(clf: Classifier, shown: Text) -> list[str]:
    """Remarks about one text or pair."""
    encoding = clf.encode([shown.text], None if shown.pair is None else [shown.pair])[0]
    out = [_cut(clf, shown, encoding)] if encoding.truncated else []
    return [*out, *_unknown(clf, f"{shown.text} {shown.pair or ''}", [encoding])]


def about_many(clf: Classifier, lines: Mapping[int, tuple[str, str]], paired: bool) -> list[str]:
    """Remarks about many texts or pairs, each with the number of its line: which are cut, which words are unknown."""
    texts = list(lines.values())
    encodings = clf.encode([a for a, _ in texts], [b for _, b in texts] if paired else None)
    out = []
    if cut := [str(i) for i, e in zip(lines, encodings, strict=True) if e.truncated]:
        named = ", ".join(cut[:MOST_NAMED]) + (f" and {len(cut) - MOST_NAMED} more" if cut[MOST_NAMED:] else "")
        many = f"Lines {named} are" if len(cut) > 1 else f"Line {cut[0]} is"
        out.append(f"{many} longer than the model's {clf.max_length} tokens; the rest was left out.")
    return [*out, *_unknown(clf, "\n".join(f"{a} {b}" for a, b in texts), encodings)]


def _unknown(clf: Classifier, text: str, encodings: Sequence[Encoding]) -> list[str]:
    # the demo is the one model whose training text is known word by word
    if clf.name == "demo" and (said := _outside(clf, text)):
        return said
    unknown = sum(i == clf.tokenizer.unk_token_id for e in encodings for i in e.ids)
    if not unknown:
        return []
    total = sum(map(len, encodings))
    return [f"{unknown} of {total} tokens are unknown to the model: its answer may mean little."]


def _cut(clf: Classifier, shown: Text, encoding: Encoding) -> str:
    """Which text is cut, and how many of its tokens the model reads."""
    most = f"the model's {clf.max_length} tokens"
    if shown.pair is None:
        return f"The text is longer than {most}; the rest was left out."
    # special tokens stand between the two; token types would not do, RoBERTa gives both texts the same
    runs = [len(list(run)) for special, run in groupby(encoding.special) if not special]
    both = zip(("first", "second"), (shown.text, shown.pair), (*runs, 0, 0), strict=False)
    parts = []
    for name, text, kept in both:
        with alone_with(clf.tokenizer):
            whole = len(clf.tokenizer(text, add_special_tokens=False, truncation=False, verbose=False)["input_ids"])
        if kept < whole:
            parts.append(f"of the {name} text only the first {kept} of its {whole} tokens are read")
    return f"The two texts together are longer than {most}: {' and '.join(parts)}."


def _outside(clf: Classifier, text: str) -> list[str]:
    """Words and signs that the demo was not trained on; its tokeniser splits unknown words into known pieces."""
    for special in clf.tokenizer.all_special_tokens:
        text = text.replace(special, " ")
    # composed, and without the invisible characters that the tokeniser drops: words as a reader sees them
    text = "".join(c for c in unicodedata.normalize("NFC", text) if unicodedata.category(c) != "Cf")
    out = []
    if words := _strange_words(text):
        named = _listed([f"“{w[:30]}”" for w in words], ", ")
        out.append(
            f"The demo model does not know {named}. It knows only simple English, so its answer may mean little."
        )
    known = clf.tokenizer.get_vocab()
    signs = [
        c
        for c in dict.fromkeys(text)
        if not (c.isalnum() or c.isspace() or c in known or unicodedata.category(c) == "Mn")
    ]
    if signs:
        one = len(signs) == 1
        out.append(
            f"The demo model does not know the sign{'' if one else 's'} {_listed(signs, ' ')}, "
            f"and its answer may change with {'it' if one else 'them'}.{_instead(signs)}"
        )
    return out


def _listed(names: Sequence[str], between: str) -> str:
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return between.join(names[:MOST_NAMED]) + more


def _strange_words(text: str) -> list[str]:
    """The words, as typed, that are not in the demo's vocabulary; each once."""
    from ...demo import vocabulary_coverage

    out: dict[str, str] = {}
    for word in re.findall(r"[^\W_]+(?:['’][^\W_]+)*", text):
        plain = "".join(c for c in unicodedata.normalize("NFD", word) if unicodedata.category(c) != "Mn")
        if not re.fullmatch(r"[a-z0-9'’]+", plain.lower()) or vocabulary_coverage(plain).unknown:
            out.setdefault(word.casefold(), word)
    return list(out.values())


def _instead(signs: Sequence[str]) -> str:
    """What to type for signs that have a plain form."""
    parts = []
    for kinds, plain in STRAIGHT:
        if found := [c for c in signs if c in kinds]:
            parts.append(f"{plain} for {' and '.join(found)}")
    return f" Type {', '.join(parts)}." if parts else ""
