"""From words to English: verb groups, clauses, people, shared settings, finished sentences."""

import re
from random import Random
from typing import NamedTuple

from .words import nouns
from .words.adjectives import PERSON_EXTRAS
from .words.verbs import ACTS_ALONE, ACTS_ON_THINGS, Act, Verb

# past, future, present perfect, past progressive, present progressive, present habit; the past is the usual one.
TENSES = ("past",) * 5 + ("future", "future", "perfect", "progressive", "ongoing", "present")

# Verbs of states, which take no progressive form: the past stands in for it.
STATES = frozenset(
    "want like see hear trust remember love hate own possess admire know notice forget forgive mention find "
    "lose".split()
)

_BE = {
    "past": ("was", "were"),
    "present": ("is", "are"),
    "progressive": ("was being", "were being"),
    "ongoing": ("is being", "are being"),
}


def fitting(tense: str, *verbs: Verb) -> str:
    """The same tense without progressive form, if one of the verbs takes none."""
    if tense in ("progressive", "ongoing") and any(verb.base in STATES for verb in verbs):
        return "past" if tense == "progressive" else "present"
    return tense


def be(tense: str, plural: bool = False, negative: bool = False) -> str:
    """The verb 'to be' in one tense."""
    word_not = " not" if negative else ""
    if tense == "future":
        return f"will{word_not} be"
    if tense == "perfect":
        return f"{'have' if plural else 'has'}{word_not} been"
    first, *more = _BE[tense][plural].split()
    return " ".join([first + word_not, *more])


def verb_group(verb: Verb, tense: str, negative: bool = False, plural: bool = False) -> str:
    """An active verb with its auxiliaries: 'did not sleep', 'has slept', 'were sleeping'."""
    word_not = " not" if negative else ""
    tense = fitting(tense, verb)
    if tense == "past":
        return f"did not {verb.base}" if negative else verb.past
    if tense == "present":
        if negative:
            return f"{'do' if plural else 'does'} not {verb.base}"
        return verb.base if plural else verb.third
    if tense == "future":
        return f"will{word_not} {verb.base}"
    if tense == "perfect":
        return f"{'have' if plural else 'has'}{word_not} {verb.participle}"
    return f"{_BE[tense][plural].split()[0]}{word_not} {verb.ing}"


def predicate(act: Act, tense: str, negative: bool = False, plural: bool = False) -> str:
    """A verb group with its object."""
    return f"{verb_group(act.verb, tense, negative, plural)} {act.rest}".rstrip()


def passive(verb: Verb, tense: str, negative: bool = False, plural: bool = False) -> str:
    """A passive verb group: 'was not thanked'."""
    tense = fitting(tense, verb)
    return f"{be(tense, plural, negative)} {verb.participle}"


class Person(NamedTuple):
    """Somebody, as the premise names them (perhaps at length) and as the hypothesis does."""

    premise: str
    hypothesis: str


def people(rng: Random, count: int, long: float = 0.35, names: float = 0.35) -> list[Person]:
    """Different people; `long` is the share of nouns that the premise describes at more length."""
    out: list[Person] = []
    used: set[str] = set()
    while len(out) < count:
        if rng.random() < names:
            head = rng.choice(nouns.NAMES)
            if head not in used:
                out.append(Person(head, head))
        else:
            head = rng.choice(nouns.PEOPLE)
            if head not in used:
                short = f"the {head}"
                out.append(Person(_at_length(rng, head) if rng.random() < long else short, short))
        used.add(head)
    return out


def _at_length(rng: Random, head: str) -> str:
    """A fuller description of the same person; definite, so that it may be dropped under any verb."""
    style = rng.randrange(6)
    adjective = rng.choice(PERSON_EXTRAS)
    if style < 3:
        return f"the {adjective} {head}"
    if style == 3:
        home = rng.choice(nouns.HOMES)
        return f"the {head} from the {home}"
    if style == 4:
        return f"the {adjective} {head} with the {rng.choice(('hat', 'bag', 'umbrella', 'stick', 'camera', 'beard'))}"
    return f"the {head} who {rng.choice(('lives next door', 'works here', 'came from abroad', 'looked tired'))}"


