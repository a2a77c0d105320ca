"""The forms of verbs and nouns that sentences are made of: what `headviz.demo.reading` reads them by."""

from .words import nouns
from .words.verbs import ACTS_ALONE, ACTS_ON_THINGS, HANDLE_VERBS, LOOK_VERBS, PERSON_VERBS


def verb_forms() -> set[str]:
    every = [*(act.verb for act in (*ACTS_ALONE, *ACTS_ON_THINGS)), *PERSON_VERBS, *LOOK_VERBS, *HANDLE_VERBS]
    return {form for one in every for form in one}


def noun_forms() -> set[str]:
    things = {act.rest.split()[-1] for act in ACTS_ON_THINGS if act.rest}
    members = (member for kind in nouns.KINDS.values() for member in kind)
    things |= {*nouns.PEOPLE, *nouns.ANIMALS, "child", *nouns.KINDS, *members}
    return {*things, *map(nouns.plural, things), *(name.lower() for name in nouns.NAMES)}
