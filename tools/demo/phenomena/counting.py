"""Quantifiers and numbers: how many of them."""

from random import Random

from ..example import CONTRADICTION, ENTAILMENT, NEUTRAL, Draft
from ..grammar import TENSES, acts, aside, people, predicate, sentence, setting, verb_group
from ..words import nouns
from ..words.verbs import HANDLE_VERBS, LOOK_VERBS, Act

# class -> its wordings: (words before the noun, whether the noun is plural)
_QUANTIFIERS = {
    "all": (("all of the", True), ("all the", True), ("every", False), ("each", False)),
    "most": (("most of the", True), ("most", True)),
    "some": (("some of the", True), ("some", True), ("at least one", False)),
    "none": (("none of the", True), ("no", True), ("not one of the", None)),
    "not all": (("not all of the", True), ("not every", False), ("not all the", True)),
}

# What each class says about the others, when there is at least one of the noun: e, c or n.
_RELATION = {
    "all": {"all": "e", "most": "e", "some": "e", "none": "c", "not all": "c"},
    "most": {"all": "n", "most": "e", "some": "e", "none": "c", "not all": "n"},
    "some": {"all": "n", "most": "n", "some": "e", "none": "c", "not all": "n"},
    "none": {"all": "c", "most": "c", "some": "c", "none": "e", "not all": "e"},
    "not all": {"all": "c", "most": "n", "some": "n", "none": "n", "not all": "e"},
}

_GROUPS = (*nouns.PEOPLE, "child", "pupil")
_CODE = {ENTAILMENT: "e", NEUTRAL: "n", CONTRADICTION: "c"}


def _quantified(rng: Random, name: str, noun: str, act: Act, tense: str, avoid: str = "") -> tuple[str, str]:
    """A quantified clause and its wording, another wording than `avoid`."""
    words, many = rng.choice(_QUANTIFIERS[name])
    while words == avoid:
        words, many = rng.choice(_QUANTIFIERS[name])
    head = noun if many is False else nouns.plural(noun)
    return f"{words} {head} {predicate(act, tense, plural=bool(many))}", words


def quantifier(rng: Random, label: str) -> Draft:
    """All, most, some, none, not all.

    Entailment: 'Every boy slept.' / 'Most of the boys slept.' Neutral: 'Some boys slept.' / 'Not all of the
    boys slept.', or another noun or act. Contradiction: 'None of the boys slept.' / 'Some boys slept.'
    There is always at least one of the noun; 'most' means more than half; 'some' leaves 'all' open.
    """
    noun, other = rng.sample(_GROUPS, 2)
    act, another = acts(rng, 2)
    tense = rng.choice(TENSES)
    shared = setting(rng, tense, place=not act.rest and not another.rest, manner=True)
    stated = rng.choice(tuple(_QUANTIFIERS))
    hypothesis, wording = _quantified(rng, stated, noun, act, tense)
    swap = ""
    if label == NEUTRAL and rng.random() < (1.0 if stated == "none" else 0.25):
        swap = rng.choice(("noun", "act", "class")) if stated == "none" else rng.choice(("noun", "act"))
    if swap in ("noun", "act"):
        known = rng.choice(tuple(_QUANTIFIERS))
    else:
        fitting = [name for name, says in _RELATION.items() if says[stated] == _CODE[label]]
        known = rng.choice(fitting)
    premise, _ = _quantified(
        rng,
        known,
        other if swap == "noun" else noun,
        another if swap == "act" else act,
        tense,
        avoid="" if swap in ("noun", "act") else wording,
    )
    premise = shared.put(rng, premise)
    hypothesis = shared.put(rng, hypothesis)
    if swap == "noun" and rng.random() < 0.4:
        premise += f", and {_quantified(rng, rng.choice(tuple(_QUANTIFIERS)), noun, another, tense)[0]}"
    else:
        premise = aside(rng, premise, [act, another], tense, 0.15)
    return Draft(
        sentence(premise), sentence(hypothesis), f"{known} {stated} {wording} {tense}", f"{noun} {act.verb.base}"
    )


