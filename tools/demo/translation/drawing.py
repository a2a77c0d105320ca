"""Drawing sentences: one short rule per construction, all choices from one random generator.

The rules leave out what English would leave open: a relative clause carries no place or time of its own, a clause
that ends in another one has its time in front and no place, and no name or noun is used twice. So every English
sentence has exactly one Veshan translation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any, NamedTuple

from .clauses import OBJECT, PRONOUNS, SUBJECT, Clause, Phrase, Relative, Sentence
from .lexicon import (
    ADJECTIVES,
    ADVERBS,
    ALONE,
    ANIMAL,
    CONJUNCTIONS,
    GIVES,
    NAMES,
    NOUNS,
    NUMERALS,
    ON_ANYBODY,
    ON_THINGS,
    PERSON,
    PLACE,
    PREPOSITIONS,
    SAYS,
    THING,
    TO_DO,
    Adjective,
    Noun,
    Verb,
)

LIVING = (PERSON, ANIMAL)
# the past is the usual tense
USUAL_TENSES = ("past", "past", "past", "present", "future", "perfect")
FOR_THINGS = tuple(a for a in ADJECTIVES if not a.only_living)


def is_thing(p: Phrase) -> bool:
    return isinstance(p.head, Noun) and p.head.kind not in LIVING


class Draft(NamedTuple):
    """A sentence and the word that its construction turns on."""

    sentence: Sentence
    word: str


class Draw:
    """Random words and phrases of one sentence, none twice."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.used: set[str] = set()

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    def tense(self) -> str:
        return self.rng.choice(USUAL_TENSES)

    def bare(self, *kinds: str) -> Phrase:
        """An article and a noun that was not used yet."""
        while True:
            noun = self.rng.choice(NOUNS)
            if noun.kind in kinds and noun.singular not in self.used:
                self.used.add(noun.singular)
                return Phrase(noun, plural=self.chance(0.35), definite=self.chance(0.7))

    def noun(self, *kinds: str) -> Phrase:
        """A noun, often with an adjective or a numeral."""
        p = self.bare(*kinds)
        if p.plural and self.chance(0.3):
            p = replace(p, numeral=self.rng.choice(list(NUMERALS)))
        if self.chance(0.4):
            count = 2 if self.chance(0.2) else 1
            p = replace(p, adjectives=tuple(self.rng.sample(FOR_THINGS if is_thing(p) else ADJECTIVES, count)))
        return p

    def owned(self, *kinds: str) -> Phrase:
        """A noun and its owner."""
        owner = self.person(pronouns=0)
        owner = replace(owner, numeral=None)
        return replace(self.noun(*kinds), owner=owner, numeral=None)

    def person(self, pronouns: float = 0.2, names: float = 0.2) -> Phrase:
        """Somebody: a pronoun, a name, or a noun."""
        free = [p for p in PRONOUNS if p.subject not in self.used]
        if free and self.chance(pronouns):
            pronoun = self.rng.choice(free)
            self.used.add(pronoun.subject)
            return Phrase(pronoun)
        if self.chance(names):
            name = self.rng.choice([n for n in NAMES if n.name not in self.used])
            self.used.add(name.name)
            return Phrase(name)
        return self.noun(*LIVING)

    def act(self, subject: Phrase, tense: str, verb: Verb | None = None) -> Clause:
        """Somebody does something, to somebody, or to a thing."""
        if verb is None:
            verb = self.rng.choice((*ALONE, *ON_ANYBODY, *ON_THINGS))
        thing = None
        if verb in ON_THINGS:
            thing = self.noun(THING)
        elif verb in ON_ANYBODY:
            thing = self.person() if self.chance(0.7) else self.noun(THING)
        return Clause(subject, tense, verb, thing)

    def setting(self, c: Clause, place: float = 0.3, time: float = 0.35) -> Clause:
        """Perhaps a place and a time."""
        if self.chance(place):
            c = replace(c, place=(self.rng.choice(list(PREPOSITIONS)), self.noun(PLACE)))
        if self.chance(time):
            fitting = [a for a in ADVERBS if c.tense in a.tenses]
            if fitting:
                c = replace(c, time=self.rng.choice(fitting), time_first=self.chance(0.4))
        return c

    def simple(self) -> Clause:
        """A clause of the simplest kind, for use in larger ones."""
        return self.act(self.person(), self.tense())

    def time_in_front(self, c: Clause) -> Clause:
        c = self.setting(c, place=0)
        return replace(c, time_first=c.time is not None)


def plain(d: Draw, word: Verb) -> Sentence:
    return Sentence(d.setting(d.act(d.person(), d.tense(), word)))


def possession(d: Draw, word: Verb) -> Sentence:
    if word in ALONE or d.chance(0.4):
        return Sentence(d.setting(d.act(d.owned(*LIVING), d.tense(), word)))
    c = d.act(d.person(), d.tense(), word)
    kinds = (THING,) if word in ON_THINGS else LIVING
    return Sentence(d.setting(replace(c, object=d.owned(*kinds))))


def recipient(d: Draw, word: Verb) -> Sentence:
    c = Clause(d.person(), d.tense(), word, d.noun(THING), d.person(), to_phrase=d.chance(0.5))
    return Sentence(d.setting(c, place=0))


