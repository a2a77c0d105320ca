"""The training script, a few steps of it: same seed, same weights; stopped and continued, same weights."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from headviz.demo.reading import Example
from tools.demo import tokenizer, train
from tools.demo.batches import mask_words, pad, stream, with_unknown_name
from tools.demo.phenomena import PHENOMENA
from tools.demo.recipe import Recipe
from tools.demo.ship import write_model
from tools.demo.training_state import begin

TINY = Recipe(
    batch=4,
    small_steps=3,
    pretrain_steps=3,
    finetune_steps=6,
    gate_from=2,
    gate_until=4,
    gate_price=0.5,
    gate_rate=0.3,
    roles_steps=4,
    roles_pairs=2,
    short_steps=3,
)


@pytest.fixture(scope="module", autouse=True)
def few_words() -> Iterator[None]:
    """A vocabulary from few pairs, and short chunks: the words matter little here."""
    with pytest.MonkeyPatch.context() as patch:
        words = tokenizer.corpus_words(1000)
        patch.setattr(tokenizer, "corpus_words", lambda: words)
        patch.setattr("tools.demo.batches.BATCHES_PER_CHUNK", 4)
        torch.set_num_threads(1)
        yield


def _trainer(folder: Path, recipe: Recipe = TINY, **options: Any) -> train.Trainer:
    return train.Trainer(folder, recipe, **{"report_every": 2, "save_every": 2, "dev_pairs": 39, **options})


def _weights(folder: Path, name: str = "finetuned") -> dict[str, torch.Tensor]:
    return load_file(folder / name / "model.safetensors")


class _Stop(Exception):
    pass


def _stopped_after(trainer: train.Trainer, updates: int) -> None:
    """Run until so many updates were made, then break off as a kill would."""
    taken, update = 0, trainer._update

    def counting(*arguments: Any) -> None:
        nonlocal taken
        if taken == updates:
            raise _Stop
        update(*arguments)
        taken += 1

    trainer._update = counting  # type: ignore[method-assign]
    with pytest.raises(_Stop):
        trainer.run()


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> train.Trainer:
    """Words, recipe and data; nothing is trained."""
    return _trainer(tmp_path_factory.mktemp("begun"))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    _trainer(folder, checkpoint_every=3).run()
    return folder


@pytest.mark.slow
def test_all_stages_leave_their_folders(whole: Path) -> None:
    for name, layers in (
        ("small", 6),
        ("pretrained", 12),
        ("classifier", 12),
        ("with-roles", 12),
        ("finetuned", 12),
        ("checkpoints/step-00003", 12),
    ):
        config = json.loads((whole / name / "config.json").read_text())
        assert config["num_hidden_layers"] == layers
        assert (whole / name / "tokenizer.json").exists()
    config = json.loads((whole / "finetuned" / "config.json").read_text())
    assert list(config["id2label"].values()) == ["entailment", "neutral", "contradiction"]
    roles = json.loads((whole / "roles.json").read_text())
    assert len({tuple(head) for heads in roles.values() for head in heads}) == 3 * len(PHENOMENA)
    assert any(not torch.equal(value, _weights(whole)[name]) for name, value in _weights(whole, "classifier").items())
    assert "cls.predictions.bias" in _weights(whole, "pretrained")
    assert not list(whole.rglob("*.bin"))
    assert not list(whole.rglob("*.pt"))


@pytest.mark.slow
@pytest.mark.parametrize("updates", [5, 15, *(pytest.param(n, marks=pytest.mark.soak) for n in (1, 9, 11, 18))])
def test_stopped_and_continued_gives_the_same_weights(whole: Path, tmp_path: Path, updates: int) -> None:
    _stopped_after(_trainer(tmp_path), updates)
    _trainer(tmp_path).run()
    for name, value in _weights(whole).items():
        assert torch.equal(value, _weights(tmp_path)[name]), name


@pytest.mark.slow
@pytest.mark.parametrize("name", ["classifier", pytest.param("small", marks=pytest.mark.soak)])
def test_stopped_while_a_stage_is_written_gives_the_same_weights(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """A folder that holds its configuration but no weights yet must not count as a finished stage."""
    trainer = _trainer(tmp_path)
    save, stages = trainer.tokenizer.save_pretrained, {"small": 1, "classifier": 3}
    written = 0

    def killed(*arguments: Any) -> Any:
        nonlocal written
        written += 1
        if written == stages[name]:
            raise _Stop
        return save(*arguments)

    trainer.checkpoint_every = 0
    with monkeypatch.context() as patch:
        patch.setattr(trainer.tokenizer, "save_pretrained", killed)
        with pytest.raises(_Stop):
            trainer.run()
    assert not (tmp_path / name).exists()
    _trainer(tmp_path, checkpoint_every=0).run()
    for key, value in _weights(whole).items():
        assert torch.equal(value, _weights(tmp_path)[key]), key
    assert not (tmp_path / "writing").exists()


@pytest.mark.slow
def test_the_last_stage_can_begin_with_the_weights_of_another_run(whole: Path, tmp_path: Path) -> None:
    def begun(folder: Path) -> dict[str, torch.Tensor]:
        begin(folder, whole / "with-roles", whole / "roles.json")
        _trainer(folder).run(("short",))
        return _weights(folder)

    again = begun(tmp_path)
    for name, value in _weights(whole).items():
        assert torch.equal(value, again[name]), name
    assert (tmp_path / "roles.json").read_bytes() == (whole / "roles.json").read_bytes()
    assert len(json.loads((tmp_path / "begun.json").read_text())["weights"]) == 64
    assert not (tmp_path / "classifier").exists()


@pytest.mark.slow
def test_half_precision_weights_are_trained_in_full_precision(whole: Path, tmp_path: Path) -> None:
    write_model(whole / "with-roles", tmp_path / "half")
    begin(tmp_path / "run", tmp_path / "half", whole / "roles.json")
    _trainer(tmp_path / "run").run(("short",))
    assert {value.dtype for value in _weights(tmp_path / "run").values()} == {torch.float32}


@pytest.mark.slow
def test_another_seed_gives_other_weights(whole: Path, tmp_path: Path) -> None:
    _trainer(tmp_path, replace(TINY, seed=1)).run(("small",))
    one, other = _weights(whole, "small"), _weights(tmp_path, "small")
    assert any(not torch.equal(value, other[name]) for name, value in one.items())


def test_a_folder_keeps_to_its_recipe(begun: train.Trainer) -> None:
    with pytest.raises(SystemExit, match="another recipe"):
        _trainer(begun.out, replace(TINY, batch=8))


def test_a_recipe_with_gates_after_the_end_is_refused() -> None:
    with pytest.raises(ValueError, match="gate_from <= gate_until"):
        Recipe(finetune_steps=10, gate_from=5, gate_until=20)


def test_pairs_about_order_are_read_more_often_for_a_while(begun: train.Trainer) -> None:
    recipe = Recipe()
    order, other = (Example("A.", "B.", "neutral", name) for name in ("temporal", "number"))
    assert recipe.dropped_from_classification(0, other) == 0.0
    assert recipe.dropped_from_classification(recipe.order_from, other) == recipe.order_drop
    assert recipe.dropped_from_classification(recipe.order_from, order) == 0.0
    assert recipe.dropped_from_classification(recipe.order_until, other) == recipe.time_drop
    assert recipe.dropped_from_classification(recipe.time_until, other) == 0.0
    told = Example("Anna left after Ben ran.", "Ben ran before Anna left.", "entailment", "temporal")
    assert recipe.dropped_from_classification(recipe.plain_from, told) == 0.0
    assert recipe.dropped_from_classification(recipe.plain_from, order) == 1.0
    assert recipe.dropped_from_reading(0, other._replace(label="entailment")) == 0.0

    def nothing_that_contradicts(step: int, example: Example) -> float:
        return float(step >= 4 and example.label == "contradiction")

    read = stream(begun.tokenizer, 8, 0, "finetune", dropped=nothing_that_contradicts)
    labels = [next(read)[1].labels for _ in range(8)]
    assert (torch.stack(labels[:4]) == 2).any()
    assert not (torch.stack(labels[4:]) == 2).any()


def test_a_stream_can_start_anywhere(begun: train.Trainer) -> None:
    own = begun.tokenizer
    from_start = stream(own, 4, 0, "small")
    batches = [next(from_start) for _ in range(11)]
    later = stream(own, 4, 0, "small", start=9)
    for expected in batches[9:]:
        step, batch = next(later)
        assert step == expected[0]
        assert torch.equal(batch.ids, expected[1].ids)


def test_masking_hides_words_and_never_specials() -> None:
    rows = [([2, 10, 11, 12, 3, 13, 14, 15, 16, 3], [0] * 5 + [1] * 5)] * 400
    batch = pad([*rows, ([2, 10, 3], [0, 0, 1])], [0] * 401)
    ids, chosen = mask_words(batch, 30, mask_id=4, specials=5, generator=torch.Generator().manual_seed(0))
    assert not chosen[batch.ids < 5].any()
    assert torch.equal(ids[~chosen], batch.ids[~chosen])
    hidden = chosen[:400].float().mean(0)
    assert 0.05 < float(hidden[1:4].mean()) < 0.15  # premise: 10 %
    assert 0.25 < float(hidden[5:9].mean()) < 0.35  # hypothesis: 30 %
    assert 0.7 < float((ids[chosen] == 4).float().mean()) < 0.9


def test_a_made_up_name_stands_in_both_sentences() -> None:
    import random

    pair = Example("Anna thanked the nurse.", "The nurse was thanked by Anna.", "entailment", "role-swap")
    changed = with_unknown_name(pair, random.Random(0))
    name = changed.premise.split()[0]
    assert name != "Anna"
    assert changed.hypothesis == f"The nurse was thanked by {name}."
    plain = Example("The boy slept.", "The boy did not sleep.", "contradiction", "negation")
    assert with_unknown_name(plain, random.Random(0)) == plain


def test_lessons_make_up_half_of_what_is_read(begun: train.Trainer) -> None:
    recipe = Recipe()
    assert recipe.lesson(0) == recipe.lesson(recipe.lesson_until) == ""
    assert recipe.lesson(recipe.same_word_from) == "same word"
    assert recipe.lesson(recipe.lesson_from) == "before and after"
    tokenizer_ = begun.tokenizer
    taught = stream(tokenizer_, 8, 0, "finetune", lesson_at=lambda step: "before and after" if step >= 4 else "")
    before, after = tokenizer_.convert_tokens_to_ids(["before", "after"])
    batches = [next(taught)[1] for _ in range(8)]
    told = [int(((b.ids == before) | (b.ids == after)).any(1).sum()) for b in batches]
    assert sum(told[4:]) >= 16 > 2 * sum(told[:4])
