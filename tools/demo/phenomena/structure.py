"""Role swap, conjunction and relative clauses: who did what, read off the sentence's structure."""

from random import Random

from ..example import CONTRADICTION, ENTAILMENT, NEUTRAL, Draft
from ..grammar import TENSES, Person, acts, aside, fitting, passive, people, predicate, sentence, setting, verb_group
from ..words import nouns
from ..words.verbs import HANDLE_VERBS, LOOK_VERBS, PERSON_VERBS, Act, verb

# Two ways of telling one transfer: (giver's verb, receiver's verb, things that change hands).
_CONVERSES = (
    (verb("sell"), verb("buy"), "to"),
    (verb("lend"), verb("borrow"), "to"),
    (verb("give"), verb("receive"), "to"),
    (verb("send"), verb("get"), "to"),
)
_GOODS = tuple("book bicycle lamp horse ring violin map umbrella clock ladder picture camera coat boat".split())


def role_swap(rng: Random, label: str) -> Draft:
    """Who did it to whom: active, passive and transfers told from either side.

    Entailment: 'The nurse thanked the doctor.' / 'The doctor was thanked by the nurse.'; 'Anna sold the lamp
    to Ben.' / 'Ben bought the lamp from Anna.' Neutral: the roles swapped (it may have happened both ways).
    Contradiction: the same roles, one of the two sentences denied.
    """
    first, second = people(rng, 2)
    tense = rng.choice(TENSES)
    negative = rng.random() < 0.4
    denied = negative
    if label == CONTRADICTION:
        denied = not negative
    elif label == NEUTRAL:
        denied = rng.random() < 0.5
    agent, patient = (second, first) if label == NEUTRAL else (first, second)
    shared = setting(rng, tense, place=True)
    if rng.random() < 0.25:
        giving, getting, _ = rng.choice(_CONVERSES)
        thing = f"the {rng.choice(_GOODS)}"

        def tell(giver: str, taker: str, negative: bool, side: bool) -> str:
            if side:
                return f"{giver} {verb_group(giving, tense, negative)} {thing} to {taker}"
            return f"{taker} {verb_group(getting, tense, negative)} {thing} from {giver}"

        side = rng.random() < 0.5
        other_side = side if rng.random() < (0.5 if label == NEUTRAL else 0.2) and label != ENTAILMENT else not side
        premise = tell(agent.premise, patient.premise, denied, other_side)
        hypothesis = tell(first.hypothesis, second.hypothesis, negative, side)
        frame, word, used = f"transfer {side}{other_side}", giving.base, [Act(giving, ""), Act(getting, "")]
    else:
        doing = rng.choice(PERSON_VERBS)

        def say(agent: str, patient: str, negative: bool, turned: bool) -> str:
            if turned:
                return f"{patient} {passive(doing, tense, negative)} by {agent}"
            return f"{agent} {verb_group(doing, tense, negative)} {patient}"

        turned = rng.random() < 0.5
        same_voice = rng.random() < {ENTAILMENT: 0.0, NEUTRAL: 0.5, CONTRADICTION: 0.25}[label]
        premise = say(agent.premise, patient.premise, denied, turned if same_voice else not turned)
        hypothesis = say(first.hypothesis, second.hypothesis, negative, turned)
        frame, word, used = f"voice {turned}{same_voice}", doing.base, [Act(doing, "")]
    premise = aside(rng, shared.put(rng, premise), used, tense, 0.15)
    hypothesis = shared.put(rng, hypothesis)
    return Draft(sentence(premise), sentence(hypothesis), f"{frame}{negative}{denied}{tense}", word)


