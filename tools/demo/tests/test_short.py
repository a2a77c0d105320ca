"""Short sentences: right labels, balanced, in their own splits; and the simple pairs written by hand."""

import re
from collections import Counter
from functools import cache

import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression

from headviz import demo
from headviz.demo.reading import LABELS, Example
from tools.demo.batches import stream
from tools.demo.corpus import SPLITS, generate
from tools.demo.phenomena import PHENOMENA, polarity
from tools.demo.phenomena.short import SHORT, subjects
from tools.demo.simple import simple_pairs, simple_texts
from tools.demo.simple_pairs import report
from tools.demo.tests.checks import _AUXILIARIES, _LEMMAS, CHECKS
from tools.demo.words import adjectives, nouns, verbs

_BEARERS = (noun for kinds in adjectives.BEARERS.values() for noun in kinds)
_SYNONYMS = (noun for _, noun, _ in adjectives.pairs(adjectives.NOUN_SYNONYMS))
_KINDS = (noun for kind, members in nouns.KINDS.items() for noun in (kind, *members))
_ALL = {*nouns.PEOPLE, *nouns.ANIMALS, *nouns.THINGS, *_BEARERS, *_SYNONYMS, "child", "animal", "plant"}
SINGULAR = {nouns.plural(noun): noun for noun in (_ALL | set(_KINDS)) - {"fish", "trout", "salmon"}}
_DESCRIBED = "|".join({*subjects._OF_ANIMALS, *subjects._OF_PEOPLE})
_VERB_FORMS = {act.verb.third for act in verbs.ACTS_ON_THINGS} | {verb.third for verb in verbs.LOOK_VERBS}
_EVERYBODY = (*polarity._NOBODY, "one", *polarity._SOMEBODY, *polarity._EVERYBODY)
_VERBS = {*_LEMMAS, *_AUXILIARIES}
_AGREED = {"are": "is", "were": "was", "do": "does", "have": "has"}


@cache
def short_pairs(split: str) -> list[Example]:
    return list(generate(split, 1170, seed=5, short=1.0))


def as_long(text: str) -> str:
    """The sentence in the form that the second rules read: every noun definite and singular."""
    text = re.sub(r"\b(are|were|do)n't", r"\1 not", text[0].lower() + text[1:].rstrip("."))
    text = re.sub(rf"\b(?:{_DESCRIBED}) (?=({'|'.join([*SINGULAR, *_ALL])})\b)", "", text)
    text = re.sub(r"\b(?:an?|the) ", "the ", text, flags=re.IGNORECASE)
    out: list[str] = []
    words = text.split()
    for word, follows in zip(words, [*words[1:], ""], strict=True):
        bare, mark = word.rstrip(".,").lower(), word[len(word.rstrip(".,")) :]
        before = out[-1] if out else ""
        after_subject = before in _ALL or before.capitalize() in nouns.NAMES or before in _EVERYBODY
        # a second act, and no second subject
        after_subject |= before == "and" and follows not in _VERBS
        if bare in SINGULAR and not (after_subject and bare in _VERB_FORMS):
            out += ["the", SINGULAR[bare] + mark]
        else:
            out.append(_AGREED.get(word, word))
    return " ".join(out) + "."


def kinds(premise: str, hypothesis: str) -> str:
    """What follows from kinds and members, from the nouns that differ and from who denies."""
    members = {kind: set(some) for kind, some in nouns.KINDS.items()} | {"animal": set(nouns.ANIMALS), "plant": set()}
    for kind, above in nouns.ABOVE_KINDS.items():
        members[above] |= {kind} | members[kind]

    def parse(text: str) -> tuple[bool, list[str]]:
        text = re.sub(r"n't\b", " not", text.lower().rstrip("."))
        words = [SINGULAR.get(word, word) for word in text.split()]
        named = [word for word in words if word in members or any(word in some for some in members.values())]
        return not {"no", "not"} & set(words), named or [word for word in words if word in nouns.PEOPLE]

    (given, some), (said, others) = parse(premise), parse(hypothesis)
    one, other = some[-1], others[-1]
    up, down = other == one or one in members.get(other, ()), other == one or other in members.get(one, ())
    if premise.startswith("The ") and premise.split()[1] in (one, f"{one}s"):  # one being, named twice
        return ("entailment" if given == said else "contradiction") if up else "neutral"
    if given and up:
        return "entailment" if said else "contradiction"
    if not given and down:
        return "contradiction" if said else "entailment"
    return "neutral"


def quantities(premise: str, hypothesis: str) -> str:
    def long(text: str) -> str:
        text = re.sub(r"^(Not all|All|Most) (?!of |the )", r"\1 of the ", text)
        return re.sub(
            r"^No (\w+)", lambda m: f"No {m[1] if m[1] in SINGULAR or m[1] == 'children' else nouns.plural(m[1])}", text
        )

    return CHECKS["quantifier"](long(premise), long(hypothesis))


def second_label(phenomenon: str, premise: str, hypothesis: str) -> str:
    if phenomenon == "hypernym":
        return kinds(premise, hypothesis)
    if phenomenon == "quantifier":
        return quantities(premise, hypothesis)
    if phenomenon == "number":
        return CHECKS["number"](premise, hypothesis)
    if phenomenon == "negation":
        premise = re.sub(rf" (?:{'|'.join(nouns.PLACES)})\.$", ".", premise)
    return CHECKS[phenomenon](as_long(premise), as_long(hypothesis))


