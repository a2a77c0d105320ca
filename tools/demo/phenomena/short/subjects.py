"""Who short sentences speak of, what they do, and in which tense."""

from random import Random
from typing import NamedTuple

from ...grammar import fitting, predicate, verb_group
from ...words import nouns
from ...words.verbs import ACTS_ALONE, ACTS_ON_THINGS, Act, Verb, verb

# Present and progressive mostly, since the longer sentences are mostly in the past.
TENSES = ("present", "present", "ongoing", "ongoing", "ongoing", "past", "past", "progressive")
ARTICLES = ("the", "a", "")  # the last one is a bare plural
_OF_ANIMALS = tuple("old young big small brown black white hungry".split())
_OF_PEOPLE = tuple("old young tall hungry tired famous friendly rich".split())

_ALSO_ALONE = tuple(Act(verb(base), "") for base in "eat drink read write play cook paint study hunt".split())
_ANIMALS_DO = tuple(
    Act(verb(base), "")
    for base in "sleep swim run walk jump wait rest leave arrive fall sneeze escape stay relax eat drink".split()
)
# those that the tokenizer has as one word
ANIMALS = tuple("dog cat horse cow goat pig rabbit camel".split())
_NO_ARTICLE = frozenset("grass bread soup milk juice tea coffee dinner".split())
_ALWAYS_THE = frozenset("stairs".split())


class Subject(NamedTuple):
    """Somebody: how they are named, the noun alone, whether many, whether an animal."""

    text: str
    noun: str
    plural: bool
    animal: bool

    def does(self, act: Act, tense: str, negative: bool = False) -> str:
        """A clause about this subject."""
        return f"{self.text} {predicate(act, tense, negative, self.plural)}"

    def group(self, doing: Verb, tense: str, negative: bool = False) -> str:
        """The same without an object."""
        return f"{self.text} {verb_group(doing, tense, negative, self.plural)}"


def named(article: str, noun: str) -> str:
    """The noun under its article; the plural where there is none."""
    return f"{article} {noun}" if article else nouns.plural(noun)


def with_article(article: str, noun: str, animal: bool = False) -> Subject:
    """The subject that a noun makes."""
    return Subject(named(article, noun), noun, not article, animal)


def subjects(rng: Random, count: int, animals: float = 0.4, names: float = 0.25) -> list[Subject]:
    """Different subjects of one kind: names, or nouns that all have the same article."""
    if rng.random() < names:
        return [Subject(name, name, False, False) for name in rng.sample(nouns.NAMES, count)]
    article, animal = rng.choice(ARTICLES), rng.random() < animals
    pool = ANIMALS if animal else (*nouns.PEOPLE, "child")
    return [with_article(article, noun, animal) for noun in rng.sample(pool, count)]


def described(rng: Random, who: Subject) -> Subject | None:
    """The same subject with an adjective, which may be left out again; None for names."""
    if who.text == who.noun and not who.plural:
        return None
    adjective = rng.choice(_OF_ANIMALS if who.animal else _OF_PEOPLE)
    article, _, rest = who.text.rpartition(" ")
    return who._replace(text=f"{article} {adjective} {rest}".strip())


def doings(rng: Random, count: int, animal: bool = False) -> list[Act]:
    """Different acts that such subjects do, no two with the same verb."""
    out: list[Act] = []
    while len(out) < count:
        if animal:
            new = rng.choice(_ANIMALS_DO)
        elif rng.random() < 0.6:
            new = rng.choice(ACTS_ALONE + _ALSO_ALONE)
        else:
            new = _on_something(rng, rng.choice(ACTS_ON_THINGS))
        if all(new.verb != old.verb and (new.rest != old.rest or not new.rest) for old in out):
            out.append(new)
    return out


def _on_something(rng: Random, act: Act) -> Act:
    noun = act.rest.removeprefix("the ")
    if noun in _ALWAYS_THE or rng.random() < 0.4:
        return act
    return Act(act.verb, noun if noun in _NO_ARTICLE else f"a {noun}")


def a_tense(rng: Random, *verbs: Verb) -> str:
    """A tense that all these verbs have."""
    return fitting(rng.choice(TENSES), *verbs)
