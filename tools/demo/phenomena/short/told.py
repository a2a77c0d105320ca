"""Short sentences on who did what: role swap, conjunction, relative clauses."""

from random import Random

from ...example import CONTRADICTION, ENTAILMENT, NEUTRAL, Draft
from ...grammar import fitting, passive, predicate, sentence, verb_group
from ...words import nouns
from ...words.verbs import HANDLE_VERBS, LOOK_VERBS, PERSON_VERBS, Act, Verb, verb
from .. import structure
from .subjects import TENSES, Subject, a_tense, doings, named, subjects

_TO_ANYBODY = (*PERSON_VERBS, verb("love"), verb("like"))
_ANIMALS_DO = tuple(verb(base) for base in "chase follow bite watch see hear ignore scare catch hit like".split())


def role_swap(rng: Random, label: str) -> Draft:
    """'The dog is chasing the cat.' / 'The cat is being chased by the dog.'"""
    first, second = subjects(rng, 2)
    negative = rng.random() < 0.3
    denied = negative != (label == CONTRADICTION)
    if label == NEUTRAL:
        denied = rng.random() < 0.3
    agent, patient = (second, first) if label == NEUTRAL else (first, second)
    same = rng.random() < {ENTAILMENT: 0.0, NEUTRAL: 0.6, CONTRADICTION: 0.5}[label]
    turned = rng.random() < 0.4
    if not first.animal and not first.plural and rng.random() < 0.25:
        giving, getting, _ = rng.choice(structure._CONVERSES)
        thing, tense = (f"{rng.choice(('the', 'a'))} {rng.choice(structure._GOODS)}", a_tense(rng, giving, getting))

        def say(giver: Subject, taker: Subject, negative: bool, turned: bool) -> str:
            if turned:
                return f"{taker.group(getting, tense, negative)} {thing} from {giver.text}"
            return f"{giver.group(giving, tense, negative)} {thing} to {taker.text}"

        frame, word = "transfer", giving.base
    else:
        doing = rng.choice(_ANIMALS_DO if first.animal else _TO_ANYBODY)
        tense = a_tense(rng, doing)

        def say(giver: Subject, taker: Subject, negative: bool, turned: bool) -> str:
            if turned:
                return f"{taker.text} {passive(doing, tense, negative, taker.plural)} by {giver.text}"
            return f"{giver.group(doing, tense, negative)} {taker.text}"

        frame, word = "voice", doing.base
    premise = say(agent, patient, denied, turned if same else not turned)
    hypothesis = say(first, second, negative, turned)
    return Draft(
        sentence(premise), sentence(hypothesis), f"short {frame} {turned} {same} {negative}{denied}{tense}", word
    )


def conjunction(rng: Random, label: str) -> Draft:
    """'The dog or the cat is sleeping.' / 'The dog is sleeping.'; of two subjects, two acts, two things."""
    negative = rng.random() < 0.35
    named_, form = rng.randrange(2), "or"
    if label != NEUTRAL:
        holds = (label == ENTAILMENT) != negative
        if rng.random() < 0.65:
            form = "and" if holds else "neither"
        else:
            form = "not second" if (named_ == 0) == holds else "not first"
    elif rng.random() < 0.35:
        form, named_ = rng.choice(("and", "neither")), 2
    kind = rng.randrange(3)
    who = subjects(rng, 3)
    if kind == 0:
        a, b = who[0].text, who[1].text
        act = doings(rng, 1, who[0].animal)[0]
        tense, many = a_tense(rng, act.verb), who[0].plural
        one, both = predicate(act, tense, plural=many), predicate(act, tense, plural=True)
        premise = {
            "and": rng.choice((f"{a} and {b} {both}", f"both {a} and {b} {both}")),
            "or": rng.choice((f"{a} or {b} {one}", f"either {a} or {b} {one}")),
            "neither": f"neither {a} nor {b} {one}",
            "not first": f"{b} but not {a} {one}",
            "not second": f"{a} but not {b} {one}",
        }[form]
        hypothesis, word = who[named_].does(act, tense, negative), act.key
    else:
        if kind == 1:
            acts = doings(rng, 3, who[0].animal)
            tense = a_tense(rng, *(act.verb for act in acts))
        else:
            doing = rng.choice(LOOK_VERBS + HANDLE_VERBS)
            tense, article = a_tense(rng, doing), rng.choice(("the", "a"))
            kinds = rng.sample([k for k in nouns.KINDS if k not in nouns.BIG_KINDS], 3)
            acts = [Act(doing, named(article, rng.choice(nouns.KINDS[k]))) for k in kinds]
            who = subjects(rng, 1, animals=0.0)
        premise = _joined(rng, form, who[0], acts, tense, kind == 2)
        hypothesis, word = who[0].does(acts[named_], tense, negative), acts[named_].key
    return Draft(sentence(premise), sentence(hypothesis), f"short {kind}{form}{named_}{negative}{tense}", word)


