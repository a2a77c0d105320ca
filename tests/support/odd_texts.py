"""Texts that tokenizers stumble over: accents, scripts, control characters, emoji, very long words, special tokens."""

from __future__ import annotations

import random
import sys

WORDS = (
    "| |\t\n|[MASK]|[SEP] dog|x[CLS]y|[mask]|[UNK]|dog|DOG'S|don’t|don't|naïve|Ångström|ﬁsh|İstanbul|ΟΔΥΣΣΕΥΣ|straße|ẞ|"
    "e\u0301te\u0301|o\u0308\u0323|犬が寝ている|한국어|ไทย|हिन्दी|עברית|العربية|dog犬cat|𠀀𪜀|豈|🐕|👩‍👩‍👧|🇦🇹|☕️|"
    "a\u0000b|a\u200bb|a\u00adb|\ufeffdog|a\ufffdb|a\u0085b|a\u2028b|a\u00a0b|a\u3000b|a\x7fb|\x1b[31m|½|①|Ⅷ|１２|x²|"
    "a_b|$5|a;b|\u037e|«dog»|…|—|\u061d|\u0897|12345|sleeping.|unsleepingness|<b>|\\|\u1e9b\u0323|\ud7a3|\ue000"
).split("|")
WORDS += [100 * "a", 101 * "a", 40 * "dog", 101 * "é", 101 * "犬"]
SPANS = ((0x20, 0x7F), (0, 0x250), (0x300, 0x370), (0x370, 0x600), (0x900, 0x1200), (0x1E00, 0x2100), (0x2000, 0x3100))
SPANS += ((0x3000, 0xA000), (0xA000, 0xD800), (0xE000, 0x10000), (0x10000, sys.maxunicode + 1))


def odd_pairs(count: int, known: list[str], seed: int = 0) -> list[tuple[str, str]]:
    """Pairs of texts, made of odd words, random characters of many scripts, and known words."""
    rng = random.Random(seed)

    def word() -> str:
        draw = rng.random()
        if draw < 0.35:
            return rng.choice(WORDS)
        if draw < 0.6:
            return rng.choice(known).title() if draw < 0.45 else rng.choice(known)
        low, high = rng.choice(SPANS)
        codes = (rng.randrange(low, high) for _ in range(rng.randrange(1, 9)))
        return "".join(rng.choice(known) if rng.random() < 0.2 else chr(c) for c in codes if not 0xD800 <= c <= 0xDFFF)

    def text() -> str:
        return rng.choice((" ", " ", "", "\n")).join(word() for _ in range(rng.choice((0, 1, 3, 8, 20, 60))))

    return [(word, "dog") for word in WORDS] + [(text(), text()) for _ in range(count - len(WORDS))]
