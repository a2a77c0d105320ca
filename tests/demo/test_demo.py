"""What is shipped: files, data, coverage, card."""

import gzip
import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import headviz
from headviz import demo
from headviz.demo import tables, translation
from headviz.demo.example import LABELS
from headviz.errors import UserError
from headviz.heads import HeadId
from headviz.scores import SCORES
from support.loaded import loaded_by
from tools.demo import card as card_module
from tools.demo import ship
from tools.demo.corpus import generate
from tools.demo.forms import noun_forms, verb_forms
from tools.demo.minimal_pairs import minimal_pairs as made_minimal_pairs
from tools.demo.phenomena import PHENOMENA
from tools.demo.translation import corpus as translations

pytestmark = pytest.mark.skipif(not demo.DATA.is_dir(), reason="the demo model is not packed in this checkout")


def test_reading_data_needs_neither_torch_nor_transformers() -> None:
    reads = "demo.read_split('dev'); demo.vocabulary_coverage('a dog'); demo.phenomenon_names()"
    assert loaded_by(f"from headviz import demo; {reads}", "torch", "transformers", "numpy") == []


def test_all_together_stays_small() -> None:
    assert sum(path.stat().st_size for path in demo.DATA.rglob("*") if path.is_file()) < ship.LIMIT


@pytest.mark.parametrize("split", demo.FILES)
def test_splits_are_balanced(split: str) -> None:
    rows = demo.read_split(split)
    each = ship.PER_PHENOMENON[split]
    counts = Counter((row.phenomenon, row.label) for row in rows)
    assert len(rows) == each * len(demo.phenomenon_names())
    assert set(counts) == {(name, label) for name in demo.phenomenon_names() for label in LABELS}
    assert max(counts.values()) - min(counts.values()) <= 2


@pytest.mark.slow
@pytest.mark.parametrize("split", demo.FILES)
def test_splits_follow_from_the_generator(split: str) -> None:
    rows = demo.read_split(split)
    assert rows == tuple(generate(split, len(rows), ship.SEED, ship.short_share()))


@pytest.mark.slow
def test_longer_tables_follow_from_the_generators() -> None:
    """Of the minimal pairs, those of three phenomena: the whole takes minutes."""
    assert list(demo.read_more("train", ship.MANY)) == ship.many_pairs(ship.short_share())
    for split in translation.SPLITS:
        made = translations.generate(split, translations.SHIPPED[split])
        assert list(translation.read_split(split)) == list(made)
    assert [(kind, *word) for kind, words in translation.word_list().items() for word in words] == ship.word_list()
    for name in ("synonym", "number", "negation"):
        assert headviz.minimal_pairs(name, ship.MINIMAL) == made_minimal_pairs(name, ship.MINIMAL)


def test_what_is_shipped_knows_the_generators_words_and_phenomena() -> None:
    assert demo.phenomenon_names() == tuple(PHENOMENA)
    with gzip.open(demo.DATA / "forms.json.gz", "rt") as file:
        assert json.load(file) == {"verbs": sorted(verb_forms()), "nouns": sorted(noun_forms())}


def test_there_are_20_000_training_pairs_and_no_more() -> None:
    few, many = (headviz.load_task("demo", split="train", limit=limit) for limit in (3_000, 20_000))
    assert (len(few), len(many)) == (3_000, 20_000)
    assert many.texts[:3_000] == few.texts
    assert len(headviz.load_task("demo", split="train")) == 2_600
    with pytest.raises(UserError, match="20,000 training examples, and the limit asks for more"):
        headviz.load_task("demo", split="train", limit=20_001)
    assert len(headviz.load_task("demo", split="unseen", limit=20_001)) == 1_300


@pytest.mark.parametrize("name", demo.phenomenon_names())
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
    monkeypatch.setattr(tables, "DATA", tmp_path)
    with pytest.raises(UserError, match="Reinstall headviz"):
        demo.demo_folder("finetuned")
    with pytest.raises(UserError, match="Reinstall headviz"):
        demo.read_split.__wrapped__("dev")


