"""Time, space and degree: orders, and what one order says about another."""

from collections.abc import Sequence
from random import Random

from ..example import CONTRADICTION, ENTAILMENT, NEUTRAL, Draft
from ..grammar import Person, acts, aside, be, people, predicate, sentence, setting
from ..words import nouns
from ..words.adjectives import SCALES, THING_EXTRAS

_DAYTIMES = ("in the morning", "at noon", "in the afternoon", "in the evening", "at midnight")


def temporal(rng: Random, label: str) -> Draft:
    """Before, after, then, and dated events.

    Entailment: 'The boy slept before the girl sang.' / 'The girl sang after the boy slept.' Neutral: no order is
    given ('The boy slept and the girl sang.'). Contradiction: the other order, or both at the same time. A date
    names the same week or year in both clauses.
    """
    who = people(rng, 2, long=0.2)
    first, second = acts(rng, 2)
    a = [f"{who[0].premise} {predicate(first, 'past')}", f"{who[0].hypothesis} {predicate(first, 'past')}"]
    b = [f"{who[1].premise} {predicate(second, 'past')}", f"{who[1].hypothesis} {predicate(second, 'past')}"]
    turned = rng.random() < 0.5
    stated = rng.randrange(4)
    # the hypothesis says: a, then b
    hypothesis = (
        f"{b[1]} after {a[1]}" if turned else f"{a[1]} before {b[1]}",
        f"after {a[1]}, {b[1]}" if turned else f"before {b[1]}, {a[1]}",
        f"{b[1]} later than {a[1]}" if turned else f"{a[1]} earlier than {b[1]}",
        f"first {a[1]}, and then {b[1]}",
    )[stated]
    if label == NEUTRAL:
        premise, how = _unordered(rng, a[0], b[0])
    elif label == CONTRADICTION and rng.random() < 0.2:
        how = "together"
        x, y = rng.sample((a[0], b[0]), 2)
        premise = rng.choice((f"{x} while {y}", f"{x} at the same time as {y}", f"while {x}, {y}"))
    else:
        early, late = (a[0], b[0]) if label == ENTAILMENT else (b[0], a[0])
        premise, how = _ordered(rng, early, late, hypothesis)
    return Draft(sentence(premise), sentence(hypothesis), f"{how} {stated}{turned}", first.key)


def _ordered(rng: Random, early: str, late: str, hypothesis: str) -> tuple[str, str]:
    """One way to say that `early` came before `late`, and its name; never the hypothesis itself."""
    days = sorted(rng.sample(range(7), 2))
    months = sorted(rng.sample(range(12), 2))
    hours = sorted(rng.sample(range(5), 2))
    ways = {
        "before": f"{early} before {late}",
        "after": f"{late} after {early}",
        "before front": f"before {late}, {early}",
        "after front": f"after {early}, {late}",
        "then": f"{early}, and then {late}",
        "first": f"first {early}, and later {late}",
        "sentences": f"{early}. Later, {late}",
        "earlier": f"{late}. Earlier, {early}",
        "days": _dated(rng, early, late, f"on {nouns.WEEKDAYS[days[0]]}", f"on {nouns.WEEKDAYS[days[1]]}"),
        "months": _dated(rng, early, late, f"in {nouns.MONTHS[months[0]]}", f"in {nouns.MONTHS[months[1]]}"),
        "daytime": _dated(rng, early, late, _DAYTIMES[hours[0]], _DAYTIMES[hours[1]]),
    }
    while True:
        how = rng.choice(tuple(ways))
        if ways[how] != hypothesis:
            return ways[how], how


def _dated(rng: Random, early: str, late: str, when_early: str, when_late: str) -> str:
    if rng.random() < 0.5:
        return f"{early} {when_early}, and {late} {when_late}"
    return f"{late} {when_late}, and {early} {when_early}"


