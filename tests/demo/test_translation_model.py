"""The shipped translation model: small, good, and as its card says."""

import json

import pytest

import headviz
from headviz import HeadMask
from headviz.demo import DATA
from tools.demo.train_translation import Recipe
from tools.demo.translation.card import text

FOLDER = DATA / "translation"
shipped = pytest.mark.skipif(not (FOLDER / "config.json").exists(), reason="this checkout has no demo data")


@pytest.mark.slow
@shipped
def test_it_translates() -> None:
    clf = headviz.load("demo-translation", device="cpu")
    assert clf.kind == "translation"
    assert (clf.num_layers, clf.num_heads) == (9, 8)
    data = headviz.load_task("demo-translation", limit=140)
    result = headviz.evaluate(clf, data)
    assert result.metrics["bleu"] >= 90
    assert result.cut == 0
    cross = HeadMask.full(9, 8).without([(row, head) for row in clf.stacks["cross"] for head in range(8)])
    assert headviz.evaluate(clf, data, cross).metrics["bleu"] < 20


@shipped
def test_the_card_is_that_of_these_weights() -> None:
    card = json.loads((FOLDER / "card.json").read_text())
    recipe, facts = (json.loads((FOLDER / f"{name}.json").read_text()) for name in ("recipe", "facts"))
    assert card["digest"] == headviz.load("demo-translation", device="cpu").digest
    assert card["dev"]["bleu"] >= 90
    assert (FOLDER / "MODEL_CARD.md").read_text() == text(card, recipe, facts)
    assert Recipe(**recipe) == Recipe()


@shipped
def test_it_is_small() -> None:
    assert sum(p.stat().st_size for p in FOLDER.iterdir()) < 5 * 2**20
