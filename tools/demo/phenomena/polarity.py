"""Negation and veridicality: whether the sentence says that something happened at all."""

from random import Random

from ..example import CONTRADICTION, ENTAILMENT, NEUTRAL, Draft
from ..grammar import TENSES, Person, acts, aside, people, predicate, sentence, setting, verb_group
from ..words.verbs import Act, verb

_NOBODY = ("nobody", "no one")
_SOMEBODY = ("somebody", "someone")
_EVERYBODY = ("everybody", "everyone")


def _never(act: Act, tense: str) -> str:
    """'never slept', 'will never sleep', 'has never slept', 'was never sleeping'."""
    group = verb_group(act.verb, tense)
    if " " not in group:
        group = f"never {group}"
    else:
        auxiliary, rest = group.split(" ", 1)
        group = f"{auxiliary} never {rest}"
    return f"{group} {act.rest}".rstrip()


def _denied(rng: Random, who: str, act: Act, tense: str) -> str:
    """One of the ways to say that somebody did not do something."""
    if rng.random() < 0.35:
        return f"{who} {_never(act, tense)}"
    return f"{who} {predicate(act, tense, negative=True)}"


def _turned(rng: Random, who: str, act: Act, tense: str, happened: bool) -> str:
    """The same content under 'it is (not) true that', sometimes with two negations that cancel."""
    if happened:
        outer, inner = rng.choice((("true", False), ("not true", True), ("false", True)))
    else:
        outer, inner = rng.choice((("true", True), ("not true", False), ("false", False)))
    return f"it is {outer} that {who} {predicate(act, tense, negative=inner)}"


def negation(rng: Random, label: str) -> Draft:
    """Affirmed, denied, doubly denied; of one person, of everybody, of nobody.

    Entailment: 'Nobody slept.' / 'The boy did not sleep.' Neutral: 'Somebody slept.' / 'The boy slept.', and
    anything about another person or another act. Contradiction: 'It is false that the boy did not sleep.' /
    'The boy did not sleep.' Everybody and nobody range over all people there are, at least one.
    """
    who, other = people(rng, 2)
    act, another = acts(rng, 2)
    tense = rng.choice(TENSES)
    shared = setting(rng, tense, place=not act.rest and not another.rest, manner=True)
    draw = rng.random()
    if draw < 0.76:
        negative = rng.random() < 0.5
        premise, how = _about_one(rng, label, who, other, act, another, tense, negative)
        hypothesis = f"{who.hypothesis} {predicate(act, tense, negative)}"
        frame = f"one {negative} {how}"
    else:
        subject = rng.choice((_NOBODY, _SOMEBODY, _EVERYBODY))
        premise, how = _about_all(rng, label, subject, who, act, another, tense)
        hypothesis = f"{rng.choice(subject)} {predicate(act, tense)}"
        frame = f"{subject[0]} {how}"
    fronted = how in ("turned", "not everyone")
    premise = premise if not shared.phrase else (f"{premise} {shared.phrase}" if fronted else shared.put(rng, premise))
    premise = aside(rng, premise, [act, another], tense, 0.12)
    hypothesis = shared.put(rng, hypothesis)
    return Draft(sentence(premise), sentence(hypothesis), f"{frame} {tense}", act.key)


def _about_one(
    rng: Random, label: str, who: Person, other: Person, act: Act, another: Act, tense: str, negative: bool
) -> tuple[str, str]:
    """A premise for a hypothesis about one person, and the name of its form."""
    if label == NEUTRAL:
        ways = (
            ["other person", "other act", "somebody"] if not negative else ["other person", "other act", "not everyone"]
        )
        how = rng.choice(ways)
        denied = rng.random() < 0.5
        if how == "other person":
            who = other
        elif how == "other act":
            act = another
        elif how == "somebody":
            return f"{rng.choice(_SOMEBODY)} {predicate(act, tense)}", how
        else:
            return f"not {rng.choice(_EVERYBODY)} {predicate(act, tense)}", how
        if rng.random() < 0.25:
            return _turned(rng, who.premise, act, tense, not denied), "turned"
        if denied:
            return _denied(rng, who.premise, act, tense), how
        return f"{who.premise} {predicate(act, tense)}", how
    happened = (label == ENTAILMENT) != negative
    draw = rng.random()
    if draw < 0.35 or (happened and draw < 0.45 and label == ENTAILMENT):
        return _turned(rng, who.premise, act, tense, happened), "turned"
    if draw < 0.65 or (label == ENTAILMENT and (happened or draw < 0.8)):
        subject = rng.choice(_EVERYBODY if happened else _NOBODY)
        return f"{subject} {predicate(act, tense)}", "all"
    if happened:
        return f"{who.premise} {predicate(act, tense)}", "plain"
    if label == ENTAILMENT:
        return f"{who.premise} {_never(act, tense)}", "never"
    return _denied(rng, who.premise, act, tense), "plain"


