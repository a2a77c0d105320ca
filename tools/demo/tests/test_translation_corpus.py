"""The translation corpus is right by construction; these tests read it back with rules of their own."""

import re
from collections import Counter
from functools import cache

import pytest

from tools.demo.translation.clauses import HE, OBJECT, SUBJECT, THEY, Clause, Phrase, Relative, Sentence
from tools.demo.translation.corpus import SPLITS, Pair, constructions_of, generate
from tools.demo.translation.drawing import CONSTRUCTIONS
from tools.demo.translation.english import english
from tools.demo.translation.lexicon import (
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
from tools.demo.translation.veshan import veshan

VERBS = (*ALONE, *ON_ANYBODY, *ON_THINGS, *GIVES, *SAYS, *TO_DO)
NOUN = {n.singular: n for n in NOUNS}
VERB = {v.base: v for v in VERBS}
ADJECTIVE = {a.english: a for a in ADJECTIVES}


@cache
def drawn() -> list[Pair]:
    return list(generate("train", 1400, seed=11))


def the(noun: str, plural: bool = False, **more: object) -> Phrase:
    return Phrase(NOUN[noun], plural, **more)  # type: ignore[arg-type]


HAND = [
    (
        Sentence(Clause(the("teacher"), "past", VERB["see"], the("dog", True))),
        "The teacher saw the dogs.",
        "nisul le rebag lomi griten.",
    ),
    (
        Sentence(
            Clause(the("cat"), "future", VERB["chase"], the("mouse", adjectives=(ADJECTIVE["small"],))), question=True
        ),
        "Will the cat chase the small mouse?",
        "ba pudil lo tegen lam klemub greka?",
    ),
    (Sentence(Clause(Phrase(THEY), "present", VERB["sleep"], negative=True)), "They do not sleep.", "nusegan nek."),
    (
        Sentence(Clause(the("book"), "perfect", VERB["steal"], the("king", definite=False), passive=True)),
        "The book has been stolen by a king.",
        "fikerkebol le sorolt tos klimor.",
    ),
    (
        Sentence(Clause(Phrase(NAMES[0]), "past", VERB["give"], the("apple"), Phrase(HE), to_phrase=True)),
        "Maria gave the apple to him.",
        "zomul la Maria fas lam plem.",
    ),
    (
        Sentence(
            Clause(
                the("dog", relative=Relative(OBJECT, VERB["find"], "past", the("boy", True))), "past", VERB["sleep"]
            ),
            conjunction="because",
            other=Clause(Phrase(HE), "past", VERB["help"], the("girl", owner=the("king"))),
            other_first=True,
        ),
        "Because he helped the king's girl, the dog that the boys found slept.",
        "dolt lem zap lov klimor vladezul, nusegul lo grit wom lei stazirken marun.",
    ),
    (
        Sentence(
            Clause(
                the("woman", True, relative=Relative(SUBJECT, VERB["draw"], "present", the("map"))),
                "past",
                adjective=ADJECTIVE["old"],
                than=the("tower"),
            )
        ),
        "The women that draw the map were older than the tower.",
        "esun lai stoten wai lem sag plikan muruskan lav brad.",
    ),
]


@pytest.mark.parametrize(("sentence", "source", "target"), HAND, ids=lambda v: v if isinstance(v, str) else "")
def test_sentences_translated_by_hand(sentence: Sentence, source: str, target: str) -> None:
    assert (english(sentence), veshan(sentence)) == (source, target)


def test_every_word_of_the_lexicon_is_its_own() -> None:
    stems = [*(n.stem for n in NOUNS), *(a.stem for a in ADJECTIVES), *(v.stem for v in VERBS)]
    stems += [*PREPOSITIONS.values(), *CONJUNCTIONS.values(), *NUMERALS.values(), *(a.veshan for a in ADVERBS)]
    assert len(set(stems)) == len(stems)
    forms = [w for n in NOUNS for w in (n.singular, n.plural)] + [a.english for a in ADJECTIVES]
    forms += [w for v in VERBS for w in {v.base, v.third, v.past, v.participle}]
    assert len(set(forms)) == len(forms)


@cache
def dictionary() -> dict[str, str]:
    """The stem of every English word, written out."""
    entry = {w: n.stem for n in NOUNS for w in (n.singular, n.plural)}
    entry |= {w: v.stem for v in VERBS for w in (v.base, v.third, v.past, v.participle)}
    entry |= {w: a.stem for a in ADJECTIVES for w in (a.english, a.comparative) if w}
    entry |= {a.english: a.veshan for a in ADVERBS} | PREPOSITIONS | CONJUNCTIONS | NUMERALS
    return entry | {n.name.lower(): n.name for n in NAMES}


def english_stems(source: str) -> Counter[str]:
    """The stems that a word-by-word dictionary finds in an English sentence."""
    entry = dictionary()
    words = re.findall(r"[a-z]+", source.lower().replace("'s", ""))
    return Counter(entry[w] for w in words if w in entry)


def veshan_forms() -> dict[str, str]:
    """Every form of every content word, written out."""
    forms = {n.stem + end: n.stem for n in NOUNS for end in ("", "en")} | {n.name: n.name for n in NAMES}
    forms |= {w: w for w in (*PREPOSITIONS.values(), *CONJUNCTIONS.values(), *NUMERALS.values())}
    forms |= {a.veshan: a.veshan for a in ADVERBS}
    ends = [voice + tense + who for voice in ("", "eb") for tense in "uaio" for who in "mlsn"]
    forms |= {v.stem + end: v.stem for v in VERBS for end in (*ends, "ez")}
    forms |= {
        more + a.stem + gender + end: a.stem
        for a in ADJECTIVES
        for more in ("", "mu")
        for gender in "aeo"
        for end in ("", "n")
    }
    return forms


FORMS = veshan_forms()
FUNCTION_WORDS = re.compile(r"[lt][aeo][msv]?i?|w[aeo]m?i?|(mi|fa)[msv]i?|nek|ke|ki|ba|es[uaio][mlsn]")


def veshan_stems(target: str) -> Counter[str]:
    """The stems of the content words; a word that is neither known nor grammatical fails."""
    words = re.findall(r"\w+", target)
    strange = [w for w in words if w not in FORMS and not FUNCTION_WORDS.fullmatch(w)]
    assert not strange, (strange, target)
    return Counter(FORMS[w] for w in words if w in FORMS)


def test_both_sides_say_the_same_words() -> None:
    for pair in drawn():
        assert english_stems(pair.source) == veshan_stems(pair.target), pair


def test_articles_and_adjectives_agree_with_their_noun() -> None:
    gender = {n.stem: n.gender for n in NOUNS} | {n.stem + "en": n.gender for n in NOUNS}
    gender |= {n.name: n.gender for n in NAMES}
    plurals = {n.stem + "en" for n in NOUNS}
    adjectives = {a.stem: a for a in ADJECTIVES}
    checked = 0
    for pair in drawn():
        words = re.findall(r"\w+", pair.target)
        for i, word in enumerate(words):
            if word not in gender:
                continue
            article = re.fullmatch(r"[lt]([aeo])[msv]?(i?)", words[i - 1])
            assert article is not None, pair
            assert article[1] == gender[word], pair
            assert bool(article[2]) == (word in plurals), pair
            after = i + 1
            if words[after : after + 1] and words[after] in NUMERALS.values():
                after += 1
            while after < len(words) and (form := re.fullmatch(r"(\w+?)([aeo])(n?)", words[after])):
                if form[1] not in adjectives:
                    break
                assert (form[2], bool(form[3])) == (gender[word], word in plurals), pair
                after += 1
                checked += 1
    assert checked > 250


def test_the_verb_opens_main_clauses_and_closes_subordinate_ones() -> None:
    finite = re.compile(r"(" + "|".join([*(v.stem for v in VERBS), "es"]) + r")(eb)?[uaio][mlsn]")
    for pair in drawn():
        words = re.findall(r"\w+|[,.?]", pair.target)
        start = words[1] if pair.construction == "question" else words[0]
        if words[0] not in CONJUNCTIONS.values():
            assert finite.fullmatch(start), pair
        if pair.construction in ("subordinate", "reported"):
            marks = [i for i, w in enumerate(words) if w in CONJUNCTIONS.values() or w == "ki"]
            end = next(i for i in range(marks[0], len(words)) if words[i] in ",.")
            assert finite.fullmatch(words[end - 1]), pair


@pytest.mark.slow
def test_an_english_sentence_has_one_translation() -> None:
    seen: dict[str, str] = {}
    for pair in [*generate("train", 10_000, seed=1), *drawn()]:
        assert seen.setdefault(pair.source, pair.target) == pair.target


def test_sentences_look_like_sentences() -> None:
    for pair in drawn():
        assert re.fullmatch(r"[A-Z][A-Za-z', ]*[.?]", pair.source), pair
        assert re.fullmatch(r"[a-zA-Z, ]*[.?]", pair.target), pair
        assert "  " not in pair.source + pair.target
        assert not re.search(r"\ba [aeiou]|\ban [^aeiou]", pair.source.lower()), pair


@pytest.mark.slow
def test_splits_never_meet_and_are_drawn_alike_each_time() -> None:
    by_split = {split: list(generate(split, 700, seed=3)) for split in SPLITS}
    assert {s: list(generate(s, 700, seed=3)) for s in SPLITS} == by_split
    sources = {split: {p.source for p in pairs} for split, pairs in by_split.items()}
    assert not sources["train"] & sources["dev"]
    assert not (sources["train"] | sources["dev"]) & sources["unseen"]
    assert len(sources["dev"]) == len(sources["unseen"]) == 700
    assert by_split["train"] != list(generate("train", 700, seed=4))


@pytest.mark.parametrize("split", SPLITS)
def test_constructions_are_balanced(split: str) -> None:
    names = constructions_of(split)
    counts = Counter(p.construction for p in generate(split, 5 * len(names) + 3))
    assert set(counts) == set(names)
    assert set(counts.values()) <= {5, 6}


def test_constructions() -> None:
    assert set(constructions_of("train")) == set(constructions_of("dev")) == set(CONSTRUCTIONS)
    assert len(constructions_of("unseen")) >= 10


def test_an_unknown_split_is_refused() -> None:
    with pytest.raises(ValueError, match="train, dev, unseen"):
        next(generate("test", 1))
