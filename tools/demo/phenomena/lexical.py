"""Synonym, hypernym and antonym: the label turns on what two words mean.

In every rule of this package the hypothesis is drawn before the label is looked at, and the premise is then
chosen to fit the label; so a hypothesis alone says nothing about its label.
"""

from functools import cache
from random import Random

from ..example import CONTRADICTION, ENTAILMENT, NEUTRAL, Draft
from ..grammar import TENSES, Setting, aside, be, fitting, people, predicate, sentence, setting, verb_group
from ..words import nouns
from ..words.adjectives import (
    BEARERS,
    NOUN_SYNONYMS,
    SCALAR_OPPOSITES,
    STRICT_OPPOSITES,
    SYNONYMS,
    VERB_OPPOSITES,
    VERB_SYNONYMS,
    pairs,
    related,
    said_of,
    verb_pairs,
)
from ..words.verbs import ACTS_ALONE, HANDLE_VERBS, LOOK_VERBS, Act, Verb, verb

_ADJECTIVE_SYNONYMS = pairs(SYNONYMS)
_SCALAR, _STRICT = pairs(SCALAR_OPPOSITES), pairs(STRICT_OPPOSITES)
_VERB_SYNONYMS, _VERB_OPPOSITES = verb_pairs(VERB_SYNONYMS), verb_pairs(VERB_OPPOSITES)
_NOUN_SYNONYMS = pairs(NOUN_SYNONYMS)
_SAME_NOUN = {a: (a, b) for _, a, b in _NOUN_SYNONYMS}
_SEEMING = {"past": ("was", "seemed", "looked"), "present": ("is", "seems", "looks")}


@cache
def _free(bearer: str, words: frozenset[str]) -> tuple[str, ...]:
    """The adjectives of the same bearer that neither imply nor exclude any of the given ones."""
    return tuple(
        other
        for other in said_of(bearer)
        if not any(other in related(word) or word in related(other) for word in words)
    )


def _unrelated(rng: Random, bearer: str, *words: str) -> str:
    """An adjective of the same bearer that leaves the given ones open."""
    return rng.choice(_free(bearer, frozenset(words)))


def _bearer(rng: Random, bearer: str) -> tuple[str, str]:
    """A subject for an adjective: as the premise and as the hypothesis name it."""
    if bearer == "person":
        return people(rng, 1, long=0.0)[0]
    short = f"the {rng.choice(BEARERS[bearer])}"
    if bearer != "weather" and rng.random() < 0.15:
        owner = people(rng, 1, long=0.0)[0].hypothesis
        return f"{short} of {owner}", short
    return short, short


# States that come and go, so that a time goes well with them.
_PASSING = frozenset(
    "happy sad calm nervous sick friendly hungry full busy awake asleep present absent glad unhappy ill angry furious "
    "tired exhausted afraid scared relaxed anxious right wrong mistaken rude polite patient impatient lazy".split()
)


def _passing(rng: Random, bearer: str, word: str, tense: str) -> Setting:
    """A shared time, where one makes sense."""
    if bearer in ("door", "event", "place") or word in _PASSING:
        return setting(rng, tense)
    return Setting("", False)


class _Copula:
    """'was', 'was not', 'seemed', 'will be', … for one example; premise and hypothesis use the same verb."""

    def __init__(self, rng: Random) -> None:
        self.tense = rng.choice(("past", "past", "past", "present", "future"))
        self.seeming = rng.randrange(1, 3) if self.tense != "future" and rng.random() < 0.2 else 0
        self.name = f"{self.tense}{self.seeming}"

    def say(self, adjective: str, negative: bool) -> str:
        if self.seeming:
            base = ("be", "seem", "look")[self.seeming]
            if negative:
                return f"{'did' if self.tense == 'past' else 'does'} not {base} {adjective}"
            return f"{_SEEMING[self.tense][self.seeming]} {adjective}"
        return f"{be(self.tense, negative=negative)} {adjective}"


