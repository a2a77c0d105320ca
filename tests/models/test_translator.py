"""Masks, generation, real pruning and saving of encoder-decoder models, over all families."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode
from transformers import (
    AutoModelForSeq2SeqLM,
    BartForSequenceClassification,
    BartModel,
    DynamicCache,
    EncoderDecoderCache,
    MBartTokenizer,
)

import headviz
from headviz import HeadMask
from headviz.errors import ModelError, OptionError, TaskError
from support.tiny_translation import (
    HEADS,
    ROWS,
    SOURCES,
    TARGETS,
    sentence_tokenizer,
    tiny_seq2seq,
    tiny_translator,
    tiny_translator_folder,
)

FULL = HeadMask.full(ROWS, HEADS)
CROSS, DECODER = range(2, 5), range(5, 8)
MASK = FULL.without([(0, 1), (1, 3), (2, 0), (4, 2), (5, 1), (7, 0), (7, 3)])
MASKS = {
    "uneven": MASK,
    "one layer of each stack without heads": FULL.without([(r, h) for r in (0, 3, 6) for h in range(HEADS)]),
    "no cross-attention": FULL.without([(r, h) for r in CROSS for h in range(HEADS)]),
    "no head in the first decoder layer": FULL.without([(5, h) for h in range(HEADS)]),
    "no head at all": FULL.inverted(),
}
each_family = pytest.mark.parametrize("family", ["marian", "t5"])


def batch_of(clf: headviz.Classifier) -> dict[str, torch.Tensor]:
    return clf.collate(clf.encode(SOURCES, TARGETS))


def room() -> Any:
    """A cache for any number of decoder layers; transformers sizes that of a T5 by the encoder."""
    return EncoderDecoderCache(DynamicCache(), DynamicCache())


def plain_inputs(batch: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {k: v for k, v in batch.items() if k != "labels"}


# masks -------------------------------------------------------------------------------------------


@each_family
def test_labels_are_shifted_as_the_family_does(family: str) -> None:
    model = tiny_seq2seq(family)
    clf = headviz.wrap(model, sentence_tokenizer())
    batch = batch_of(clf)
    with torch.inference_mode():
        plain = model(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"], labels=batch["labels"])
    torch.testing.assert_close(clf.logits(batch), plain.logits, atol=1e-5, rtol=0)
    loss = torch.nn.functional.cross_entropy(clf.logits(batch).flatten(0, 1), batch["labels"].flatten())
    torch.testing.assert_close(loss, plain.loss, atol=1e-5, rtol=0)


@each_family
def test_probabilities_are_those_of_transformers_eager_attention(family: str) -> None:
    model = tiny_seq2seq(family)
    clf = headviz.wrap(model, sentence_tokenizer())
    batch = batch_of(clf)
    model.set_attn_implementation("eager")
    with torch.inference_mode():
        theirs = model(**plain_inputs(batch), use_cache=False, output_attentions=True)
        call = clf.call(keep_probs=True)
        clf.forward(batch, call)
    expected = [*theirs.encoder_attentions, *theirs.cross_attentions, *theirs.decoder_attentions]
    assert len(call.probs) == len(expected) == ROWS
    for ours, other in zip(call.probs, expected, strict=True):
        torch.testing.assert_close(ours, other, atol=1e-5, rtol=0)


@each_family
def test_masking_equals_zeroing_the_output_columns(family: str) -> None:
    model = tiny_seq2seq(family)
    clf = headviz.wrap(model, sentence_tokenizer())
    for row in range(ROWS):
        matrix = clf.projections(row).output
        for head in MASK.off_in(row):
            matrix.weight.data[:, head * 8 : (head + 1) * 8] = 0
    untouched = headviz.wrap(model, sentence_tokenizer())
    batch = batch_of(clf)
    torch.testing.assert_close(untouched.logits(batch, MASK), clf.logits(batch), atol=5e-6, rtol=0)
    assert torch.equal(untouched.generate(batch, MASK, max_new_tokens=8), clf.generate(batch, max_new_tokens=8))


def test_a_model_that_skips_our_attention_is_caught() -> None:
    clf = tiny_translator()
    clf.model.set_attn_implementation("sdpa")
    batch = batch_of(clf)
    with pytest.raises(ModelError, match="the mask was not applied"):
        clf.logits(batch, MASK)
    with pytest.raises(ModelError, match="the mask was not applied"):
        clf.generate(batch, MASK, max_new_tokens=3)


# generation --------------------------------------------------------------------------------------


def test_what_a_translation_follows_besides_the_digests() -> None:
    """Caches of what reads translations hold it."""
    model = tiny_seq2seq()
    usual, cleaning, longer = sentence_tokenizer(), sentence_tokenizer(), sentence_tokenizer(longest=15)
    cleaning.clean_up_tokenization_spaces = True
    shown = [headviz.wrap(model, tokenizer) for tokenizer in (usual, cleaning, longer)]
    assert len({clf.generation for clf in shown}) == 3
    assert len({(clf.digest, clf.tokenizer_digest) for clf in shown}) == 1
    model.config.max_position_embeddings = 14
    assert headviz.wrap(model, usual).generation == ""


@pytest.mark.parametrize(("family", "beams"), [("marian", 3), ("t5", 1)])
def test_without_a_mask_generation_is_that_of_transformers(family: str, beams: int) -> None:
    model = tiny_seq2seq(family)
    clf = headviz.wrap(model, sentence_tokenizer())
    batch = batch_of(clf)
    plain = model.generate(
        input_ids=batch["input_ids"],
        attention_mask=batch["attention_mask"],
        num_beams=beams,
        do_sample=False,
        max_new_tokens=12,
        past_key_values=room() if family == "t5" else None,
    )
    assert torch.equal(clf.generate(batch, beams=beams, max_new_tokens=12), plain)


@pytest.mark.parametrize(
    ("family", "beams", "which"),
    [
        ("marian", 3, "uneven"),
        ("marian", 1, "no cross-attention"),
        ("t5", 3, "no head in the first decoder layer"),
        ("t5", 1, "uneven"),
    ],
)
def test_cached_generation_under_a_mask_is_the_uncached_one(family: str, beams: int, which: str) -> None:
    clf, mask = tiny_translator(family, seed=3), MASKS[which]
    batch = batch_of(clf)
    cached = clf.generate(batch, mask, beams=beams, max_new_tokens=12)
    assert torch.equal(cached, clf.generate(batch, mask, beams=beams, max_new_tokens=12, cached=False))
    assert not torch.equal(cached, clf.generate(batch, beams=beams, max_new_tokens=12)), "the mask did nothing"


@each_family
def test_greedy_generation_takes_the_best_token_of_the_masked_logits(family: str) -> None:
    """The slow, obvious meaning: one forced pass for each token."""
    clf = tiny_translator(family, seed=1)
    batch = clf.collate(clf.encode(SOURCES[1:2]))
    ids = clf.generate(batch, MASK, max_new_tokens=7)
    given = ids[:, :1].clone()
    for _ in range(ids.shape[1] - 1):
        logits = clf.logits({**batch, "decoder_input_ids": given}, MASK).clone()
        logits[:, :, [i for group in clf.model.generation_config.bad_words_ids or [] for i in group]] = -torch.inf
        given = torch.cat([given, logits[:, -1].argmax(dim=-1, keepdim=True)], dim=1)
    assert torch.equal(ids, given)


def test_encoding() -> None:
    clf = tiny_translator()
    assert clf.encode([]) == []
    (one,) = clf.encode(["a dog " * 40], ["a cat"])
    assert len(one) == clf.max_length == 14
    assert one.truncated
    assert one.special[-1]
    assert sum(one.special) == 1
    assert clf.tokens(one)[:2] == ["a", "dog"]
    with pytest.raises(TaskError, match="need the references"):
        clf.logits(clf.collate(clf.encode(SOURCES)))
    with pytest.raises(TaskError, match="4 sources but 1 references"):
        clf.encode(SOURCES, TARGETS[:1])
    with pytest.raises(OptionError, match="beams is a whole number of at least 1"):
        clf.generate(clf.collate([one]), beams=0)
    prefixed = clf.reading(prefix="no ")
    assert prefixed.encode(["man eats"])[0].ids == clf.encode(["no man eats"])[0].ids
    with pytest.raises(ModelError, match="no language codes"):
        clf.reading(languages=("en", "de"))


# really pruned -----------------------------------------------------------------------------------


def same(a: headviz.Classifier, b: headviz.Classifier, mask: HeadMask | None = None) -> None:
    batch = batch_of(a)
    torch.testing.assert_close(a.logits(batch), b.logits(batch, mask), atol=2e-5, rtol=0)


@each_family
@pytest.mark.parametrize("which", ["uneven", "one layer of each stack without heads", "no head at all"])
def test_pruned_equals_masked_and_survives_a_reload(family: str, which: str, tmp_path: Path) -> None:
    clf, mask = tiny_translator(family), MASKS[which]
    digest = clf.digest
    small = headviz.prune(clf, mask)
    assert small.heads_per_layer == [HEADS - len(mask.off_in(i)) for i in range(ROWS)]
    assert clf.cost(mask, 20) == small.cost(length=20)
    assert small.cost(length=20).parameters == sum(p.numel() for p in small.model.parameters())
    same(small, clf, mask)
    again = headviz.load(small.save(tmp_path / "small"), device="cpu")
    assert again.kind == "translation"
    assert again.stacks == clf.stacks
    assert again.present == mask
    assert again.digest == small.digest
    batch = batch_of(again)
    assert torch.equal(again.logits(batch), small.logits(batch))
    expected = clf.generate(batch, mask, beams=2, max_new_tokens=6)
    assert torch.equal(again.generate(batch, beams=2, max_new_tokens=6), expected)
    assert clf.digest == digest, "the caller's model was edited"


@each_family
def test_pruning_twice_by_original_numbers_is_pruning_once(family: str) -> None:
    clf = tiny_translator(family)
    a, b = FULL.without([(0, 0), (3, 1), (6, 2), (5, 2), (7, 2)]), FULL.without([(1, 0), (3, 3), (7, 0)])
    twice, once = headviz.prune(headviz.prune(clf, a), b), headviz.prune(clf, a | b)
    assert twice.digest == once.digest
    same(twice, clf, a | b)


def test_position_tables_keep_only_heads_that_some_layer_has() -> None:
    clf = tiny_translator("t5")
    gone = FULL.without([(0, 1), (1, 1), (1, 2), *((row, 0) for row in DECODER), (5, 3)])
    small = headviz.prune(clf, gone)
    shapes = {k: tuple(v.shape) for k, v in small.model.state_dict().items() if "relative" in k}
    assert sorted(shapes.values()) == [(8, 3), (8, 3)]
    back = headviz.prune(clf, FULL)
    assert {tuple(v.shape) for k, v in back.model.state_dict().items() if "relative" in k} == {(8, 4)}


@each_family
def test_transformers_opens_a_pruned_translator(family: str, tmp_path: Path) -> None:
    small = headviz.prune(tiny_translator(family), MASK)
    plain = AutoModelForSeq2SeqLM.from_pretrained(small.save(tmp_path / "small")).eval()
    batch = batch_of(small)
    with torch.inference_mode():
        logits = plain(**plain_inputs(batch), use_cache=False).logits
    torch.testing.assert_close(logits, small.logits(batch), atol=1e-6, rtol=0)


@each_family
def test_masked_export_loads_in_plain_transformers(family: str, tmp_path: Path) -> None:
    clf = tiny_translator(family)
    batch = batch_of(clf)
    first = FULL.without([(0, 1), (4, 2)])
    headviz.prune(clf, first).export_masked(tmp_path / "m", MASK)
    plain = AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "m").eval()
    with torch.inference_mode():
        logits = plain(**plain_inputs(batch), use_cache=False).logits
    torch.testing.assert_close(logits, clf.logits(batch, MASK), atol=2e-5, rtol=0)


@each_family
def test_flops_are_those_that_torch_counts(family: str) -> None:
    clf = headviz.prune(tiny_translator(family), MASK)
    ids = torch.full((1, 13), 7)
    batch = {"input_ids": ids, "attention_mask": torch.ones_like(ids), "decoder_input_ids": ids}
    with FlopCounterMode(display=False) as counter:
        clf.forward(batch, clf.call(kernel="eager"))
    output = 2 * 13 * 32 * clf.config.vocab_size  # the output layer is left out
    assert clf.cost(length=13).flops == counter.get_total_flops() - output


@each_family
def test_the_callers_model_is_left_alone(family: str) -> None:
    model = tiny_seq2seq(family)
    before = copy.deepcopy(model.state_dict())
    model.train()
    clf = headviz.wrap(model, sentence_tokenizer())
    clf.generate(batch_of(clf), MASK, max_new_tokens=3)
    headviz.prune(clf, MASK)
    assert model.training
    assert model.config._attn_implementation == "sdpa"
    with pytest.raises(ValueError, match="strange"):
        model.generate(input_ids=torch.ones(1, 3, dtype=torch.long), strange=1)
    assert all(torch.equal(v, before[k]) for k, v in model.state_dict().items())


# bad input ---------------------------------------------------------------------------------------


def test_wrong_models() -> None:
    config = tiny_seq2seq("bart").config
    with pytest.raises(ModelError, match=r"neither classifies nor translates.*ForConditionalGeneration"):
        headviz.wrap(BartModel(config), sentence_tokenizer())
    assert headviz.wrap(BartForSequenceClassification(config), sentence_tokenizer()).kind == "classification"
    with pytest.raises(ModelError, match="encoder has 2 heads per layer and the decoder 4"):
        headviz.wrap(tiny_seq2seq("bart", encoder_attention_heads=2), sentence_tokenizer())


def test_other_heads_are_refused(tmp_path: Path) -> None:
    folder = tiny_translator_folder(tmp_path / "m")
    with pytest.raises(ModelError, match="it translates, and takes no other head"):
        headviz.load(folder, fresh_labels=("a", "b"))
    with pytest.raises(ModelError, match="it translates, and takes no other head"):
        headviz.load(folder, masked_lm=True)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "architectures": ["MarianForCausalLM"]}))
    with pytest.raises(ModelError, match=r"'.*' is a MarianForCausalLM, which neither classifies nor translates"):
        headviz.load(folder)


def test_language_codes() -> None:
    """mBART's codes stand behind each sentence, and the translation begins with the target's."""
    words = ["<s>", "<pad>", "</s>", "<unk>", *(f"▁{w}" for w in "a dog cat runs the".split()), *"abcdefg▁"]
    tokenizer = MBartTokenizer(vocab=[(w, -float(i)) for i, w in enumerate(words)], src_lang="en_XX")
    ids = {f"{name}_token_id": int(getattr(tokenizer, f"{name}_token_id")) for name in ("pad", "eos", "bos")}
    clf = headviz.wrap(tiny_seq2seq("mbart", vocab_size=len(tokenizer), **ids), tokenizer)
    two = clf.reading(languages=("de_DE", "fr_XX"))
    (one,) = two.encode(["a dog runs"], ["the cat"])
    read = tokenizer.convert_ids_to_tokens
    assert read(one.ids) == ["▁a", "▁dog", "▁runs", "</s>", "de_DE"]
    assert read(one.target) == ["▁the", "▁cat", "</s>", "fr_XX"]
    batch = two.collate([one])
    assert read(batch["decoder_input_ids"][0].tolist()) == ["fr_XX", "▁the", "▁cat", "</s>"]
    assert read(two.generate(batch, max_new_tokens=3)[0].tolist())[1] == "fr_XX"
    assert tokenizer.src_lang == "en_XX", "the caller's tokenizer was changed"
    with pytest.raises(OptionError, match="Unknown language 'xx'"):
        clf.reading(languages=("xx", "fr_XX"))
    with pytest.raises(OptionError, match="two language codes"):
        clf.reading(languages=("fr_XX",))