def _joined(rng: Random, form: str, who: Subject, acts: list[Act], tense: str, things: bool) -> str:
    """One subject with two predicates, or with one verb and two objects; an auxiliary is said once."""
    first, second = (predicate(act, tense, plural=who.plural) for act in acts[:2])
    shared = ""
    if things:
        shared = verb_group(acts[0].verb, tense, plural=who.plural)
    elif tense in ("ongoing", "progressive"):
        shared = first.split(" ", 1)[0]
    a, b = first.removeprefix(shared).strip(), second.removeprefix(shared).strip()
    start = f"{who.text} {shared}".rstrip()
    if form == "and":
        return f"{start} {a} and {b}"
    if form == "or":
        return rng.choice((f"{start} {a} or {b}", f"{start} either {a} or {b}"))
    if form == "neither":
        return f"{start} neither {a} nor {b}"
    yes, no = (a, b) if form == "not second" else (b, a)
    if things:
        return f"{start} {yes} but not {no}"
    denied = acts[1] if form == "not second" else acts[0]
    return f"{start} {yes} but {predicate(denied, tense, True, who.plural)}"


def relative_clause(rng: Random, label: str) -> Draft:
    """'The girl who is singing is smiling.' / 'The girl is smiling.'"""
    man, nurse = subjects(rng, 2, names=0.0)
    if not man.animal and rng.random() < 0.3:
        nurse = subjects(rng, 1, names=1.0)[0]
    act, other = doings(rng, 2, man.animal)
    alone = rng.random() < 0.35  # no second person: 'the girl who is singing'
    doing: Verb = rng.choice(_ANIMALS_DO if man.animal else _TO_ANYBODY)
    while doing in (act.verb, other.verb):
        doing = rng.choice(_ANIMALS_DO if man.animal else _TO_ANYBODY)
    tense = fitting(rng.choice(TENSES), act.verb, other.verb if alone else doing)
    by_object = not alone and rng.random() < 0.35
    about_inner = rng.random() < 0.5
    negative = rng.random() < 0.35
    denied = {ENTAILMENT: negative, CONTRADICTION: not negative, NEUTRAL: rng.random() < 0.35}[label]
    inner_denied, outer_denied = (denied, False) if about_inner else (False, denied)
    who = "that" if man.animal or rng.random() < 0.3 else "whom" if by_object else "who"
    if by_object:
        clause = nurse.group(doing, tense, inner_denied)
    elif alone:
        clause = predicate(other, tense, inner_denied, man.plural)
    else:
        clause = f"{verb_group(doing, tense, inner_denied, man.plural)} {nurse.text}"
    premise = f"{man.text} {who} {clause} {predicate(act, tense, outer_denied, man.plural)}"
    if not about_inner:
        hypothesis = (nurse if label == NEUTRAL else man).does(act, tense, negative)
    elif alone:
        hypothesis = (nurse if label == NEUTRAL else man).does(other, tense, negative)
    else:
        agent, patient = (nurse, man) if by_object != (label == NEUTRAL) else (man, nurse)
        hypothesis = f"{agent.group(doing, tense, negative)} {patient.text}"
    return Draft(
        sentence(premise),
        sentence(hypothesis),
        f"short {by_object}{alone}{about_inner}{negative}{denied}{tense}",
        doing.base if about_inner else act.key,
    )
