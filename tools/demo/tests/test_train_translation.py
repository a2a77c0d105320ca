"""Training the translation demo's model."""

from pathlib import Path

import pytest

import headviz
from tools.demo import train_translation
from tools.demo.train_translation import Recipe, configuration, train
from tools.demo.translation.tokenizer import build_tokenizer

TINY = Recipe(layers=1, heads=2, width=16, inner=16, steps=6, batch=4, warmup=2)


@pytest.mark.slow
def test_training_goes_on_where_it_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