def synonym(rng: Random, label: str) -> Draft:
    """The premise says it in another word.

    Entailment: 'The boy was glad.' / 'The boy was happy.' Neutral: another, unrelated word
    ('The boy was tall.' / 'The boy was happy.'). Contradiction: one of the two is denied.
    """
    negative = rng.random() < 0.4
    premise_negative = negative if label == ENTAILMENT else not negative
    if label == NEUTRAL:
        premise_negative = rng.random() < 0.5
    kind = rng.randrange(3)
    if kind == 0:
        return _synonym_adjective(rng, label, negative, premise_negative)
    if kind == 1:
        return _synonym_verb(rng, label, negative, premise_negative)
    return _synonym_noun(rng, label, negative, premise_negative)


def _synonym_adjective(rng: Random, label: str, negative: bool, premise_negative: bool) -> Draft:
    bearer, word, partner = rng.choice(_ADJECTIVE_SYNONYMS)
    copula, (long, short) = _Copula(rng), _bearer(rng, bearer)
    shared = _passing(rng, bearer, word, copula.tense)
    if label == NEUTRAL:
        partner = _unrelated(rng, bearer, word)
    elif not premise_negative and rng.random() < 0.3:
        extra = _unrelated(rng, bearer, word, partner)
        partner = f"{extra} and {partner}" if rng.random() < 0.5 else f"{partner} and {extra}"
    premise = shared.put(rng, f"{long} {copula.say(partner, premise_negative)}")
    hypothesis = shared.put(rng, f"{short} {copula.say(word, negative)}")
    premise = aside(rng, premise, [], copula.tense, 0.15)
    return Draft(sentence(premise), sentence(hypothesis), f"adjective {copula.name}", word)


def _synonym_verb(rng: Random, label: str, negative: bool, premise_negative: bool) -> Draft:
    stated, meant = rng.choice(_VERB_SYNONYMS)
    who, tense = people(rng, 1)[0], rng.choice(TENSES)
    shared = setting(rng, tense, place=not stated.rest)
    if label == NEUTRAL:
        meant = _other_act(rng, stated)
    premise = shared.put(rng, f"{who.premise} {predicate(meant, tense, premise_negative)}")
    hypothesis = shared.put(rng, f"{who.hypothesis} {predicate(stated, tense, negative)}")
    return Draft(
        sentence(aside(rng, premise, [stated, meant], tense)), sentence(hypothesis), f"verb {tense}", stated.verb.base
    )


# Acts on the same objects that stand in no relation to the verbs of the synonym table.
_PLAIN_VERBS = tuple(verb(base) for base in "describe mention remember paint like want photograph see".split())


def _other_act(rng: Random, stated: Act) -> Act:
    if stated.rest:
        return Act(rng.choice(_PLAIN_VERBS), stated.rest)
    while True:
        other = rng.choice(ACTS_ALONE)
        if other.verb.base not in _NEAR_SYNONYMS and (stated.verb.base not in _GOING or other.verb.base not in _MOVING):
            return other


# Acts that some act of the synonym table might be heard to imply or to exclude.
_NEAR_SYNONYMS = frozenset("leave shout cry jump rest relax run complain stay".split())
_GOING = frozenset("leave depart disappear vanish".split())
_MOVING = frozenset("wait arrive escape travel".split())


def _synonym_noun(rng: Random, label: str, negative: bool, premise_negative: bool) -> Draft:
    kind, word, partner = rng.choice(_NOUN_SYNONYMS)
    tense = rng.choice(TENSES)
    shared = setting(rng, tense, place=kind == "person")
    if kind == "person" and rng.random() < 0.5:
        if label == NEUTRAL:
            partner = rng.choice(nouns.PEOPLE)
            while partner in _SAME_NOUN[word] or _NOUN_KIN.get(partner) == word:
                partner = rng.choice(nouns.PEOPLE)
        doing = rng.choice(ACTS_ALONE)
        premise = shared.put(rng, f"the {partner} {predicate(doing, tense, premise_negative)}")
        hypothesis = shared.put(rng, f"the {word} {predicate(doing, tense, negative)}")
        premise = aside(rng, premise, [doing], tense)
        return Draft(sentence(premise), sentence(hypothesis), f"subject {tense}", word)
    who = people(rng, 1)[0]
    while who.hypothesis in (f"the {word}", f"the {partner}"):
        who = people(rng, 1)[0]
    if label == NEUTRAL:
        others = [b for k, b, c in _NOUN_SYNONYMS if k == kind and word not in (b, c)]
        partner = rng.choice(others)
        while f"the {partner}" == who.hypothesis:
            partner = rng.choice(others)
    doing_verb = rng.choice(LOOK_VERBS)
    premise = shared.put(rng, f"{who.premise} {verb_group(doing_verb, tense, premise_negative)} the {partner}")
    hypothesis = shared.put(rng, f"{who.hypothesis} {verb_group(doing_verb, tense, negative)} the {word}")
    premise = aside(rng, premise, [Act(doing_verb, "")], tense)
    return Draft(sentence(premise), sentence(hypothesis), f"object {tense}", word)


