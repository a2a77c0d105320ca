"""Short sentences that turn on what two words mean: synonyms, kinds, opposites."""

from collections.abc import Callable
from random import Random

from ...example import CONTRADICTION, ENTAILMENT, NEUTRAL, Draft
from ...grammar import be, fitting, predicate, sentence
from ...words import nouns
from ...words.adjectives import BEARERS
from ...words.verbs import HANDLE_VERBS, LOOK_VERBS, Act, Verb, verb
from .. import lexical
from .subjects import ANIMALS, ARTICLES, Subject, a_tense, described, doings, named, subjects, with_article


def _bearer(rng: Random, bearer: str) -> Subject:
    """Somebody or something that an adjective is said of."""
    if bearer == "person":
        return subjects(rng, 1, animals=0.0)[0]
    noun = rng.choice(BEARERS[bearer])
    countable = bearer in ("object", "door") or noun in ("room", "street", "village", "hotel", "garden", "film")
    return with_article(rng.choice(ARTICLES) if countable else "the", noun)


def _is(who: Subject, adjectives: str, tense: str, negative: bool) -> str:
    return f"{who.text} {be(tense, who.plural, negative)} {adjectives}"


def synonym(rng: Random, label: str) -> Draft:
    """'The child is crying.' / 'The child is weeping.'; 'A robber ran.' / 'A thief ran.'"""
    negative = rng.random() < 0.35
    premise_negative = negative == (label != CONTRADICTION)
    if label == NEUTRAL:
        premise_negative = rng.random() < 0.35
    kind = rng.randrange(3)
    if kind == 0:
        bearer, word, partner = rng.choice(lexical._ADJECTIVE_SYNONYMS)
        who, tense = _bearer(rng, bearer), rng.choice(("present", "present", "past"))
        if label == NEUTRAL:
            partner = lexical._unrelated(rng, bearer, word)
        premise, hypothesis = _is(who, partner, tense, premise_negative), _is(who, word, tense, negative)
        frame = f"adjective {tense}"
    elif kind == 1:
        said, meant = rng.choice(lexical._VERB_SYNONYMS)
        if label == NEUTRAL:
            meant = lexical._other_act(rng, said)
        word, tense = said.verb.base, a_tense(rng, said.verb, meant.verb)
        who = subjects(rng, 1, animals=0.0)[0]
        premise, hypothesis = who.does(meant, tense, premise_negative), who.does(said, tense, negative)
        frame = f"verb {tense}"
    else:
        _, word, partner = rng.choice([row for row in lexical._NOUN_SYNONYMS if row[0] == "person"])
        if label == NEUTRAL:
            partner = rng.choice(nouns.PEOPLE)
            while partner in lexical._SAME_NOUN[word] or lexical._NOUN_KIN.get(partner) == word:
                partner = rng.choice(nouns.PEOPLE)
        article, act = rng.choice(ARTICLES), doings(rng, 1)[0]
        tense = a_tense(rng, act.verb)
        premise = with_article(article, partner).does(act, tense, premise_negative)
        hypothesis = with_article(article, word).does(act, tense, negative)
        frame = f"noun {tense}"
    return Draft(sentence(premise), sentence(hypothesis), f"short {frame}", word)


# What is done with things of a kind, besides looking at them and handling them.
_USES = {
    entry.split(":")[0]: tuple(verb(base) for base in entry.split(":")[1].split())
    for entry in (
        "instrument: play|vehicle: drive repair|boat: repair paint|fruit: eat|vegetable: eat cook|fish: eat catch|"
        "hat: wear|shoe: wear polish|weapon: carry|tool: carry|toy: carry|book: read write|bird: feed hunt|"
        "dog: feed wash|flower: water|tree: climb cut|container: carry fill|building: visit build|seat: carry move|"
        "jewel: wear|animal: hunt hear"
    ).split("|")
}


def _family(rng: Random, living: bool) -> tuple[str, str, str, str]:
    """(a kind, one of its members, another member, a noun that has nothing to do with them)."""
    kinds = [k for k in nouns.KINDS if not living or nouns.ABOVE_KINDS.get(k) == "animal"]
    if rng.random() < (0.4 if living else 0.1):
        kind, (member, sister) = "animal", rng.sample(ANIMALS, 2)
    else:
        kind = rng.choice(kinds)
        member, sister = rng.sample(nouns.KINDS[kind], 2)
        if kind in nouns.ABOVE_KINDS and rng.random() < 0.35:
            if rng.random() < 0.5:
                member, sister = kind, rng.choice([animal for animal in ANIMALS if animal != kind])
            kind = nouns.ABOVE_KINDS[kind]
    if living:
        stranger = rng.choice(nouns.PEOPLE)
    else:
        own = {kind} | ({"vehicle", "boat"} if kind in ("vehicle", "boat") else set())
        others = [k for k in nouns.KINDS if k not in own and nouns.ABOVE_KINDS.get(k) != kind]
        stranger = rng.choice(nouns.KINDS[rng.choice(others)])
        while stranger in (member, sister):
            stranger = rng.choice(nouns.KINDS[rng.choice(others)])
    return kind, member, sister, stranger


