"""Saying a sentence in Veshan.

The language in one screen:

- Main clauses: verb, negation, time, subject, recipient, object, place. Subordinate clauses keep this order but
  put the verb, with its negation, last.
- Verb: stem + passive *-eb* + tense (past *u*, present *a*, future *i*, perfect *o*) + agreement with the subject
  (I *m*, we *s*, he or she *l*, they *n*). Infinitive: stem + *-ez*. Pronoun subjects are not said.
- Article: definite *l*, indefinite *t*, then the noun's gender vowel, the case (subject nothing, object *m*,
  recipient and place *s*, owner *v*) and *i* in the plural. Names take the definite one.
- After the noun (plural *-en*): numeral, adjectives (stem + gender vowel, plural *n*), owner, relative clause.
- Relative pronoun: *w* + gender vowel + *m* if it is the object + *i* in the plural. 'And' follows both partners.
- Place: the noun phrase, then the postposition. Comparison: *mu-* + adjective, the other one as an owner.
- Questions begin with *ba*; *ki* is 'that'. Only names have capital letters.
"""

from __future__ import annotations

from .clauses import SUBJECT, Clause, Phrase, Pronoun, Relative, Sentence
from .lexicon import CONJUNCTIONS, NUMERALS, PREPOSITIONS, Adjective, Adverb, Name

CASES = {"subject": "", "object": "m", "recipient": "s", "owner": "v"}
TENSE_VOWELS = {"past": "u", "present": "a", "future": "i", "perfect": "o"}
AGREEMENT = {(1, False): "m", (1, True): "s", (3, False): "l", (3, True): "n"}
PRONOUN_STEMS = {1: "mi", 3: "fa"}
NOT, AND, THAT, QUESTION, BE = "nek", "ke", "ki", "ba", "es"
PLURAL_NOUN, PASSIVE, INFINITIVE, MORE = "en", "eb", "ez", "mu"


def veshan(sentence: Sentence) -> str:
    """The sentence with its stop."""
    words = clause(sentence.main)
    if sentence.question:
        words = [QUESTION, *words]
    if sentence.other is not None:
        if sentence.conjunction == "and":
            words = [*words[:-1], words[-1] + ",", AND, *clause(sentence.other)]
        else:
            joined = [CONJUNCTIONS[str(sentence.conjunction)], *clause(sentence.other, subordinate=True)]
            first, second = (joined, words) if sentence.other_first else (words, joined)
            words = [*first[:-1], first[-1] + ",", *second]
    return " ".join(words) + ("?" if sentence.question else ".")


def article(gender: str, case: str, plural: bool, definite: bool = True) -> str:
    return ("l" if definite else "t") + gender + CASES[case] + ("i" if plural else "")


def agreeing(adjective: Adjective, gender: str, plural: bool) -> str:
    return adjective.stem + gender + ("n" if plural else "")


def conjugated(verb_stem: str, tense: str, subject: Phrase) -> str:
    return verb_stem + TENSE_VOWELS[tense] + AGREEMENT[subject.person, subject.is_plural]


def gender_of(p: Phrase) -> str:
    return "a" if isinstance(p.head, Pronoun) else p.head.gender


def phrase(p: Phrase, case: str) -> list[str]:
    """A noun phrase in one case."""
    if isinstance(p.head, Pronoun):
        # a pronoun subject shows in the verb alone
        words = [] if case == SUBJECT else [PRONOUN_STEMS[p.head.person] + CASES[case] + "i" * p.head.plural]
    elif isinstance(p.head, Name):
        words = [article(p.head.gender, case, False), p.head.name]
    else:
        gender = p.head.gender
        definite = p.definite or p.owner is not None
        words = [article(gender, case, p.plural, definite), p.head.stem + PLURAL_NOUN * p.plural]
        if p.numeral is not None:
            words.append(NUMERALS[p.numeral])
        words += [agreeing(a, gender, p.plural) for a in p.adjectives]
        if p.owner is not None:
            words += phrase(p.owner, "owner")
        if p.relative is not None:
            words += _relative(p, p.relative)
    if p.partner is not None:
        words += [*phrase(p.partner, case), AND]
    return words


def _relative(p: Phrase, r: Relative) -> list[str]:
    case = "subject" if r.role == SUBJECT else "object"
    pronoun = "w" + gender_of(p) + CASES[case] + "i" * p.plural
    if r.role == SUBJECT:
        rest = [] if r.other is None else phrase(r.other, "object")
        return [pronoun, *rest, conjugated(r.verb.stem, r.tense, p)]
    assert r.other is not None
    return [pronoun, *phrase(r.other, "subject"), conjugated(r.verb.stem, r.tense, r.other)]


def clause(c: Clause, subordinate: bool = False) -> list[str]:
    """A clause: verb first, or last if it is subordinate."""
    verb = [conjugated(_stem(c), c.tense, c.subject), *([NOT] if c.negative else [])]
    middle = [*_time(c.time), *phrase(c.subject, "subject")]
    if c.adjective is not None:
        form = agreeing(c.adjective, gender_of(c.subject), c.subject.is_plural)
        middle += [form] if c.than is None else [MORE + form, *phrase(c.than, "owner")]
    elif c.passive:
        middle += [] if c.object is None else phrase(c.object, "recipient")
    else:
        middle += _objects(c)
    if c.place is not None:
        middle += [*phrase(c.place[1], "recipient"), PREPOSITIONS[c.place[0]]]
    after = []
    if c.to_do is not None:
        assert c.to_do.verb is not None
        middle += _objects(c.to_do)
        if c.to_do.place is not None:
            middle += [*phrase(c.to_do.place[1], "recipient"), PREPOSITIONS[c.to_do.place[0]]]
        middle.append(c.to_do.verb.stem + INFINITIVE)
    if c.said is not None:
        after = [THAT, *clause(c.said, subordinate=True)]
    return [*middle, *verb, *after] if subordinate else [*verb, *middle, *after]


def _stem(c: Clause) -> str:
    if c.verb is None:
        return BE
    return c.verb.stem + (PASSIVE if c.passive else "")


def _time(time: Adverb | None) -> list[str]:
    return [] if time is None else [time.veshan]


def _objects(c: Clause) -> list[str]:
    recipient = [] if c.recipient is None else phrase(c.recipient, "recipient")
    thing = [] if c.object is None else phrase(c.object, "object")
    return [*recipient, *thing]