def _unordered(rng: Random, a: str, b: str) -> tuple[str, str]:
    """Both happened; nothing says which came first."""
    x, y = rng.sample((a, b), 2)
    day = f"on {rng.choice(nouns.WEEKDAYS)}"
    month = f"in {rng.choice(nouns.MONTHS)}"
    ways = {
        "and": f"{x}, and {y}",
        "but": f"{x}, but {y} too",
        "sentences": f"{x}. Also, {y}",
        "same day": f"{x} {day}, and {y} {day}",
        "same month": f"{x} {month}, and {y} {month}",
        "one dated": f"{x} {day}, and {y}",
        "because": f"{x} on the same day as {y}",
        "known": f"it is true that {x} and that {y}",
    }
    how = rng.choice(tuple(ways))
    return ways[how], how


# relation -> (its wordings, the wordings of its inverse); each axis listed once in each direction.
_Axis = tuple[tuple[str, ...], tuple[str, ...]]
_AXES: tuple[_Axis, ...] = (
    (("above", "over"), ("below", "under", "beneath")),
    (("to the left of", "left of"), ("to the right of", "right of")),
    (("in front of",), ("behind",)),
)
_COMPASS: tuple[_Axis, ...] = ((("north of",), ("south of",)), (("east of",), ("west of",)))
_DISTANCE: _Axis = (("near", "close to", "next to"), ("far from", "far away from"))


def spatial(rng: Random, label: str) -> Draft:
    """Above, below, left, right, north, near: where things are.

    Entailment: 'The lamp is above the table.' / 'The table is below the lamp.' Neutral: a relation on another
    axis ('The lamp is above the table.' / 'The table is behind the lamp.'). Contradiction: the relation turned round
    ('The lamp is above the table.' / 'The lamp is below the table.'); near excludes far.
    """
    outdoors = rng.random() < 0.4
    pool = nouns.LANDMARKS if outdoors else nouns.THINGS
    x, y, z = rng.sample(pool, 3)
    tense = rng.choice(("past", "present", "present"))
    negative = rng.random() < 0.25
    axes = _COMPASS if outdoors else _AXES
    near = outdoors and rng.random() < 0.3
    axis = _DISTANCE if near else rng.choice(axes)
    way = rng.randrange(2)
    stated = rng.choice(axis[way])
    hypothesis = f"the {x} {be(tense, negative=negative)} {stated} the {y}"

    def tell(one: str, relation: str, two: str, denied: bool = False) -> str:
        return f"{_shown(rng, one, outdoors)} {be(tense, negative=denied)} {relation} {_shown(rng, two, outdoors)}"

    chained = not near and rng.random() < 0.25
    if label == NEUTRAL:
        other = rng.choice([a for a in axes if a is not axis]) if not near else rng.choice(_COMPASS)
        if not near and outdoors and rng.random() < 0.3:
            other = _DISTANCE
        if chained:
            # both stand on the same side of a third thing: nothing follows
            side = rng.choice(axis[rng.randrange(2)])
            premise = f"{tell(x, side, z)}, and {tell(y, side, z)}"
            how = "same side"
        else:
            one, two = rng.sample((x, y), 2)
            premise, how = tell(one, rng.choice(rng.choice(other)), two, rng.random() < 0.15), "other axis"
    else:
        holds = (label == ENTAILMENT) != negative
        if chained:
            one, two = (x, y) if holds else (y, x)
            relation = rng.choice(axis[way])
            steps = [tell(one, relation, z), tell(z, relation, two)]
            rng.shuffle(steps)
            premise, how = ", and ".join(steps), "chain"
        elif near:
            one, two = rng.sample((x, y), 2)
            choices = [w for w in axis[way if holds else 1 - way] if w != stated or one == y]
            premise, how = tell(one, rng.choice(choices), two), "distance"
        elif holds:
            if rng.random() < 0.75 or len(axis[way]) == 1:
                premise, how = tell(y, rng.choice(axis[1 - way]), x), "inverse"
            else:
                premise, how = tell(x, rng.choice([w for w in axis[way] if w != stated]), y), "synonym"
        elif rng.random() < 0.5:
            premise, how = tell(x, rng.choice(axis[1 - way]), y), "opposite"
        else:
            premise, how = tell(y, rng.choice(axis[way]), x), "swapped"
    premise = aside(rng, premise, [], tense, 0.12)
    return Draft(sentence(premise), sentence(hypothesis), f"{how} {stated} {negative}", f"{x} {axis[0][0]}")


