"""What is shipped: files, data, coverage, card."""

import json
from pathlib import Path

import numpy as np
import pytest

import headviz
from headviz import HeadMask, demo
from headviz.demo import DATA, reading
from headviz.demo.reading import LABELS, NEGATION, OBJECT, QUANTIFIER, SUBJECT, links
from headviz.errors import UserError
from headviz.heads import HeadId
from headviz.scores import SCORES
from support.loaded import loaded_by

pytestmark = pytest.mark.skipif(not demo.DATA.is_dir(), reason="the demo model is not packed in this checkout")


def test_reading_data_needs_neither_torch_nor_transformers() -> None:
    reads = "demo.read_split('dev'); demo.vocabulary_coverage('a dog'); demo.PHENOMENA"
    assert loaded_by(f"from headviz import demo; {reads}", "torch", "transformers", "numpy") == []


def test_all_together_stays_small() -> None:
    from tools.demo import ship

    assert sum(path.stat().st_size for path in demo.DATA.rglob("*") if path.is_file()) < ship.LIMIT


def test_there_are_20_000_training_pairs_and_no_more() -> None:
    few, many = (headviz.load_task("demo", split="train", limit=limit) for limit in (3_000, 20_000))
    assert (len(few), len(many)) == (3_000, 20_000)
    assert many.texts[:3_000] == few.texts
    assert len(headviz.load_task("demo", split="train")) == 2_600
    with pytest.raises(UserError, match="20,000 training examples, and the limit asks for more"):
        headviz.load_task("demo", split="train", limit=20_001)
    assert len(headviz.load_task("demo", split="unseen", limit=20_001)) == 1_300


@pytest.mark.parametrize("name", demo.PHENOMENA[:3])
def test_minimal_pairs_differ_in_their_label_and_a_seed_reorders_them(name: str) -> None:
    pairs = headviz.minimal_pairs(name, 1_000)
    assert len(set(pairs)) == len(pairs) == 200
    assert all(one.label != other.label and one.phenomenon == other.phenomenon == name for one, other in pairs)
    assert headviz.minimal_pairs(name, 5) == pairs[:5]
    other = headviz.minimal_pairs(name, 1_000, seed=1)
    assert other != pairs
    assert set(other) == set(pairs)


def test_shipped_splits_never_meet() -> None:
    texts = {split: {(row.premise, row.hypothesis) for row in demo.read_split(split)} for split in demo.FILES}
    assert not texts["train"] & (texts["dev"] | texts["unseen"])
    assert not texts["dev"] & texts["unseen"]


@pytest.mark.parametrize("call", [lambda: demo.demo_folder("tuned"), lambda: demo.read_split("test")])
def test_wrong_names_are_answered_with_the_right_ones(call: object) -> None:
    with pytest.raises(UserError, match=r"It has: .*(finetuned|dev)"):
        call()  # type: ignore[operator]


def test_missing_files_say_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(demo, "DATA", tmp_path)
    monkeypatch.setattr(reading, "DATA", tmp_path)
    with pytest.raises(UserError, match="Reinstall headviz"):
        demo.demo_folder("finetuned")
    with pytest.raises(UserError, match="Reinstall headviz"):
        demo.read_split.__wrapped__("dev")


def test_coverage_names_unknown_and_rare_words_once() -> None:
    result = demo.vocabulary_coverage("The zebra didn't thank the zebra, and Quentin won’t.")
    assert result.unknown == ("zebra", "quentin")
    known = demo.vocabulary_coverage("The doctor didn't thank the nurse.")
    assert (known.unknown, known.rare) == ((), ())
    rare = next(word for word, count in demo._word_counts().items() if count < demo.RARE)
    assert demo.vocabulary_coverage(f"The {rare} nurse.").rare == (rare,)
    assert demo.vocabulary_coverage("").words == 0


@pytest.mark.slow
def test_both_models_load_and_have_the_documented_shape() -> None:
    classifier, pretrained = headviz.load("demo"), headviz.load("demo-pretrained", masked_lm=True)
    for one in (classifier, pretrained):
        assert (one.num_layers, one.num_heads, one.heads_per_layer) == (12, 12, [12] * 12)
    assert classifier.labels == LABELS
    assert classifier.digest != pretrained.digest


def test_shipped_scores_are_of_the_shipped_weights_and_claim_no_more_than_was_measured() -> None:
    pairs = json.loads((demo.DATA / "scores.json").read_text())["scores"]
    tuned = {table["score"]: table for table in pairs if table["weights"] == "fine-tuned"}
    assert {"conductance-spearman", "taylor", "ablation", "fisher"} < set(tuned) <= set(SCORES)
    drawn = headviz.sample(headviz.load_task("demo", split="train"), tuned["taylor"]["samples"], seed=0)
    assert tuned["taylor"]["settings"]["data"] == tuned["ablation"]["settings"]["data"] == drawn.digest
    now = headviz.score_heads(headviz.load("demo", device="cpu"), headviz.load_task("demo"), "magnitude")
    np.testing.assert_allclose(np.array(tuned["magnitude"]["values"]), now.values, rtol=1e-5)
    (fresh,) = [table for table in pairs if table["weights"] == "pre-trained"]
    assert fresh["settings"]["fresh_heads"] == 3
    assert fresh["stability"] is None  # a mean over heads: no sample was drawn again


@pytest.mark.slow
def test_the_card_tells_the_truth_about_heads() -> None:
    """Two phenomena measured again, on the half of the dev set that the card reports."""
    clf, data = headviz.load("demo"), headviz.load_task("demo")
    heads, full = demo.card_figures()["heads"], headviz.HeadMask.full(12, 12)
    names, gold = np.array(data.slices), np.asarray(data.gold)
    for row in heads["sets"][2:4]:
        own = np.flatnonzero(names == row["phenomenon"])[1::2]
        right = [
            headviz.evaluate(clf, data.subset(own.tolist()), mask).predictions == gold[own]
            for mask in (full, full.without([HeadId.parse(head) for head in row["heads"]]))
        ]
        assert right[0].mean() - right[1].mean() == pytest.approx(row["cost"], abs=0.01)


# the reader of the generator's sentences: sentences built from known parts, and sentences written out


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


# the shipped translation model: small, good, and as its card says -----------------------------------


FOLDER = DATA / "translation"
shipped = pytest.mark.skipif(not (FOLDER / "config.json").exists(), reason="this checkout has no demo data")


@pytest.mark.slow
@shipped
def test_it_translates() -> None:
    clf = headviz.load("demo-translation", device="cpu")
    assert clf.kind == "translation"
    assert (clf.num_layers, clf.num_heads) == (9, 8)
    data = headviz.load_task("demo-translation", limit=70)
    result = headviz.evaluate(clf, data)
    assert result.metrics["bleu"] >= 90
    assert result.cut == 0
    cross = HeadMask.full(9, 8).without([(row, head) for row in clf.stacks["cross"] for head in range(8)])
    assert headviz.evaluate(clf, data, cross).metrics["bleu"] < 20


@shipped
def test_the_card_is_that_of_these_weights() -> None:
    from tools.demo.train_translation import Recipe
    from tools.demo.translation.card import text

    card = json.loads((FOLDER / "card.json").read_text())
    recipe, facts = (json.loads((FOLDER / f"{name}.json").read_text()) for name in ("recipe", "facts"))
    assert card["digest"] == headviz.load("demo-translation", device="cpu").digest
    assert card["dev"]["bleu"] >= 90
    assert (FOLDER / "MODEL_CARD.md").read_text() == text(card, recipe, facts)
    assert Recipe(**recipe) == Recipe()
