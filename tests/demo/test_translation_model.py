"""The shipped translation model: small, good, and as its card says."""

import json
from pathlib import Path

import pytest

import headviz
from headviz import HeadMask
from headviz.demo import DATA
from tools.demo.train_translation import Recipe, configuration, train
from tools.demo.translation.card import text
from tools.demo.translation.tokenizer import build_tokenizer

FOLDER = DATA / "translation"
shipped = pytest.mark.skipif(not (FOLDER / "config.json").exists(), reason="this checkout has no demo data")


@pytest.mark.slow
@shipped
def test_it_translates() -> None:
    clf = headviz.load("demo-translation", device="cpu")
    assert clf.kind == "translation"
    assert (clf.num_layers, clf.num_heads) == (9, 8)
    data = headviz.load_task("demo-translation", limit=140)
    found = headviz.evaluate(clf, data)
    assert found.metrics["bleu"] >= 90
    assert found.cut == 0
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


TINY = Recipe(layers=1, heads=2, width=16, inner=16, steps=6, batch=4, warmup=2)


@pytest.mark.slow
def test_training_goes_on_where_it_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tools.demo import train_translation

    train(tmp_path / "whole", TINY, report_every=100, save_every=100)
    batches = train_translation.batches

    def stopping(*args: object) -> object:
        for step, batch in batches(*args):  # type: ignore[arg-type]
            if step == 4:
                raise KeyboardInterrupt
            yield step, batch

    monkeypatch.setattr(train_translation, "batches", stopping)
    with pytest.raises(KeyboardInterrupt):
        train(tmp_path / "parts", TINY, report_every=100, save_every=2)
    monkeypatch.undo()
    train(tmp_path / "parts", TINY, report_every=100, save_every=2)
    whole, parts = (headviz.load(tmp_path / name / "model", device="cpu") for name in ("whole", "parts"))
    assert whole.digest == parts.digest
    with pytest.raises(SystemExit, match="another recipe"):
        train(tmp_path / "parts", Recipe())


def test_configuration(tmp_path: Path) -> None:
    config = configuration(build_tokenizer(tmp_path), Recipe())
    assert config.decoder_start_token_id == config.pad_token_id == 0
    assert (config.encoder_layers, config.decoder_layers) == (3, 3)
