"""Saying a sentence in English."""

from __future__ import annotations

from .clauses import SUBJECT, Clause, Phrase, Pronoun, Sentence
from .lexicon import Name, Verb


def english(sentence: Sentence) -> str:
    """The sentence with its capital letter and its stop."""
    words = clause(sentence.main, sentence.question)
    if sentence.other is not None:
        joined = [str(sentence.conjunction), *clause(sentence.other)]
        if sentence.conjunction == "and":
            words = [*_comma(words), *joined]
        elif sentence.other_first:
            words = [*_comma(joined), *words]
        else:
            words = [*words, *joined]
    text = " ".join(words)
    return text[0].upper() + text[1:] + ("?" if sentence.question else ".")


def _comma(words: list[str]) -> list[str]:
    return [*words[:-1], words[-1] + ","]


def phrase(p: Phrase, role: str = "object") -> list[str]:
    """'the two old dogs that …'; ``role`` chooses between 'he' and 'him'."""
    if isinstance(p.head, Pronoun):
        words = [p.head.subject if role == SUBJECT else p.head.object]
    elif isinstance(p.head, Name):
        words = [p.head.name]
    else:
        words = [a.english for a in p.adjectives] + [p.head.plural if p.plural else p.head.singular]
        if p.numeral is not None:
            words = [p.numeral, *words]
        words = [*_determiner(p, words[0]), *words]
        if p.relative is not None:
            words += _relative(p)
    if p.partner is not None:
        words += ["and", *phrase(p.partner, role)]
    return words


def _determiner(p: Phrase, following: str) -> list[str]:
    if p.owner is not None:
        *words, last = phrase(p.owner)
        return [*words, last + ("'" if p.owner.plural and last.endswith("s") else "'s")]
    if p.definite:
        return ["the"]
    if p.numeral is not None:
        return []
    if p.plural:
        return ["some"]
    return ["an" if following[0] in "aeiou" else "a"]


def _relative(p: Phrase) -> list[str]:
    r = p.relative
    assert r is not None
    if r.role == SUBJECT:
        rest = [] if r.other is None else phrase(r.other)
        return ["that", *verb_group(r.verb, r.tense, p.plural), *rest]
    assert r.other is not None
    return ["that", *phrase(r.other, SUBJECT), *verb_group(r.verb, r.tense, r.other.is_plural, person=r.other.person)]


def clause(c: Clause, question: bool = False) -> list[str]:
    """Subject, verb, objects, place, time; a question puts the auxiliary first."""
    plural, person = c.subject.is_plural, c.subject.person
    subject = phrase(c.subject, SUBJECT)
    if c.adjective is not None:
        group = be(c.tense, plural, person, c.negative)
        rest = [c.adjective.english]
        if c.than is not None:
            rest = [str(c.adjective.comparative), "than", *phrase(c.than)]
    elif c.passive:
        assert c.verb is not None
        group = be(c.tense, plural, person, c.negative)
        rest = [c.verb.participle, *([] if c.object is None else ["by", *phrase(c.object)])]
    else:
        assert c.verb is not None
        group = verb_group(c.verb, c.tense, plural, c.negative, question, person)
        rest = _objects(c)
    if c.place is not None:
        rest += [c.place[0], *phrase(c.place[1])]
    if c.time is not None and not c.time_first:
        rest.append(c.time.english)
    words = [group[0], *subject, *group[1:], *rest] if question else [*subject, *group, *rest]
    return [str(c.time and c.time.english), *words] if c.time_first else words


def _objects(c: Clause) -> list[str]:
    thing = [] if c.object is None else phrase(c.object)
    recipient = [] if c.recipient is None else phrase(c.recipient)
    words = [*thing, "to", *recipient] if c.to_phrase and recipient else [*recipient, *thing]
    if c.said is not None:
        words += ["that", *clause(c.said)]
    if c.to_do is not None:
        assert c.to_do.verb is not None
        words += ["to", c.to_do.verb.base, *_objects(c.to_do)]
        if c.to_do.place is not None:
            words += [c.to_do.place[0], *phrase(c.to_do.place[1])]
    return words


def verb_group(
    verb: Verb, tense: str, plural: bool, negative: bool = False, question: bool = False, person: int = 3
) -> list[str]:
    """The active verb with its auxiliaries, as separate words: 'did not see', 'has seen'."""
    word_not = ["not"] if negative else []
    third = not plural and person == 3
    if tense == "future":
        return ["will", *word_not, verb.base]
    if tense == "perfect":
        return ["has" if third else "have", *word_not, verb.participle]
    if negative or question:
        auxiliary = "did" if tense == "past" else ("does" if third else "do")
        return [auxiliary, *word_not, verb.base]
    if tense == "past":
        return [verb.past]
    return [verb.third if third else verb.base]


def be(tense: str, plural: bool, person: int, negative: bool = False) -> list[str]:
    """The verb 'to be'."""
    word_not = ["not"] if negative else []
    third = not plural and person == 3
    if tense == "future":
        return ["will", *word_not, "be"]
    if tense == "perfect":
        return ["has" if third else "have", *word_not, "been"]
    if tense == "past":
        return ["were" if plural else "was", *word_not]
    return ["is" if third else "am" if not plural else "are", *word_not]