def conjunction(rng: Random, label: str) -> Draft:
    """And, or, neither, but not: of two people, two acts or two things.

    Entailment: 'Anna and Ben sang.' / 'Ben sang.' Neutral: 'Anna or Ben sang.' / 'Ben sang.', and anybody not
    named. Contradiction: 'Neither Anna nor Ben sang.' / 'Ben sang.'
    """
    negative = rng.random() < 0.5
    tense = rng.choice(TENSES)
    if label == NEUTRAL:
        how = rng.choice(("or", "or", "off"))
        form = "or" if how == "or" else rng.choice(("and", "neither", "not first", "not second"))
        named = rng.randrange(2) if how == "or" else 2
    else:
        holds = (label == ENTAILMENT) != negative
        named = rng.randrange(2)
        form = rng.choice(
            ("and", f"not {('second', 'first')[named]}") if holds else ("neither", f"not {('first', 'second')[named]}")
        )
    kind = rng.randrange(3)
    if kind == 0:
        premise, hypothesis, used, word = _two_people(rng, form, named, negative, tense)
    elif kind == 1:
        premise, hypothesis, used, word = _two_acts(rng, form, named, negative, tense)
    else:
        premise, hypothesis, used, word = _two_things(rng, form, named, negative, tense)
    shared = setting(rng, tense, place=kind != 2 and not any(act.rest for act in used))
    premise = shared.put(rng, premise)
    if form in ("and", "neither"):
        premise = aside(rng, premise, used, tense, 0.15)
    return Draft(
        sentence(premise), sentence(shared.put(rng, hypothesis)), f"{kind}{form}{named}{negative}{tense}", word
    )


def _two_people(rng: Random, form: str, named: int, negative: bool, tense: str) -> tuple[str, str, list[Act], str]:
    who = people(rng, 3, long=0.2, names=0.5)
    act = acts(rng, 1)[0]
    tense = fitting(tense, act.verb)
    a, b = who[0].premise, who[1].premise
    one, many = predicate(act, tense), predicate(act, tense, plural=True)
    premise = {
        "and": rng.choice((f"{a} and {b} {many}", f"both {a} and {b} {many}", f"{a} {one}, and so did {b}"))
        if tense == "past"
        else rng.choice((f"{a} and {b} {many}", f"both {a} and {b} {many}")),
        "or": rng.choice((f"{a} or {b} {one}", f"either {a} or {b} {one}")),
        "neither": f"neither {a} nor {b} {one}",
        "not first": rng.choice((f"{b} {one}, but {a} {_auxiliary_not(tense)}", f"{b} but not {a} {one}")),
        "not second": rng.choice((f"{a} {one}, but {b} {_auxiliary_not(tense)}", f"{a} but not {b} {one}")),
    }[form]
    return premise, f"{who[named].hypothesis} {predicate(act, tense, negative)}", [act], act.key


def _auxiliary_not(tense: str) -> str:
    return {
        "past": "did not",
        "present": "does not",
        "future": "will not",
        "perfect": "has not",
        "progressive": "was not",
        "ongoing": "is not",
    }[tense]


def _bare(act: Act, tense: str) -> tuple[str, str]:
    """Auxiliary and the rest, so that two acts can share one: ('will', 'sleep'), ('', 'slept')."""
    group = verb_group(act.verb, tense)
    auxiliary, _, form = group.rpartition(" ")
    return auxiliary, f"{form} {act.rest}".rstrip()


def _two_acts(rng: Random, form: str, named: int, negative: bool, tense: str) -> tuple[str, str, list[Act], str]:
    who: Person = people(rng, 1)[0]
    act = acts(rng, 3)
    tense = fitting(tense, *(one.verb for one in act))
    (auxiliary, a), (_, b) = _bare(act[0], tense), _bare(act[1], tense)
    lead = f"{who.premise} {auxiliary}".rstrip()
    premise = {
        "and": rng.choice((f"{lead} {a} and {b}", f"{lead} {a} and also {b}")),
        "or": rng.choice((f"{lead} {a} or {b}", f"{lead} either {a} or {b}")),
        "neither": f"{lead} neither {a} nor {b}",
        "not first": f"{lead} {b}, but {who.hypothesis if who.hypothesis.istitle() else 'that person'} "
        f"{predicate(act[0], tense, True)}",
        "not second": f"{lead} {a}, but {who.hypothesis if who.hypothesis.istitle() else 'that person'} "
        f"{predicate(act[1], tense, True)}",
    }[form]
    premise = premise.replace(f", but {who.hypothesis} ", ", but ").replace(", but that person ", ", but ")
    return premise, f"{who.hypothesis} {predicate(act[named], tense, negative)}", act, act[named].key