def test_coverage_names_unknown_and_rare_words_once() -> None:
    found = demo.vocabulary_coverage("The zebra didn't thank the zebra, and Quentin won’t.")
    assert found.unknown == ("zebra", "quentin")
    known = demo.vocabulary_coverage("The doctor didn't thank the nurse.")
    assert (known.unknown, known.rare) == ((), ())
    rare = next(word for word, count in demo._word_counts().items() if count < demo.RARE)
    assert demo.vocabulary_coverage(f"The {rare} nurse.").rare == (rare,)
    assert demo.vocabulary_coverage("").words == 0


def test_no_word_of_the_shipped_data_is_unknown_and_hardly_one_is_in_more_than_a_stem_and_its_ending() -> None:
    tokenizer = headviz.load("demo").tokenizer
    pieces: dict[str, int] = {}
    for row in demo.read_split("unseen"):
        for text in (row.premise, row.hypothesis):
            coded = tokenizer(text)
            assert tokenizer.unk_token_id not in coded["input_ids"], text
            for place, count in Counter(i for i in coded.word_ids() if i is not None).items():
                start, end = coded.word_to_chars(place)
                pieces[text[start:end].lower()] = count
    assert len(pieces) > 500
    assert sum(count > 2 for count in pieces.values()) / len(pieces) < 0.01


def test_both_models_load_and_have_the_documented_shape() -> None:
    classifier, pretrained = headviz.load("demo"), headviz.load("demo-pretrained", masked_lm=True)
    for one in (classifier, pretrained):
        assert (one.num_layers, one.num_heads, one.heads_per_layer) == (12, 12, [12] * 12)
    assert classifier.labels == LABELS
    assert classifier.digest != pretrained.digest


def test_the_shipped_card_is_what_its_figures_print() -> None:
    figures = demo.card_figures()
    assert (demo.DATA / card_module.FILE).read_text(encoding="utf-8") == card_module.markdown(figures)


@pytest.mark.slow
def test_the_card_tells_the_truth_about_accuracy() -> None:
    figures = demo.card_figures()["accuracy"]
    assert card_module.differences(figures, card_module.measured()) == []


def test_shipped_scores_are_of_the_shipped_weights_and_claim_no_more_than_was_measured() -> None:
    tables = json.loads((demo.DATA / "scores.json").read_text())["scores"]
    tuned = {table["score"]: table for table in tables if table["weights"] == "fine-tuned"}
    assert {"conductance-spearman", "taylor", "ablation", "fisher"} < set(tuned) <= set(SCORES)
    now = headviz.score_heads(headviz.load("demo", device="cpu"), headviz.load_task("demo"), "magnitude")
    np.testing.assert_allclose(np.array(tuned["magnitude"]["values"]), now.values, rtol=1e-5)
    (fresh,) = [table for table in tables if table["weights"] == "pre-trained"]
    assert fresh["settings"]["fresh_heads"] == 3
    assert fresh["stability"] is None  # a mean over heads: no sample was drawn again


def test_differences_are_seen() -> None:
    shipped = {"dev": {"all": 0.97, "number": 0.9}}
    assert card_module.differences(shipped, {"dev": {"all": 0.97, "number": 0.905}}) == []
    (line,) = card_module.differences(shipped, {"dev": {"all": 0.97, "number": 0.8}})
    assert "number" in line


def test_its_heads_have_the_roles_that_they_were_given() -> None:
    heads = demo.card_figures()["heads"]
    roles = json.loads((demo.DATA / "roles.json").read_text())
    for row in heads["sets"]:
        given = {f"{layer}.{head}" for layer, head in roles[row["phenomenon"]]}
        assert set(row["heads"]) <= given, row["phenomenon"]
        assert row["alone"][0] > 0.2
    named = [head for row in heads["sets"] for head in row["heads"]] + heads["shared"]
    assert len(named) == len(set(named))  # a head has one story
    apart = [row for row in heads["sets"] if row["cost"] > 0.2 and row["others_over_5"] <= 3]
    assert len(apart) >= 8
    assert all(len(row["heads"]) <= 6 for row in apart)
    whole = heads["removal"][0]["accuracy"]
    (late,) = [row["accuracy"] for row in heads["removal"] if row["share"] == 0.4]
    assert whole - late < 0.02


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


def test_the_model_reaches_what_it_was_made_for() -> None:
    figures = demo.card_figures()["accuracy"]
    assert figures["dev"]["all"] >= 0.95
    assert min(figures["dev"].values()) >= 0.85
    assert figures["unseen"]["all"] >= 0.90