# Someone who may well be meant by the other noun.
_NOUN_KIN = {"boy": "child", "girl": "child", "student": "child", "guard": "policeman", "clerk": "student"}


def _some(noun: str, negative: bool, many: bool) -> str:
    """A count noun under its verb: 'a rose', 'roses', 'any roses'."""
    if many:
        return f"any {nouns.plural(noun)}" if negative else f"some {nouns.plural(noun)}"
    return f"a {noun}"


def _saw(verb: Verb, tense: str, noun: str, negative: bool, many: bool, no: bool) -> str:
    """'bought a rose', 'did not buy any roses', 'bought no roses'."""
    if negative and no:
        return f"{verb_group(verb, tense)} no {nouns.plural(noun)}"
    return f"{verb_group(verb, tense, negative)} {_some(noun, negative, many)}"


def hypernym(rng: Random, label: str) -> Draft:
    """Kinds and their members, up and down, under negation too.

    Entailment: 'The girl bought a rose.' / 'The girl bought a flower.', and 'did not buy any flowers' /
    'did not buy a rose'. Neutral: the same steps in the direction that does not follow, or another member.
    Contradiction: one affirms what the other denies.
    """
    kind = rng.choice(tuple(nouns.KINDS))
    member, sister = rng.sample(nouns.KINDS[kind], 2)
    top = nouns.ABOVE_KINDS.get(kind)
    if top and rng.random() < 0.3:
        kind = top
    stranger = rng.choice(tuple(k for k in nouns.KINDS if k not in (kind, nouns.ABOVE_KINDS.get(kind))))
    while nouns.ABOVE_KINDS.get(stranger) == kind or member in nouns.KINDS[stranger]:
        stranger = rng.choice(tuple(nouns.KINDS))
    big = kind in nouns.BIG_KINDS or stranger in nouns.BIG_KINDS or top == "plant"
    doing = rng.choice(LOOK_VERBS if big or rng.random() < 0.4 else HANDLE_VERBS)
    who, tense, many = people(rng, 1)[0], rng.choice(TENSES), rng.random() < 0.4
    negative, general = rng.random() < 0.5, rng.random() < 0.5

    stated = kind if general else member
    # (noun of the premise, denied in the premise) for each label
    if label == CONTRADICTION:
        options = [(member, False)] if negative else [(kind, True)]
        options += [(member, not negative)] if general == negative else []
    elif label == NEUTRAL and general:
        options = [(member, True), (stranger, negative), (stranger, not negative)]
    elif label == NEUTRAL:
        options = [(kind, False), (sister, negative), (sister, not negative)]
    elif negative:
        options = [(kind, True)]
    else:
        options = [(member, False)]
    noun, premise_negative = rng.choice(options)

    shown = noun
    adjective = ""
    if not premise_negative and rng.random() < (0.9 if noun == stated and label == ENTAILMENT else 0.3):
        adjective = rng.choice(("red", "white", "beautiful", "cheap", "old", "big", "strange", "small", "black"))
    no = rng.random() < 0.35
    premise_verb = _saw(doing, tense, shown, premise_negative, many, no)
    if adjective and not many:
        premise_verb = premise_verb.replace(f"a {shown}", f"a {adjective} {shown}")
    if not premise_negative and label != NEUTRAL and rng.random() < 0.25:
        premise_verb += f" and a {rng.choice(nouns.KINDS[stranger])}"
    shared = setting(rng, tense)
    premise = shared.put(rng, f"{who.premise} {premise_verb}")
    hypothesis = shared.put(
        rng, f"{who.hypothesis} {_saw(doing, tense, stated, negative, rng.random() < 0.4, rng.random() < 0.35)}"
    )
    frame = f"{noun == kind}{premise_negative}{general}{negative}{tense}"
    return Draft(sentence(premise), sentence(hypothesis), frame, member)