def _two_things(rng: Random, form: str, named: int, negative: bool, tense: str) -> tuple[str, str, list[Act], str]:
    who = people(rng, 1)[0]
    kinds = rng.sample([kind for kind in nouns.KINDS if kind not in nouns.BIG_KINDS], 3)
    things = [rng.choice(nouns.KINDS[kind]) for kind in kinds]
    while len(set(things)) < 3:
        things = [rng.choice(nouns.KINDS[kind]) for kind in kinds]
    doing = rng.choice(LOOK_VERBS + HANDLE_VERBS)
    article = "the" if rng.random() < 0.5 else "a"
    a, b = f"{article} {things[0]}", f"{article} {things[1]}"
    lead = f"{who.premise} {verb_group(doing, tense)}"
    premise = {
        "and": rng.choice((f"{lead} {a} and {b}", f"{lead} both {a} and {b}")),
        "or": rng.choice((f"{lead} {a} or {b}", f"{lead} either {a} or {b}")),
        "neither": f"{lead} neither {a} nor {b}",
        "not first": f"{lead} {b} but not {a}",
        "not second": f"{lead} {a} but not {b}",
    }[form]
    hypothesis = f"{who.hypothesis} {verb_group(doing, tense, negative)} {article} {things[named]}"
    return premise, hypothesis, [Act(doing, "")], things[named]


def relative_clause(rng: Random, label: str) -> Draft:
    """A clause inside the subject: whose act is which.

    Entailment: 'The man who thanked the nurse slept.' / 'The man slept.' or 'The man thanked the nurse.'
    Neutral: 'The nurse slept.', 'The nurse thanked the man.' Contradiction: one of the two is denied.
    """
    man, nurse = people(rng, 2, long=0.0, names=0.0)
    if rng.random() < 0.4:
        nurse = people(rng, 1, long=0.2, names=1.0)[0]
    doing, tense = (rng.choice(PERSON_VERBS), rng.choice(("past", "past", "past", "progressive", "ongoing", "future")))
    act = acts(rng, 1)[0]
    while act.verb == doing:
        act = acts(rng, 1)[0]
    by_object = rng.random() < 0.4  # 'the man whom the nurse thanked'
    about_inner = rng.random() < 0.5
    negative = rng.random() < 0.4
    denied = {ENTAILMENT: negative, CONTRADICTION: not negative, NEUTRAL: rng.random() < 0.4}[label]
    inner_denied, outer_denied = (denied, rng.random() < 0.2) if about_inner else (rng.random() < 0.2, denied)
    if by_object:
        clause = f"{rng.choice(('whom', 'that'))} {nurse.premise} {verb_group(doing, 'past', inner_denied)}"
    else:
        clause = f"{rng.choice(('who', 'that'))} {verb_group(doing, 'past', inner_denied)} {nurse.premise}"
    premise = f"{man.premise} {clause} {predicate(act, tense, outer_denied)}"
    if about_inner:
        agent, patient = (nurse, man) if by_object != (label == NEUTRAL) else (man, nurse)
        if rng.random() < 0.2:
            hypothesis = f"{patient.hypothesis} {passive(doing, 'past', negative)} by {agent.hypothesis}"
        else:
            hypothesis = f"{agent.hypothesis} {verb_group(doing, 'past', negative)} {patient.hypothesis}"
    else:
        hypothesis = f"{(nurse if label == NEUTRAL else man).hypothesis} {predicate(act, tense, negative)}"
    premise = aside(rng, premise, [act, Act(doing, "")], tense, 0.1)
    frame = f"{by_object}{about_inner}{negative}{inner_denied}{outer_denied}{tense}"
    return Draft(sentence(premise), sentence(hypothesis), frame, doing.base if about_inner else act.key)
