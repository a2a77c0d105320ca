"""Short sentences on negation and veridicality."""

from random import Random

from ...example import CONTRADICTION, ENTAILMENT, NEUTRAL, Draft
from ...grammar import fitting, predicate, sentence
from ...words import nouns
from ...words.verbs import Act, Verb
from .. import polarity
from .subjects import Subject, a_tense, described, doings, subjects


def _never(who: Subject, act: Act, tense: str) -> str:
    auxiliary, _, form = predicate(act, tense, plural=who.plural).partition(" ")
    if tense in ("present", "past"):
        return f"{who.text} never {auxiliary} {form}".rstrip()
    return f"{who.text} {auxiliary} never {form}"


def _true(rng: Random, who: Subject, act: Act, tense: str, happened: bool) -> str:
    outer, inner = rng.choice((("true", not happened), ("not true", happened), ("false", happened)))
    return f"it is {outer} that {who.does(act, tense, inner)}"


def negation(rng: Random, label: str) -> Draft:
    """'The dog is sleeping.' / 'The dog is not sleeping.'; nobody, everybody, never, it is not true that."""
    who, other = subjects(rng, 2)
    act, another = doings(rng, 2, who.animal)
    tense = a_tense(rng, act.verb, another.verb)
    negative = rng.random() < 0.5
    single = not who.animal and not who.plural and not who.text.startswith("a ")
    happened = (label == ENTAILMENT) != negative
    if label == NEUTRAL:
        denied = rng.random() < 0.4
        how = rng.choice(("other subject", "other act"))
        premise = other.does(act, tense, denied) if how == "other subject" else who.does(another, tense, denied)
        if single and not negative and rng.random() < 0.2:
            premise, how = f"{rng.choice(('somebody', 'someone'))} {predicate(act, tense)}", "somebody"
    elif single and rng.random() < 0.3:
        everybody = rng.choice(("everybody", "everyone") if happened else ("nobody", "no one"))
        premise, how = f"{everybody} {predicate(act, tense)}", "all"
    elif label == CONTRADICTION:
        premise, how = who.does(act, tense, not negative), "plain"
        if not happened and rng.random() < 0.15:
            premise, how = _never(who, act, tense), "never"
    else:
        longer = described(rng, who)
        premise, how = _true(rng, who, act, tense, happened), "true"
        if negative and rng.random() < 0.5:
            premise, how = _never(who, act, tense), "never"
        elif longer and rng.random() < 0.6:
            premise, how = longer.does(act, tense, negative), "described"
        elif not negative and not act.rest and rng.random() < 0.6:
            premise, how = f"{who.does(act, tense)} {rng.choice(nouns.PLACES)}", "somewhere"
    return Draft(
        sentence(premise), sentence(who.does(act, tense, negative)), f"short {negative} {how} {tense}", act.key
    )


_SIMPLE = {"ongoing": "present", "progressive": "past"}
# Verbs that the tokenizer spells out in the present; and those that it spells out in the progressive.
_SPELLED = frozenset("fear guess neglect".split())
_SPELLED_ING = frozenset("promise decide hope manage".split())


def _one_of(rng: Random, verbs: tuple[Verb, ...]) -> Verb:
    return rng.choice([one for one in verbs if one.base not in _SPELLED])


def veridical(rng: Random, label: str) -> Draft:
    """'Anna knows that the dog is sleeping.' / 'The dog is sleeping.'; 'The boy wants to swim.' / 'The boy swims.'"""
    (who,), (other,) = subjects(rng, 1), subjects(rng, 1, animals=0.0, names=0.6)
    while other.noun == who.noun:
        (other,) = subjects(rng, 1, animals=0.0, names=0.6)
    act = doings(rng, 1, who.animal)[0]
    with_to = not who.animal and rng.random() < 0.5 and act.verb.base not in polarity._UNWILLED
    tense = a_tense(rng, act.verb)
    negative = rng.random() < 0.5
    holds = (label == ENTAILMENT) != negative
    if with_to:
        if label == NEUTRAL:
            governor = _one_of(rng, polarity._OPEN)
        else:
            governor = _one_of(rng, polarity._DONE if holds else polarity._NOT_DONE)
        tense = fitting(tense, governor)
        if governor.base in _SPELLED_ING:
            tense = _SIMPLE.get(tense, tense)
        premise = f"{who.group(governor, tense)} to {act.verb.base} {act.rest}".rstrip()
        how = "to"
    else:
        outer = _SIMPLE.get(tense, tense)
        inner, denied = not holds, rng.random() < 0.3
        if label == NEUTRAL:
            inner, denied = rng.random() < 0.5, False
            governor = _one_of(rng, polarity._THINKING)
            head = other.group(governor, outer)
        elif rng.random() < 0.3:
            inner, denied = holds, False
            governor = rng.choice([v for v in polarity._THINKING if v.base in ("think", "believe", "say", "claim")])
            form = governor.past if outer == "past" else governor.base if other.plural else governor.third
            head = f"{other.text} wrongly {form}"
        else:
            governor = rng.choice(polarity._KNOWING)
            head = other.group(governor, outer, denied)
        premise, how = f"{head} that {who.does(act, tense, inner)}", f"that {denied}"
    return Draft(
        sentence(premise), sentence(who.does(act, tense, negative)), f"short {how} {negative} {governor.base}", act.key
    )