def antonym(rng: Random, label: str) -> Draft:
    """Opposites exclude each other.

    Contradiction: 'The room was cold.' / 'The room was hot.' Entailment: 'was cold' / 'was not hot'; with a
    strict opposite also 'was not open' / 'was closed'. Neutral: an unrelated adjective; and denying one end of
    a scale leaves the other open ('was not hot' / 'was cold').
    """
    if rng.random() < 0.3:
        return _antonym_verb(rng, label)
    strict = rng.random() < 0.35
    bearer, word, opposite = rng.choice(_STRICT if strict else _SCALAR)
    negative = rng.random() < 0.5
    copula, (long, short) = _Copula(rng), _bearer(rng, bearer)
    copula.seeming = 0
    shared = _passing(rng, bearer, word, copula.tense)
    extra = _unrelated(rng, bearer, word, opposite)
    holds = (label == ENTAILMENT) != negative  # whether `word` is true of the premise's subject
    both = rng.random() < 0.5
    if label == NEUTRAL:
        if not strict and rng.random() < 0.4:
            stated, denied = opposite, True
        else:
            stated, denied = extra, rng.random() < 0.4
    elif holds:
        stated, denied = (opposite, True) if strict and rng.random() < 0.6 else (word, False)
    else:
        stated, denied = (word, True) if strict and negative is False and rng.random() < 0.2 else (opposite, False)
    text = stated
    if not denied and stated != extra and (both or stated == word):
        text = f"{stated} and {extra}" if rng.random() < 0.5 else f"{extra} and {stated}"
    elif not denied and stated == extra and rng.random() < 0.5:
        more = _unrelated(rng, bearer, word, opposite, extra)
        text = f"{extra} and {more}"
    premise = shared.put(rng, f"{long} {copula.say(text, denied)}")
    hypothesis = shared.put(rng, f"{short} {copula.say(word, negative)}")
    premise = aside(rng, premise, [], copula.tense, 0.1)
    return Draft(sentence(premise), sentence(hypothesis), f"adjective{negative}{denied}{copula.tense}", word)


def _antonym_verb(rng: Random, label: str) -> Draft:
    stated, opposite = rng.choice(_VERB_OPPOSITES)
    who, tense = people(rng, 1)[0], rng.choice(TENSES)
    tense = fitting(tense, stated.verb, opposite.verb)
    negative = rng.random() < 0.5
    shared: Setting = setting(rng, tense)
    if label == NEUTRAL:
        if rng.random() < 0.35:
            act, denied = opposite, True
        else:
            act, denied = _other_act(rng, stated), rng.random() < 0.4
    elif (label == ENTAILMENT) != negative:
        act, denied = stated, False
    else:
        act, denied = opposite, False
    doing = predicate(act, tense, denied)
    if act == stated or (not denied and rng.random() < 0.35):
        second = rng.choice(ACTS_ALONE)
        while second.verb in (stated.verb, opposite.verb) or second.verb.base in (
            "leave",
            "arrive",
            "stay",
            "win",
            "escape",
        ):
            second = rng.choice(ACTS_ALONE)
        doing = (
            f"{doing} and {_second(second, tense)}"
            if rng.random() < 0.5
            else (f"{predicate(second, tense)} and {_second(act, tense)}")
        )
    premise = shared.put(rng, f"{who.premise} {doing}")
    hypothesis = shared.put(rng, f"{who.hypothesis} {predicate(stated, tense, negative)}")
    premise = aside(rng, premise, [stated, opposite, act], tense, 0.15)
    return Draft(sentence(premise), sentence(hypothesis), f"verb{negative}{denied}{tense}", stated.verb.base)


def _second(act: Act, tense: str) -> str:
    """A second verb joined to a first one: its auxiliary is not said again."""
    form = {
        "past": act.verb.past,
        "present": act.verb.third,
        "future": act.verb.base,
        "perfect": act.verb.participle,
        "progressive": act.verb.ing,
        "ongoing": act.verb.ing,
    }[tense]
    return f"{form} {act.rest}".rstrip()
