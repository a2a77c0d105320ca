"""Short sentences with quantifiers and numbers."""

from random import Random

from ...example import NEUTRAL, Draft
from ...grammar import predicate, sentence, verb_group
from ...words import nouns
from ...words.verbs import HANDLE_VERBS, LOOK_VERBS, Act
from .. import counting
from .subjects import ANIMALS, a_tense, doings, subjects

_QUANTIFIERS = {
    "all": (("all", True), ("all the", True), ("every", False), ("each", False), ("all of the", True)),
    "most": (("most", True), ("most of the", True)),
    "some": (("some", True), ("some of the", True), ("at least one", False)),
    "none": (("no", True), ("none of the", True), ("no", False)),
    "not all": (("not all", True), ("not every", False), ("not all of the", True)),
}


def quantifier(rng: Random, label: str) -> Draft:
    """'Some girls are dancing.' / 'All girls are dancing.'"""
    animal = rng.random() < 0.35
    noun, other = rng.sample(ANIMALS if animal else (*nouns.PEOPLE, "child", "pupil"), 2)
    act, another = doings(rng, 2, animal)
    tense = a_tense(rng, act.verb, another.verb)
    said = rng.choice(tuple(_QUANTIFIERS))
    words, many = rng.choice(_QUANTIFIERS[said])
    swap = label == NEUTRAL and (said == "none" or rng.random() < 0.25)
    subject, doing = noun, act
    if swap:
        given = rng.choice(tuple(_QUANTIFIERS))
        if rng.random() < 0.5:
            subject = other
        else:
            doing = another
    else:
        given = rng.choice([name for name, says in counting._RELATION.items() if says[said] == counting._CODE[label]])
    given_words, given_many = rng.choice(_QUANTIFIERS[given])
    while given == said and (given_words, given_many) == (words, many) and not swap:
        given_words, given_many = rng.choice(_QUANTIFIERS[given])

    def say(words: str, many: bool, head: str, act: Act) -> str:
        return f"{words} {nouns.plural(head) if many else head} {predicate(act, tense, plural=many)}"

    return Draft(
        sentence(say(given_words, given_many, subject, doing)),
        sentence(say(words, many, noun, act)),
        f"short {given} {said} {words} {tense}",
        f"{noun} {act.verb.base}",
    )


def number(rng: Random, label: str) -> Draft:
    """'Three dogs are sleeping.' / 'At least two dogs are sleeping.'"""
    form, n = rng.choice(counting._FORMS), rng.randrange(3, counting._TOP)
    swap = label == NEUTRAL and rng.random() < 0.2
    if swap:
        given, m = rng.choice(counting._FORMS), min(counting._TOP, max(2, n + rng.randrange(-2, 3)))
    else:
        options = counting._PREMISES[form, n][counting._CODE[label]]
        plain = [option for option in options if option[0] in ("", "exactly", "only")]
        given, m = rng.choice(plain if plain and rng.random() < 0.6 else options)
    if rng.random() < 0.5:
        animal = rng.random() < 0.4
        noun, other = rng.sample(ANIMALS if animal else (*nouns.PEOPLE, "child"), 2)
        act = doings(rng, 1, animal)[0]
        lead, rest = "", f" {predicate(act, tense := a_tense(rng, act.verb), plural=True)}"
    else:
        who = subjects(rng, 1, animals=0.0)[0]
        kinds = rng.sample([kind for kind in nouns.KINDS if kind not in nouns.BIG_KINDS], 2)
        noun, other = (rng.choice((kind, rng.choice(nouns.KINDS[kind]))) for kind in kinds)
        doing = rng.choice(LOOK_VERBS + HANDLE_VERBS)
        lead, rest = f"{who.text} {verb_group(doing, tense := a_tense(rng, doing), plural=who.plural)} ", ""
    premise = f"{lead}{counting._counted(given, m, other if swap else noun)}{rest}"
    hypothesis = f"{lead}{counting._counted(form, n, noun)}{rest}"
    return Draft(sentence(premise), sentence(hypothesis), f"short {given} {form} {tense}", f"{n} {noun}")