def _about_all(
    rng: Random, label: str, subject: tuple[str, str], who: Person, act: Act, another: Act, tense: str
) -> tuple[str, str]:
    """A premise for a hypothesis about everybody, somebody or nobody."""
    one = f"{who.premise} {predicate(act, tense)}"
    not_one = f"{who.premise} {predicate(act, tense, negative=True)}"
    not_all = f"not {rng.choice(_EVERYBODY)} {predicate(act, tense)}"
    whole = {words[0]: f"{rng.choice(words)} {predicate(act, tense)}" for words in (_NOBODY, _SOMEBODY, _EVERYBODY)}
    off = f"{rng.choice(subject)} {predicate(another, tense)}"
    table = {
        ("nobody", ENTAILMENT): [("no", whole["nobody"])],
        ("nobody", CONTRADICTION): [("one", one), ("some", whole["somebody"]), ("every", whole["everybody"])],
        ("nobody", NEUTRAL): [("not one", not_one), ("not everyone", not_all), ("off", off)],
        ("somebody", ENTAILMENT): [("one", one), ("every", whole["everybody"])],
        ("somebody", CONTRADICTION): [("no", whole["nobody"])],
        ("somebody", NEUTRAL): [("not one", not_one), ("not everyone", not_all), ("off", off)],
        ("everybody", ENTAILMENT): [("every", whole["everybody"])],
        ("everybody", CONTRADICTION): [("not one", not_one), ("no", whole["nobody"]), ("not everyone", not_all)],
        ("everybody", NEUTRAL): [("one", one), ("some", whole["somebody"]), ("off", off)],
    }
    how, premise = rng.choice(table[subject[0], label])
    return premise, how


# Verbs with 'to': whether what follows happened.
_DONE = tuple(verb(base) for base in ("manage", "remember"))
_NOT_DONE = tuple(verb(base) for base in ("fail", "forget", "refuse", "neglect"))
_OPEN = tuple(verb(base) for base in ("want", "hope", "plan", "try", "promise", "offer", "decide", "expect"))
# Verbs with 'that': the first kind takes the rest as known, under negation too; the others leave it open.
_KNOWING = tuple(verb(base) for base in ("know", "notice", "remember", "see", "regret", "learn", "forget"))
_THINKING = tuple(verb(base) for base in ("think", "believe", "say", "hope", "guess", "fear", "claim"))


# Nobody plans, promises or refuses to do these.
_UNWILLED = frozenset("fall stumble faint cough sneeze snore yawn win lose drop break hesitate".split())


def veridical(rng: Random, label: str) -> Draft:
    """What other verbs say about whether something happened.

    Entailment: 'The boy managed to sleep.' / 'The boy slept.'; 'Anna did not know that the boy slept.' /
    'The boy slept.' Neutral: 'The boy wanted to sleep.', 'Anna believed that the boy slept.' Contradiction:
    'The boy failed to sleep.', 'Anna wrongly believed that the boy slept.' / 'The boy slept.'
    """
    who, other = people(rng, 2)
    act = acts(rng, 1)[0]
    with_to = rng.random() < 0.5
    while with_to and act.verb.base in _UNWILLED:
        act = acts(rng, 1)[0]
    shared = setting(rng, "past", place=not act.rest, manner=True)
    negative = rng.random() < 0.5
    holds = (label == ENTAILMENT) != negative
    past = "past"
    if with_to:
        denied = rng.random() < 0.35
        if label == NEUTRAL:
            governor = rng.choice(_OPEN)
        elif holds != denied:
            governor = rng.choice(_DONE)
        else:
            governor = rng.choice(_NOT_DONE)
            if denied and governor.base in ("refuse", "neglect"):
                governor = rng.choice(_NOT_DONE[:2])
        premise = f"{who.premise} {verb_group(governor, past, denied)} to {act.verb.base} {act.rest}".rstrip()
        frame = f"to {denied}"
    else:
        wrongly = label != NEUTRAL and rng.random() < 0.4
        denied = rng.random() < 0.4 and not wrongly
        inner = not holds if not wrongly else holds
        if label == NEUTRAL:
            inner = rng.random() < 0.5
            governor = rng.choice(_THINKING)
            if denied:
                governor = rng.choice([v for v in _THINKING if v.base in ("think", "believe", "say", "claim")])
            head = verb_group(governor, past, denied)
        elif wrongly:
            governor = rng.choice([v for v in _THINKING if v.base in ("think", "believe", "say", "claim")])
            head = f"wrongly {governor.past}"
        else:
            governor = rng.choice(_KNOWING)
            head = verb_group(governor, past, denied)
        if rng.random() < 0.5:
            clause = f"{who.premise} had {'not ' if inner else ''}{act.verb.participle} {act.rest}".rstrip()
        else:
            clause = f"{who.premise} {predicate(act, past, inner)}"
        premise = f"{other.premise} {head} that {clause}"
        frame = f"that {denied} {wrongly} {inner}"
    if shared.phrase:
        premise = f"{premise} {shared.phrase}"
    hypothesis = shared.put(rng, f"{who.hypothesis} {predicate(act, past, negative)}")
    return Draft(sentence(premise), sentence(hypothesis), f"{frame} {negative} {governor.base}", act.key)
