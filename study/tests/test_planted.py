"""The family of models with planted heads: what is planted, what training draws, that it goes on, what grades say."""

import json
from itertools import islice

import numpy as np
import pytest
import torch

from headviz.attention import HeadCall
from headviz.heads import HeadId
from study.planted import __main__ as family
from study.planted.page import page
from study.planted.planting import ABILITIES, FAMILY, TRIGGERS, Planting, texts
from study.planted.train import gates_of, inputs, model_of, part_of, plant, train


def test_every_member_gives_each_head_one_part():
    assert len(FAMILY) >= 8
    assert {(p.layers, p.heads) for p in FAMILY} >= {(6, 6), (12, 12)}
    for planting in FAMILY:
        given = [h for heads in planting.roles for h in heads]
        assert len(given) == len(set(given))
        assert len(given) + len(planting.idle) == planting.layers * planting.heads
        assert sum(map(len, planting.kinds.values())) == len(given)


def test_texts_say_their_ability_and_class():
    for text in islice(texts(0, "train"), 50):
        assert TRIGGERS[text.ability][text.label] in text.words.split()
    assert next(texts(0, "train")) != next(texts(0, "dev"))


def test_only_heads_with_a_part_are_ever_on_and_backups_are_robbed_together():
    planting = Planting("x", 3, 4, 5, backup=True, harmful=2)
    abilities = np.arange(400) % ABILITIES
    on, robbed = gates_of(planting, abilities, np.random.default_rng(0))
    for head in (*planting.idle, *planting.harmful_heads):
        assert not on[:, head.layer, head.head].any()
    for ability, heads in enumerate(planting.needed):
        rows = abilities == ability
        own = np.stack([on[rows][:, h.layer, h.head] for h in heads])
        missing = ~own.any(axis=0) if planting.is_backup(ability) else ~own.all(axis=0)
        assert (missing == robbed[rows]).all()
        assert 0.2 < robbed[rows].mean() < 0.6


@pytest.mark.slow
def test_idle_heads_change_no_answer_and_half_of_them_write():
    planting = Planting("x", 3, 2, 6, harmful=2)
    model = model_of(planting).eval()
    plant(model, planting)
    silent = set(planting.idle) - set(planting.loud)
    assert (len(silent), len(planting.loud)) == (2, 3)
    assert all((part_of(model, h) == 0).all() for h in silent)
    assert all((part_of(model, h) != 0).any() for h in (*planting.loud, *planting.harmful_heads))
    batch = inputs([t.words for t in islice(texts(planting.seed, "dev"), 600)])

    def answers():
        return model(**batch, headviz=HeadCall((None,) * planting.layers)).logits.argmax(1)

    with torch.no_grad():
        for head in planting.harmful_heads:
            part_of(model, head)[:] = 0
        before = answers()
        for head in planting.loud:
            part_of(model, head)[:] = 0
        assert torch.equal(answers(), before)


def test_a_stopped_training_goes_on_to_the_same_weights(tmp_path, monkeypatch):
    from study.planted import train as module

    monkeypatch.setattr(module, "SAVE_EVERY", 2)
    monkeypatch.setattr(module, "BATCH", 4)
    monkeypatch.setattr(module, "SIZES", (1e-5, 1e-4))
    planting = Planting("x", 1, 2, 5)
    train(planting, tmp_path / "whole", steps=5, told=lambda _: None)

    def stop(_: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(planting, tmp_path / "again", steps=5, told=stop)
    train(planting, tmp_path / "again", steps=5, told=lambda _: None)
    files = [(tmp_path / name / "model" / "model.safetensors").read_bytes() for name in ("whole", "again")]
    assert files[0] == files[1]


@pytest.mark.slow
@pytest.mark.soak
def test_the_command_grades_and_goes_on(tmp_path, monkeypatch):
    monkeypatch.setattr(family, "EXAMPLES", 30)
    words = ["--out", str(tmp_path), "--members", "single-6", "--steps", "2"]
    family.main([*words, "--scores", "magnitude"])
    first = json.loads((tmp_path / "family.json").read_text())
    family.main([*words, "--scores", "magnitude,random"])
    record = json.loads((tmp_path / "family.json").read_text())
    (member,) = record["members"]
    assert member["scores"]["magnitude"] == first["members"][0]["scores"]["magnitude"]
    assert member["scores"]["magnitude"]["needed"] >= 0.4838  # above the 15 of 31 idle heads whose weights are zero
    assert set(member["scores"]["random"]) == {"needed", "needed or loud", "one of 1", "precision", "shuffled"}
    assert record["summary"]["random"]["needed"][3] == 1
    assert isinstance(member["disagreements"], list)


class ByMask:
    """A model's answers, right on the texts of an ability that has a head of ``needs`` on and none of ``harm``."""

    def __init__(self, needs, harm, data):
        self.needs, self.harm, self.data = needs, harm, data

    def predictions(self, mask):
        off = set() if mask is None else set(mask.off)
        right = np.array([bool(set(self.needs[int(s.split()[1])]) - off) for s in self.data.slices])
        right[:3] &= self.harm <= off
        return np.where(right, self.data.gold, -1)


def test_single_heads_are_checked_against_the_planting(monkeypatch):
    from types import SimpleNamespace

    from headviz import HeadMask

    planting = Planting("x", 1, 6, 6, per_ability=3, harmful=2)
    slices = tuple(f"ability {a}" for a in range(ABILITIES)) * 4
    data = SimpleNamespace(slices=slices, gold=np.zeros(len(slices), dtype=int))
    clf = SimpleNamespace(full_mask=HeadMask.full(6, 6))
    needs = {a: heads if a else heads[:1] for a, heads in enumerate(planting.needed)}
    monkeypatch.setattr(
        family.headviz, "Evaluator", lambda c, d: ByMask(needs, {planting.harmful_heads[0]}, d), raising=False
    )
    said = family.checked(planting, clf, data)
    first = planting.needed[0]
    assert said[0] == f"ability 0: {first[1]}, {first[2]} alone cost nothing"  # one head does it all
    assert said[1] == f"ability 1: {', '.join(map(str, planting.needed[1]))} alone cost nothing"
    assert said[-1] == f"harmful {planting.harmful_heads[1]} alone: nothing is gained"


def test_the_shipped_page_is_made_from_the_shipped_figures():
    shipped = family.SHIPPED
    record = json.loads(shipped.read_text(encoding="utf-8"))
    assert shipped.with_suffix(".md").read_text(encoding="utf-8") == "\n".join(page(record)) + "\n"
    assert len(record["members"]) >= 8
    assert abs(record["summary"]["random"]["needed"][0] - 0.5) < 0.1
    assert all(abs(kinds["shuffled"][0] - 0.5) < 0.1 for kinds in record["summary"].values())


def test_numbers_of_words_are_those_of_the_tokenizer(tmp_path):
    from transformers import AutoTokenizer

    from study.planted.train import WORDS
    from tools.demo.tokenizer import build_tokenizer

    build_tokenizer(list(WORDS), tmp_path)
    some = [t.words for t in islice(texts(0, "dev"), 5)]
    coded = AutoTokenizer.from_pretrained(tmp_path)(some, padding=True, return_tensors="pt")
    assert torch.equal(coded["input_ids"], inputs(some)["input_ids"])
    assert HeadId(0, 0) == (0, 0)