def _shown(rng: Random, thing: str, outdoors: bool) -> str:
    if not outdoors and rng.random() < 0.25:
        return f"the {rng.choice(THING_EXTRAS)} {thing}"
    if outdoors and rng.random() < 0.15:
        return f"the {rng.choice(('old', 'new', 'big', 'little', 'famous'))} {thing}"
    return f"the {thing}"


def comparative(rng: Random, label: str) -> Draft:
    """More, less, equally: two of them on one scale.

    Entailment: 'The boy was taller than the girl.' / 'The girl was shorter than the boy.' Neutral: another
    scale. Contradiction: the other way round, or equal. 'Not as tall as' means shorter than.
    """
    scale = rng.choice(SCALES)
    bearer = scale[4]
    x, y, z = _compared(rng, bearer)
    tense = rng.choice(("past", "past", "present", "future"))
    shared = setting(rng, tense) if bearer == "person" else setting(rng, "present")
    way = rng.randrange(2)
    negative = rng.random() < 0.2
    stated = scale[way]
    hypothesis = f"{x.hypothesis} {be(tense, negative=negative)} {stated} than {y.hypothesis}"
    is_ = be(tense)
    a, b, c = x.premise, y.premise, z.premise
    if label == NEUTRAL:
        others = [s for s in SCALES if s[4] == bearer and not set(s[:4]) & set(scale[:4])]
        draw = rng.random()
        if draw < 0.6:
            scale = rng.choice(others)
            one, two = rng.sample((a, b), 2)
            how, premise = rng.choice(further(scale, tense, one, rng.randrange(2), two))
        elif draw < 0.8:
            premise, how = f"{a} {is_} {stated} than {c}, and {b} {is_} {stated} than {c}", "same side"
        else:
            one, two = rng.sample((a, b), 2)
            premise, how = f"{one} {is_} {scale[2 + way]}, and {two} {is_} {scale[2 + way]} too", "both"
    else:
        holds = (label == ENTAILMENT) != negative
        if rng.random() < 0.2:
            one, two = (a, b) if holds else (b, a)
            steps = [f"{one} {is_} {stated} than {c}", f"{c} {is_} {stated} than {two}"]
            rng.shuffle(steps)
            premise, how = ", and ".join(steps), "chain"
        elif not holds and rng.random() < 0.2:
            one, two = rng.sample((a, b), 2)
            premise, how = f"{one} {is_} as {scale[2 + rng.randrange(2)]} as {two}", "equal"
        elif holds:
            how, premise = rng.choice([way_ for way_ in further(scale, tense, a, way, b) if way_[0] != "comparative"])
        else:
            how, premise = rng.choice(further(scale, tense, b, way, a))
    premise = aside(rng, shared.put(rng, premise), [], tense, 0.1)
    return Draft(
        sentence(premise),
        sentence(shared.put(rng, hypothesis)),
        f"{how} {negative} {tense}",
        f"{stated} {y.hypothesis}",
    )


def further(scale: Sequence[str], tense: str, one: str, which: int, two: str) -> list[tuple[str, str]]:
    """Ways to say that ``one`` is further along a scale than ``two``, and what they are called."""
    is_, is_not = be(tense), be(tense, negative=True)
    return [
        ("comparative", f"{one} {is_} {scale[which]} than {two}"),
        ("turned", f"{two} {is_} {scale[1 - which]} than {one}"),
        ("not as", f"{two} {is_not} as {scale[2 + which]} as {one}"),
        ("less", f"{two} {is_} less {scale[2 + which]} than {one}"),
        ("much", f"{one} {is_} much {scale[which]} than {two}"),
    ]


def _compared(rng: Random, bearer: str) -> list[Person]:
    """Three different people, things or places."""
    if bearer == "person":
        return people(rng, 3, long=0.2)
    pool = nouns.THINGS if bearer == "thing" else nouns.LANDMARKS
    out = []
    for noun in rng.sample(pool, 3):
        short = f"the {noun}"
        long = f"the {rng.choice(THING_EXTRAS)} {noun}" if bearer == "thing" and rng.random() < 0.25 else short
        out.append(Person(long, short))
    return out