_TOP = 12


def _range(form: str, n: int) -> tuple[int, int]:
    """The counts that a form allows, as (lowest, highest); 99 stands for no upper end."""
    return {
        "": (n, n),
        "exactly": (n, n),
        "only": (n, n),
        "at least": (n, 99),
        "at most": (0, n),
        "more than": (n + 1, 99),
        "fewer than": (0, n - 1),
    }[form]


_FORMS = ("", "", "exactly", "only", "at least", "at most", "more than", "fewer than")


def _relation(known: tuple[int, int], stated: tuple[int, int]) -> str:
    if stated[0] <= known[0] and known[1] <= stated[1]:
        return "e"
    if known[1] < stated[0] or stated[1] < known[0]:
        return "c"
    return "n"


# (form, n) of a hypothesis -> label -> premises that give that label
_PREMISES: dict[tuple[str, int], dict[str, list[tuple[str, int]]]] = {}
for _form in dict.fromkeys(_FORMS):
    for _n in range(3, _TOP):
        _by_label: dict[str, list[tuple[str, int]]] = {"e": [], "n": [], "c": []}
        _PREMISES[_form, _n] = _by_label
        for _given in dict.fromkeys(_FORMS):
            for _m in range(2, _TOP + 1):
                if (_given, _m) != (_form, _n) and abs(_m - _n) <= 4:
                    _by_label[_relation(_range(_given, _m), _range(_form, _n))].append((_given, _m))


def _counted(form: str, n: int, noun: str) -> str:
    return f"{form} {nouns.NUMBERS[n - 1]} {nouns.plural(noun)}".strip()


def number(rng: Random, label: str) -> Draft:
    """Numbers, exact and bounded.

    Entailment: 'Five boys slept.' / 'At least four boys slept.' Neutral: 'More than four boys slept.' /
    'Six boys slept.', or another noun. Contradiction: 'Five boys slept.' / 'Three boys slept.'
    A bare number is exact: five means five, no more and no fewer.
    """
    form, n = rng.choice(_FORMS), rng.randrange(3, _TOP)
    by_label = _PREMISES[form, n]
    swap = label == NEUTRAL and rng.random() < 0.2
    if swap:
        known, m = rng.choice(_FORMS), min(_TOP, max(2, n + rng.randrange(-2, 3)))
    else:
        options = by_label[_CODE[label]]
        plain = [option for option in options if option[0] in ("", "exactly", "only")]
        known, m = rng.choice(plain if plain and rng.random() < 0.5 else options)
    tense = rng.choice(TENSES)
    shared = setting(rng, tense)
    if rng.random() < 0.5:
        noun, other = rng.sample(_GROUPS, 2)
        act, another = acts(rng, 2)
        subject = other if swap else noun
        premise = f"{_counted(known, m, subject)} {predicate(act, tense, plural=True)}"
        hypothesis = f"{_counted(form, n, noun)} {predicate(act, tense, plural=True)}"
        if swap and rng.random() < 0.5:
            premise += f", and {_counted(rng.choice(_FORMS), n, noun)} {predicate(another, tense, plural=True)}"
    else:
        who = people(rng, 1)[0]
        kind, second = rng.sample([k for k in nouns.KINDS if k not in nouns.BIG_KINDS], 2)
        noun, other = rng.choice(nouns.KINDS[kind]), rng.choice(nouns.KINDS[second])
        doing = rng.choice(LOOK_VERBS + HANDLE_VERBS)
        premise = f"{who.premise} {verb_group(doing, tense)} {_counted(known, m, other if swap else noun)}"
        hypothesis = f"{who.hypothesis} {verb_group(doing, tense)} {_counted(form, n, noun)}"
        if swap and rng.random() < 0.3:
            premise += f", but no {nouns.plural(second)}"
        act = Act(doing, "")
    premise = aside(rng, shared.put(rng, premise), [act], tense, 0.1)
    return Draft(sentence(premise), sentence(shared.put(rng, hypothesis)), f"{known} {form} {tense}", f"{n} {noun}")
