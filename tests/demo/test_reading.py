"""The reader of the generator's sentences: sentences built from known parts, and sentences written out."""

from random import Random

import pytest

from headviz.demo.reading import NEGATION, OBJECT, QUANTIFIER, RELATIONS, SUBJECT, links
from tools.demo.grammar import TENSES, fitting, sentence, verb_group
from tools.demo.phenomena.short.subjects import subjects
from tools.demo.words.verbs import ACTS_ALONE, ACTS_ON_THINGS


def words(text: str) -> set[tuple[str, str, str]]:
    def at(place: int) -> str:
        return text[place:].split()[0].strip(".,")

    return {(name, at(i), at(j)) for name, i, j in links(text)}


def test_what_the_generator_put_together_is_read_back() -> None:
    rng, read, told = Random(1), 0, 0
    for number in range(400):
        who, act = subjects(rng, 1)[0], rng.choice(ACTS_ALONE + ACTS_ON_THINGS)
        tense, negative = fitting(rng.choice(TENSES), act.verb), rng.random() < 0.5
        quantified = number % 4 == 0
        text = who.text
        if quantified:
            text = f"every {who.noun}"
        plural = who.plural and not quantified
        group = verb_group(act.verb, tense, negative, plural)
        clause = sentence(f"{text} {group} {act.rest}".rstrip())
        verb, noun = group.split()[-1], (who.noun if quantified else who.text).split()[-1]
        if clause.split()[0].lower() == noun.lower():
            noun = clause.split()[0].strip(".")
        gold = {(SUBJECT, noun, verb)}
        if act.rest:
            gold.add((OBJECT, verb, act.rest.split()[-1]))
        if negative:
            gold.add((NEGATION, "not", verb))
        if quantified:
            gold.add((QUANTIFIER, clause.split()[0], noun))
        found = words(clause)
        assert found <= gold, clause  # nothing that the generator did not mean
        read, told = read + len(found), told + len(gold)
    assert read / told > 0.95  # words that can be a noun and a verb are left out


@pytest.mark.parametrize(
    ("text", "related"),
    [
        ("The dog was chased by the cat.", {(SUBJECT, "dog", "chased")}),
        ("Tom never cleaned the old kitchen.", {(SUBJECT, "Tom", "cleaned"), (NEGATION, "never", "cleaned"),
                                                (OBJECT, "cleaned", "kitchen")}),
        ("Not all of the boys slept.", {(QUANTIFIER, "all", "boys"), (SUBJECT, "boys", "slept")}),
        ("The girl who is singing is smiling.", set()),
        ("A pig is over a drum.", set()),
        ("The lake is east of the bridge.", set()),
    ],
)  # fmt: skip
def test_written_out(text: str, related: set[tuple[str, str, str]]) -> None:
    assert words(text) == related


def test_every_relation_occurs_in_the_corpus() -> None:
    from headviz.demo import read_split

    found = [name for one in read_split("dev")[:300] for text in one[:2] for name, _, _ in links(text)]
    assert all(found.count(name) >= 30 for name in RELATIONS)