def act(rng: Random) -> Act:
    """Something a person does."""
    return rng.choice(ACTS_ALONE) if rng.random() < 0.45 else rng.choice(ACTS_ON_THINGS)


def acts(rng: Random, count: int) -> list[Act]:
    """Different acts, no two with the same verb or the same object."""
    out: list[Act] = []
    while len(out) < count:
        new = act(rng)
        if all(new.verb != old.verb and (new.rest != old.rest or not new.rest) for old in out):
            out.append(new)
    return out


class Setting(NamedTuple):
    """A time, place or manner that premise and hypothesis share, so that it never changes the label."""

    phrase: str
    movable: bool

    def put(self, rng: Random, clause: str) -> str:
        """The clause with this phrase before or after it."""
        if not self.phrase:
            return clause
        if self.movable and rng.random() < 0.5:
            return f"{self.phrase}, {clause}"
        return f"{clause} {self.phrase}"


MANNERS = tuple("again alone quickly quietly slowly suddenly calmly secretly happily carefully".split())


def setting(rng: Random, tense: str, place: bool = False, manner: bool = False) -> Setting:
    """A shared setting that suits a tense (often none); places and manners only where they are allowed."""
    draw = rng.random()
    if draw < 0.25 and tense in ("past", "progressive"):
        return Setting(rng.choice(nouns.PAST_TIMES), True)
    if draw < 0.25 and tense == "future":
        return Setting(rng.choice(nouns.FUTURE_TIMES), True)
    if place and 0.25 < draw < 0.4:
        return Setting(rng.choice(nouns.PLACES), rng.random() < 0.5)
    if manner and 0.4 < draw < 0.48:
        return Setting(rng.choice(MANNERS), False)
    return Setting("", False)


def aside(rng: Random, clause: str, used: list[Act], tense: str, share: float = 0.2) -> str:
    """The clause, sometimes joined to another about somebody else that decides nothing."""
    if rng.random() >= share:
        return clause
    somebody = rng.choice(ASIDE_PEOPLE)
    while somebody in clause:
        somebody = rng.choice(ASIDE_PEOPLE)
    doing = act(rng)
    while any(doing.verb == old.verb or (doing.rest and doing.rest == old.rest) for old in used):
        doing = act(rng)
    other = f"{somebody} {predicate(doing, tense, plural=somebody in PLURAL_ASIDE)}"
    joint = rng.randrange(4)
    if joint == 0:
        return f"{clause}, and {other}"
    if joint == 1:
        return f"{clause}, but {other}"
    if joint == 2:
        return f"{clause}. {capital(other)}"
    return f"{other}, and {clause}"


ASIDE_PEOPLE = tuple(
    "the neighbors|the children|the twins|the police|the crowd|the old man|the others|my friend|my sister|"
    "my brother|our boss|the whole family|the team|the audience".split("|")
)
# Of these, the ones that take a plural verb; kept apart because only present and perfect show it.
PLURAL_ASIDE = frozenset({"the neighbors", "the children", "the twins", "the police", "the others"})

_CONTRACTIBLE = re.compile(r"\b(did|does|do|has|have|was|were|is|are|will) not\b")


def contracted(text: str) -> str:
    """The text with "didn't" for "did not", and so on."""
    return _CONTRACTIBLE.sub(lambda found: "won't" if found[1] == "will" else f"{found[1]}n't", text)


_BEFORE_VOWEL = re.compile(r"\b([Aa]) (?=[aeiou])")


def capital(text: str) -> str:
    """The text with its first letter raised."""
    return text[0].upper() + text[1:]


def sentence(text: str) -> str:
    """A finished sentence: capital letter, 'an' before vowels, full stop."""
    return _BEFORE_VOWEL.sub(r"\1n ", capital(text)) + "."