def passive(d: Draw, word: Verb) -> Sentence:
    subject = d.noun(THING) if word in ON_THINGS else d.person()
    agent = d.person() if d.chance(0.75) else None
    return Sentence(d.setting(Clause(subject, d.tense(), word, agent, passive=True)))


def _described(d: Draw, relative: Relative, thing: bool) -> Sentence:
    p = replace(d.bare(THING) if thing else d.noun(*LIVING), relative=relative)
    if thing:
        return Sentence(d.setting(Clause(d.person(), d.tense(), d.rng.choice(ON_THINGS), p)))
    if d.chance(0.5):
        return Sentence(d.setting(d.act(p, d.tense())))
    return Sentence(d.setting(Clause(d.person(), d.tense(), d.rng.choice(ON_ANYBODY), p)))


def subject_relative(d: Draw, word: Verb) -> Sentence:
    other = d.act(d.bare(*LIVING), "past", word).object
    return _described(d, Relative(SUBJECT, word, d.tense(), other), thing=False)


def object_relative(d: Draw, word: Verb) -> Sentence:
    return _described(d, Relative(OBJECT, word, d.tense(), d.person()), thing=word in ON_THINGS)


def subordinate(d: Draw, word: Verb) -> Sentence:
    main = d.setting(d.act(d.person(), d.tense(), word), place=0.15, time=0.2)
    other = d.setting(d.simple(), place=0.15, time=0.2)
    conjunction = d.rng.choice(list(CONJUNCTIONS))
    other = replace(other, time_first=False)
    return Sentence(main, conjunction=conjunction, other=other, other_first=d.chance(0.45))


def joined(d: Draw, word: Verb) -> Sentence:
    main = d.setting(d.act(d.person(), d.tense(), word), place=0.15, time=0.2)
    return Sentence(main, conjunction="and", other=d.setting(d.simple(), place=0.15, time=0.2))


def reported(d: Draw, word: Verb) -> Sentence:
    said = replace(d.setting(d.simple(), place=0.25, time=0.25), time_first=False)
    return Sentence(d.time_in_front(Clause(d.person(), d.tense(), word, said=said)))


def infinitive(d: Draw, word: Verb) -> Sentence:
    subject = d.person()
    to_do = d.setting(d.act(subject, "past"), time=0)
    return Sentence(d.setting(Clause(subject, d.tense(), word, to_do=to_do), place=0))


def comparison(d: Draw, word: Adjective) -> Sentence:
    comparable = word.comparative is not None and d.chance(0.6)
    subject = d.person() if word.only_living or d.chance(0.7) else d.bare(THING)
    than = d.noun(THING if is_thing(subject) else PERSON) if comparable else None
    return Sentence(
        d.setting(Clause(subject, d.tense(), adjective=word, than=than, negative=d.chance(0.15)), place=0, time=0.2)
    )


def coordination(d: Draw, word: Verb) -> Sentence:
    pair = replace(d.person(pronouns=0), partner=d.person(pronouns=0))
    if word in ALONE or d.chance(0.5):
        return Sentence(d.setting(d.act(pair, d.tense(), word)))
    if word in ON_THINGS:
        pair = replace(d.noun(THING), partner=d.noun(THING))
    return Sentence(d.setting(Clause(d.person(), d.tense(), word, pair)))


def question(d: Draw, word: Verb) -> Sentence:
    c = d.setting(d.act(d.person(), d.tense(), word))
    return Sentence(replace(c, time_first=False, negative=False), question=True)


def negation(d: Draw, word: Verb) -> Sentence:
    return Sentence(d.setting(replace(d.act(d.person(), d.tense(), word), negative=True)))


Word = Verb | Adjective

_ACTS = (*ALONE, *ON_ANYBODY, *ON_THINGS)
_ON = (*ON_ANYBODY, *ON_THINGS)
_PASSIVE = tuple(v for v in _ON if v.base not in ("want", "know"))

# construction -> its rule and the words that it may turn on
CONSTRUCTIONS: dict[str, tuple[Callable[[Draw, Any], Sentence], tuple[Word, ...]]] = {
    "plain": (plain, _ACTS),
    "possession": (possession, _ACTS),
    "recipient": (recipient, GIVES),
    "passive": (passive, _PASSIVE),
    "subject-relative": (subject_relative, _ACTS),
    "object-relative": (object_relative, _ON),
    "subordinate": (subordinate, _ACTS),
    "joined": (joined, _ACTS),
    "reported": (reported, SAYS),
    "infinitive": (infinitive, TO_DO),
    "comparison": (comparison, ADJECTIVES),
    "coordination": (coordination, _ACTS),
    "question": (question, _ACTS),
    "negation": (negation, _ACTS),
}


def name_of(word: Word) -> str:
    """The English word that stands for it."""
    return word.english if isinstance(word, Adjective) else word.base


def draw(construction: str, rng: Random) -> Draft:
    """One sentence of a construction."""
    rule, words = CONSTRUCTIONS[construction]
    word = rng.choice(words)
    sentence = rule(Draw(rng), word)
    return Draft(sentence, name_of(word))