@pytest.mark.parametrize("phenomenon", PHENOMENA)
def test_a_second_rule_gives_the_same_label(phenomenon: str) -> None:
    for split in SPLITS:
        for pair in short_pairs(split):
            if pair.phenomenon == phenomenon:
                assert second_label(phenomenon, pair.premise, pair.hypothesis) == pair.label, pair


def test_the_second_rules_can_disagree() -> None:
    assert kinds("A dog sleeps.", "An animal sleeps.") == "entailment"
    assert kinds("An animal sleeps.", "A dog sleeps.") == "neutral"
    assert kinds("No animals sleep.", "No dogs sleep.") == "entailment"
    assert kinds("The dog does not sleep.", "The animal sleeps.") == "contradiction"
    assert as_long("Hungry dogs aren't chasing cats.") == "the dog is not chasing the cat."
    assert quantities("All boys sleep.", "Not every boy sleeps.") == "contradiction"


@pytest.mark.parametrize("split", SPLITS)
def test_phenomena_and_labels_are_balanced(split: str) -> None:
    counts = Counter((pair.phenomenon, pair.label) for pair in short_pairs(split))
    assert counts == {(name, label): 30 for name in SHORT for label in LABELS}
    assert tuple(SHORT) == tuple(PHENOMENA)


def test_sentences_are_short_finished_and_of_every_kind() -> None:
    texts = [text for pair in short_pairs("train") for text in (pair.premise, pair.hypothesis)]
    for text in texts:
        assert re.fullmatch(r"[A-Z][A-Za-z', ]*(?:\. [A-Z][A-Za-z' ]*)?\.", text), text
        assert "  " not in text
        assert len(text.split()) < 20, text
        assert not re.search(r"\ba [aeiou]|\ban [^aeiou]", text.lower()), text
    starts = Counter(text.split()[0] for text in texts)
    assert min(starts["The"], starts["A"] + starts["An"]) > 300
    assert sum(count for word, count in starts.items() if word.lower() in SINGULAR) > 300
    tenses = Counter(re.search(r"\b(is|are|was|were) (?:not )?\w+ing\b", text) is not None for text in texts)
    assert 0.2 < tenses[True] / len(texts) < 0.6


def test_a_share_of_short_pairs_leaves_the_long_ones_alone() -> None:
    assert list(generate("train", 300, seed=3)) == list(generate("train", 300, seed=3, short=0.0))
    mixed = list(generate("train", 1950, seed=3, short=0.5))
    assert mixed == list(generate("train", 1950, seed=3, short=0.5))
    assert not any(", but no " in pair.premise for pair in mixed)
    lengths = [sum(len(text.split()) for text in pair[:2]) for pair in mixed]
    alone = [sum(len(text.split()) for text in pair[:2]) for pair in short_pairs("train")]
    assert sum(lengths) / len(lengths) > 1.1 * sum(alone) / len(alone)


def test_a_hypothesis_alone_says_little_about_its_label() -> None:
    vectors = CountVectorizer(ngram_range=(1, 2), min_df=3, token_pattern=r"[a-z]+")
    train = list(generate("train", 7800, seed=21, short=1.0))
    seen = vectors.fit_transform([pair.hypothesis.lower() for pair in train])
    model = LogisticRegression(C=0.3, max_iter=200).fit(seen, [pair.label for pair in train])
    read = vectors.transform([pair.hypothesis.lower() for pair in short_pairs("dev")])
    assert (model.predict(read) == [pair.label for pair in short_pairs("dev")]).mean() < 0.43  # chance is 0.333


def test_simple_pairs_cover_all_kinds_and_are_in_no_split() -> None:
    pairs = simple_pairs()
    assert len(pairs) == len(simple_texts()) == 200
    assert {pair.example.phenomenon for pair in pairs} == set(PHENOMENA)
    assert {pair.tense for pair in pairs} == {"present", "past", "progressive"}
    assert {pair.subject for pair in pairs} == {"definite", "indefinite", "bare", "name", "quantified"}
    assert min(Counter(pair.example.label for pair in pairs).values()) > 50
    for split in demo.FILES:
        assert not simple_texts() & {(row.premise, row.hypothesis) for row in demo.read_split(split)}


def test_a_simple_pair_that_the_rules_make_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    first = next(generate("train", 1, seed=8, short=1.0))
    monkeypatch.setattr("tools.demo.corpus.simple_texts", lambda: frozenset({first[:2]}))
    assert next(generate("train", 1, seed=8, short=1.0))[:2] != first[:2]


def test_training_reads_the_share_of_short_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[float] = []

    def seen(split: str, count: int, seed: int, short: float) -> object:
        asked.append(short)
        return generate(split, count, seed, short)

    monkeypatch.setattr("tools.demo.batches.generate", seen)
    monkeypatch.setattr("tools.demo.batches.BATCHES_PER_CHUNK", 2)
    import headviz

    next(stream(headviz.load("demo").tokenizer, 4, 0, "short", short=0.5))
    assert asked == [0.5]


def test_the_report_counts_right_answers_and_unsure_ones() -> None:
    import torch

    pairs = simple_pairs()[:3]
    result = torch.full((3, 3), 0.3)
    for row, pair in enumerate(pairs):
        result[row, LABELS.index(pair.example.label)] = 0.9
    result[2] = torch.tensor([0.4, 0.35, 0.25])
    share, table = report(pairs, result)
    assert share == pytest.approx(2 / 3)
    assert "all 2 of 3, 66.7%; 1 answers below .5" in table
    assert pairs[2].example.premise in table