def hypernym(rng: Random, label: str) -> Draft:
    """'A dog sleeps.' / 'An animal sleeps.'; 'The man is playing a guitar.' / 'The man is playing an instrument.'"""
    as_subject = rng.random() < 0.5
    kind, member, sister, stranger = _family(rng, as_subject)
    article = rng.choice(ARTICLES if as_subject else ("a", "a", ""))
    if as_subject:
        act = doings(rng, 1, animal=True)[0]
        tense = a_tense(rng, act.verb)
        say, verb_name = _subject_sayer(rng, article, act, tense), act.verb.base
    else:
        pool = _USES.get(kind, ()) if rng.random() < 0.5 else ()
        doing = rng.choice(pool or LOOK_VERBS + (() if kind in nouns.BIG_KINDS else HANDLE_VERBS))
        tense = a_tense(rng, doing)
        say, verb_name = _object_sayer(rng, article, doing, tense), doing.base
    negative = rng.random() < 0.4 and not (as_subject and article == "the")
    general = rng.random() < 0.5
    said = kind if general else member
    if label == ENTAILMENT and negative:
        general, said = False, member
    if label == CONTRADICTION:
        noun = member if negative else rng.choice((kind, said))
        premise = say(noun, not negative)
        if as_subject and article == "the":
            premise = say(rng.choice((member, said)), True)
    elif label == NEUTRAL:
        follows = (kind, False) if not general else (member, True)
        premise = say(*rng.choice((follows, (sister, negative), (stranger, negative))))
        if general:
            premise = say(*rng.choice((follows, (stranger, negative))))
        if general and as_subject and article == "the":
            premise = say(stranger, rng.random() < 0.3)
    elif negative:
        premise = say(kind, True)
    elif general:
        premise = say(member, False)
    else:
        premise = say(member, False, True)
    frame = f"short {as_subject} {article} {general} {negative} {tense}"
    return Draft(sentence(premise), sentence(say(said, negative)), frame, f"{member} {verb_name}")


_Say = Callable[..., str]


def _subject_sayer(rng: Random, article: str, act: Act, tense: str) -> _Say:
    """Says of a noun that it does something; denied: 'no dogs sleep', or 'the dog does not sleep'."""

    def say(noun: str, denied: bool, longer: bool = False) -> str:
        who = with_article(article, noun, True)
        if longer:
            who = described(rng, who) or who
        if denied and article != "the":
            return f"no {nouns.plural(noun)} {predicate(act, tense, plural=True)}"
        return who.does(act, tense, denied)

    return say


def _object_sayer(rng: Random, article: str, doing: Verb, tense: str) -> _Say:
    """Says that somebody does something to a noun; denied: 'does not see a dog', 'sees no dogs'."""
    who = subjects(rng, 1, animals=0.0)[0]
    no = rng.random() < 0.3

    def say(noun: str, denied: bool, longer: bool = False) -> str:
        thing = named(article, noun)
        if denied and no:
            return f"{who.group(doing, tense)} no {nouns.plural(noun)}"
        if denied and not article:
            thing = f"any {thing}"
        if longer:
            colour = rng.choice(("red", "white", "old", "big", "small", "black"))
            thing = f"{article} {colour} {noun}" if article else f"{colour} {thing}"
        return f"{who.group(doing, tense, denied)} {thing}"

    return say


def antonym(rng: Random, label: str) -> Draft:
    """'The soup is hot.' / 'The soup is cold.'; 'She is opening the box.' / 'She is closing the box.'"""
    negative = rng.random() < 0.45
    holds = (label == ENTAILMENT) != negative
    if rng.random() < 0.4:
        said, opposite = rng.choice(lexical._VERB_OPPOSITES)
        act, denied = (said if holds else opposite), False
        if label == NEUTRAL:
            act, denied = (
                (opposite, True) if rng.random() < 0.3 else (lexical._other_act(rng, said), rng.random() < 0.3)
            )
        tense = a_tense(rng, said.verb, opposite.verb, act.verb)
        who = subjects(rng, 1, animals=0.0)[0]
        if act == said:
            # the hypothesis itself would say nothing about opposites: a second act stands beside it
            second = doings(rng, 1)[0]
            while second.verb.base in (said.verb.base, opposite.verb.base, "leave", "arrive", "stay", "win", "escape"):
                second = doings(rng, 1)[0]
            tense = fitting(tense, second.verb)
            also = predicate(second, tense, plural=who.plural)
            if tense in ("ongoing", "progressive"):
                also = also.split(" ", 1)[1]  # the auxiliary is said once
            premise = f"{who.does(act, tense)} and {also}"
        else:
            premise = who.does(act, tense, denied)
        hypothesis = who.does(said, tense, negative)
        return Draft(sentence(premise), sentence(hypothesis), f"short verb {negative} {denied} {tense}", said.verb.base)
    strict = rng.random() < 0.35
    bearer, word, other = rng.choice(lexical._STRICT if strict else lexical._SCALAR)
    who, tense = _bearer(rng, bearer), rng.choice(("present", "present", "past"))
    extra = lexical._unrelated(rng, bearer, word, other)
    if label == NEUTRAL:
        text, denied = (other, True) if not strict and rng.random() < 0.4 else (extra, rng.random() < 0.3)
    elif not holds:
        text, denied = other, False
    elif strict:
        text, denied = other, True
    else:
        text, denied = rng.choice((f"{word} and {extra}", f"{extra} and {word}")), False
    return Draft(
        sentence(_is(who, text, tense, denied)),
        sentence(_is(who, word, tense, negative)),
        f"short adjective {negative} {denied} {tense}",
        word,
    )
