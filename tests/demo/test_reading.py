"""The reader of the generator's sentences: sentences built from known parts, and sentences written out."""

import pytest

from headviz.demo.reading import NEGATION, OBJECT, QUANTIFIER, RELATIONS, SUBJECT, links


def words(text: str) -> set[tuple[str, str, str]]:
    def at(place: int) -> str:
        return text[place:].split()[0].strip(".,")

    return {(name, at(i), at(j)) for name, i, j in links(text)}


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

    result = [name for one in read_split("dev")[:300] for text in one[:2] for name, _, _ in links(text)]
    assert all(result.count(name) >= 30 for name in RELATIONS)
