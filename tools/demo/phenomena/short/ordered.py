"""Short sentences on order: in time, in space, on a scale."""

from random import Random

from ...example import CONTRADICTION, ENTAILMENT, NEUTRAL, Draft
from ...grammar import be, fitting, sentence
from ...words import nouns
from ...words.adjectives import SCALES
from .. import relations
from ..relations import further
from .subjects import ANIMALS, doings, named, subjects

_ONE = ("the", "the", "a")


def temporal(rng: Random, label: str) -> Draft:
    """'The girl sang, then the boy danced.' / 'The girl sang before the boy danced.'"""
    who = subjects(rng, 2)
    first, second = doings(rng, 2, who[0].animal)
    tense = rng.choice(("past", "past", "past", "present", "present", "progressive", "ongoing"))
    tense = fitting(tense, first.verb, second.verb)
    a, b = who[0].does(first, tense), who[1].does(second, tense)
    turned = rng.random() < 0.5
    hypothesis = f"{b} after {a}" if turned else f"{a} before {b}"
    x, y = rng.sample((a, b), 2)
    early, late = (a, b) if label == ENTAILMENT else (b, a)
    if label == NEUTRAL:
        premise, how = rng.choice(
            ((f"{x} and {y}", "and"), (f"{x}, and {y}", "comma"), (f"{x}. {y[0].upper()}{y[1:]}", "sentences"))
        )
    elif label == CONTRADICTION and rng.random() < 0.25:
        running = {"past": "progressive", "present": "ongoing"}.get(tense, tense)
        if rng.random() < 0.5:
            running = fitting(running, first.verb, second.verb)
            x, y = rng.sample((who[0].does(first, running), who[1].does(second, running)), 2)
        premise, how = f"{x} while {y}", "while"
    else:
        ways = [
            (f"{early} before {late}", "before"),
            (f"{late} after {early}", "after"),
            (f"{early}, then {late}", "then"),
            (f"{early}, and then {late}", "and then"),
        ]
        if tense == "past":
            days = sorted(rng.sample(range(7), 2))
            on = [f"on {nouns.WEEKDAYS[day]}" for day in days]
            ways.append((f"{early} {on[0]}, and {late} {on[1]}", "days"))
        premise, how = rng.choice([way for way in ways if way[0] != hypothesis])
    return Draft(sentence(premise), sentence(hypothesis), f"short {how} {turned} {tense}", first.key)


def spatial(rng: Random, label: str) -> Draft:
    """'A cup is over a plate.' / 'A plate is under a cup.'"""
    outdoors = rng.random() < 0.35
    article = "the" if outdoors else rng.choice(_ONE)
    pool = nouns.LANDMARKS if outdoors else nouns.THINGS + ANIMALS
    x, y = (named(article, noun) for noun in rng.sample(pool, 2))
    tense = rng.choice(("present", "present", "past"))
    axes = relations._COMPASS if outdoors else relations._AXES
    near = rng.random() < (0.35 if outdoors else 0.1)
    axis, way = (relations._DISTANCE if near else rng.choice(axes)), rng.randrange(2)
    negative = rng.random() < 0.2
    said = rng.choice(axis[way])
    hypothesis = f"{x} {be(tense, negative=negative)} {said} {y}"
    holds = (label == ENTAILMENT) != negative
    one, two = x, y
    if label == NEUTRAL:
        others = relations._COMPASS if near and outdoors else tuple(a for a in axes if a is not axis)
        relation, how = rng.choice(rng.choice(rng.choice(others))), "other axis"
        if rng.random() < 0.5:
            one, two = y, x
    elif near:
        how = "distance"
        if holds:
            one, two = y, x
        relation = rng.choice(axis[way if holds else 1 - way])
    else:
        how = rng.choice(("turned", "same"))
        if how == "same" and holds and len(axis[way]) == 1:
            how = "turned"
        if how == "turned":
            one, two = y, x
        side = way if holds != (how == "turned") else 1 - way
        relation = rng.choice([r for r in axis[side] if (how == "turned" or r != said)])
    premise = f"{one} {be(tense)} {relation} {two}"
    return Draft(sentence(premise), sentence(hypothesis), f"short {how} {said} {negative}", f"{x} {axis[0][0]}")


def comparative(rng: Random, label: str) -> Draft:
    """'A man is younger than a woman.' / 'A woman is older than a man.'"""
    scale = rng.choice(SCALES)
    bearer = scale[4]
    if bearer == "person":
        names = rng.random() < 0.35
        x, y = rng.sample(nouns.NAMES, 2) if names else rng.sample(nouns.PEOPLE, 2)
    else:
        names = False
        x, y = rng.sample(nouns.THINGS if bearer == "thing" else nouns.LANDMARKS, 2)
    if not names:
        article = rng.choice(_ONE)
        x, y = named(article, x), named(article, y)
    tense, way, negative = rng.choice(("present", "present", "past")), rng.randrange(2), rng.random() < 0.15
    said = scale[way]
    hypothesis = f"{x} {be(tense, negative=negative)} {said} than {y}"
    holds = (label == ENTAILMENT) != negative
    if label == NEUTRAL:
        scale = rng.choice([s for s in SCALES if s[4] == bearer and not set(s[:4]) & set(scale[:4])])
        one, two = rng.sample((x, y), 2)
        how, premise = rng.choice(further(scale, tense, one, rng.randrange(2), two))
    elif holds:
        how, premise = rng.choice([told for told in further(scale, tense, x, way, y) if told[0] != "comparative"])
    elif rng.random() < 0.2:
        how, premise = "equal", f"{x} {be(tense)} as {scale[2 + rng.randrange(2)]} as {y}"
    else:
        how, premise = rng.choice(further(scale, tense, y, way, x))
    return Draft(sentence(premise), sentence(hypothesis), f"short {how} {negative} {tense}", f"{said} {y}")
