"""Masks and pruning of a caller's own model: against transformers 4's recorded results, headviz's own, and by hand."""

import contextvars
import copy
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import headviz
from headviz import HeadMask, UserError
from headviz.errors import ModelError
from headviz.models.families import FAMILIES
from support.marks import OWN_WAYS, some_in_ci
from support.tiny import ALL_FAMILIES, PAIRS, TEXTS, tiny_classifier, tiny_model, tiny_tokenizer
from support.tiny_translation import tiny_translator

RECORDED = Path(__file__).parents[1] / "recorded" / "transformers_4"
RECORDED_NAMES = sorted(path.parent.name for path in RECORDED.glob("*/results.json"))
OFF = {0: [1], 1: [0, 3], 2: [2]}
MASK = HeadMask.full(3, 4).without([(layer, head) for layer, heads in OFF.items() for head in heads])
EVERY = [
    *[("bert", "sdpa"), ("bert", "eager"), ("albert", "eager"), ("distilbert", "sdpa"), ("modernbert", "sdpa")],
    *some_in_ci([(f, "eager") for f in OWN_WAYS], [(f, "eager") for f in ("deberta-v2", "gpt2", "gemma2", "t5")]),
]
# other layers: each group of queries and each layer of T5 loses the same heads
EVEN = {"t5": {row: [1] for row in range(8)}}
GROUPED = [f for f in ALL_FAMILIES if FAMILIES[f].tiny.get("num_key_value_heads")]


def recorded(name: str) -> tuple[Any, dict[str, Any]]:
    from transformers import AutoModelForSequenceClassification

    model = AutoModelForSequenceClassification.from_pretrained(RECORDED / name, use_safetensors=True).eval()
    return model, json.loads((RECORDED / name / "results.json").read_text())


def by_layer(heads: dict[str, list[int]]) -> dict[int, list[int]]:
    return {int(layer): many for layer, many in heads.items()}


def batch(family: str = "bert") -> dict[str, torch.Tensor]:
    return tiny_classifier(family).collate(tiny_classifier(family).encode(TEXTS, PAIRS))


@torch.no_grad()
def logits(model: Any, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
    return model.eval()(**inputs).logits


# transformers 4 -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", RECORDED_NAMES)
def test_what_transformers_4_gave(name: str) -> None:
    model, told = recorded(name)
    inputs = {"input_ids": torch.tensor(told["ids"])}
    torch.testing.assert_close(logits(model, inputs), torch.tensor(told["full"]), atol=1e-5, rtol=1e-5)
    with headviz.masked(model, by_layer(told["off"])):
        result = logits(model, inputs)
    torch.testing.assert_close(result, torch.tensor(told["masked"]), atol=1e-5, rtol=1e-5)
    headviz.prune_heads(model, by_layer(told["off"]))
    torch.testing.assert_close(logits(model, inputs), torch.tensor(told["pruned"]), atol=1e-5, rtol=1e-5)
    headviz.prune_heads(model, by_layer(told["more"]))
    torch.testing.assert_close(logits(model, inputs), torch.tensor(told["pruned_again"]), atol=1e-5, rtol=1e-5)
    assert model.config.pruned_heads == by_layer(told["pruned_heads"])
    assert sum(p.numel() for p in model.parameters()) == told["parameters"]


# every family -------------------------------------------------------------------------------------


def off_for(family: str) -> dict[int, list[int]]:
    return {0: [1, 3], 1: [0, 1], 2: [0, 2]} if family in GROUPED else EVEN.get(family, OFF)


@pytest.mark.parametrize(("family", "kernel"), EVERY)
def test_masked_equals_a_mask_of_headviz(family: str, kernel: str) -> None:
    inputs = batch(family)
    model = tiny_model(family, attn_implementation=kernel)
    if family == "mobilebert":  # in transformers' own batches its last token reads the embedding of [PAD]
        model.get_input_embeddings().weight.data[model.config.pad_token_id] = 0
    full = logits(model, inputs)
    clf = headviz.wrap(model, tiny_tokenizer(FAMILIES[family].tiny.get("pad_token_id", 0)))
    mask = clf.full_mask.without([(row, head) for row, heads in OFF.items() for head in heads])
    with torch.no_grad():
        expected = clf.logits(inputs, mask)
    with headviz.masked(model, OFF):
        result = logits(model, inputs)
    torch.testing.assert_close(result, expected, atol=1e-5, rtol=1e-5)
    assert not torch.allclose(result, full, atol=1e-3)
    assert torch.equal(logits(model, inputs), full)  # behind the block the model is as it was
    with headviz.masked(model, mask):
        assert torch.equal(logits(model, inputs), result)


@pytest.mark.parametrize(("family", "kernel"), EVERY)
def test_pruned_in_place_equals_masked(family: str, kernel: str) -> None:
    inputs, model = batch(family), tiny_model(family, attn_implementation=kernel)
    off = off_for(family)
    if not FAMILIES[family].prunable:
        with pytest.raises(ModelError, match="masked"):
            headviz.prune_heads(model, off)
        return
    with headviz.masked(model, off):
        expected = logits(model, inputs)
    before = sum(p.numel() for p in model.parameters())
    headviz.prune_heads(model, off)
    torch.testing.assert_close(logits(model, inputs), expected, atol=1e-5, rtol=1e-5)
    assert sum(p.numel() for p in model.parameters()) < before
    if family in GROUPED or family in EVEN:
        return
    with headviz.masked(model, {1: [0, 1]}):  # of these, 0 has gone already
        result = logits(model, inputs)
    headviz.prune_heads(model, {1: [0, 1]})
    torch.testing.assert_close(logits(model, inputs), result, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("family", ["marian", "t5"])
def test_translation_models_are_masked_in_all_three_stacks(family: str) -> None:
    clf = tiny_translator(family)
    model, rows = copy.deepcopy(clf.model), clf.num_layers
    model.set_attn_implementation("eager")
    del model.__dict__["_validate_model_kwargs"]
    mask = clf.full_mask.without([(row, row % clf.num_heads) for row in range(rows)])
    inputs = {"input_ids": torch.tensor([[5, 6, 7, 8, 2]]), "decoder_input_ids": torch.tensor([[2, 5, 6]])}
    weights = copy.deepcopy(model)
    for row in range(rows):  # by hand: W_O reads zeros of a head that is off
        output = clf.__class__(weights_as_ours(weights), clf.tokenizer, clf.present).projections(row).output
        at = row % clf.num_heads * clf.head_size
        output.weight.data[:, at : at + clf.head_size] = 0
    with headviz.masked(model, mask):
        result = logits(model, inputs)
        generated = model.generate(inputs["input_ids"], max_new_tokens=4, do_sample=False, use_cache=False)
    torch.testing.assert_close(result, logits(weights, inputs), atol=1e-5, rtol=1e-5)
    assert torch.equal(
        generated, weights.generate(inputs["input_ids"], max_new_tokens=4, do_sample=False, use_cache=False)
    )


def weights_as_ours(model: Any) -> Any:
    model.set_attn_implementation("headviz")
    return model


# calls inside the block ---------------------------------------------------------------------------


def test_threads_see_their_own_masks() -> None:
    model, inputs = tiny_model(), batch()
    masks = [{layer: [head]} for layer in range(3) for head in range(4)]
    alone = []
    for mask in masks:
        with headviz.masked(model, mask):
            alone.append(logits(model, inputs))
    full, start = logits(model, inputs), threading.Barrier(4)

    def run(i: int) -> bool:
        start.wait()
        for _ in range(5):
            if i == 3:  # beside them, without a mask
                same = torch.equal(logits(model, inputs), full)
            else:
                with headviz.masked(model, masks[i]):
                    same = torch.equal(logits(model, inputs), alone[i])
            if not same:
                return False
        return True

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(run, range(4)))
    assert torch.equal(logits(model, inputs), full)


def test_a_thread_with_the_callers_context_is_masked() -> None:
    model, inputs = tiny_model(), batch()
    with headviz.masked(model, OFF):
        expected = logits(model, inputs)
        with ThreadPoolExecutor(1) as pool:
            result = pool.submit(contextvars.copy_context().run, logits, model, inputs).result()
    assert torch.equal(result, expected)


def test_blocks_add_up_and_end_with_an_error_inside() -> None:
    model, inputs = tiny_model(), batch()
    full = logits(model, inputs)
    with headviz.masked(model, {0: [1], 2: [2]}), headviz.masked(model, {1: [0, 3]}):
        both = logits(model, inputs)
    with headviz.masked(model, OFF):
        torch.testing.assert_close(logits(model, inputs), both, atol=1e-6, rtol=1e-6)
    with pytest.raises(ZeroDivisionError), headviz.masked(model, OFF):
        1 / 0  # noqa: B018
    assert torch.equal(logits(model, inputs), full)
    assert not any(module._forward_pre_hooks for module in model.modules())


def test_gradients_flow_and_weights_keep_training() -> None:
    model, inputs = tiny_model(), batch()
    for weight in model.parameters():
        weight.requires_grad_(True)
    with headviz.masked(model, OFF):
        model(**inputs).logits.sum().backward()
    output = model.bert.encoder.layer[0].attention.output.dense.weight.grad
    assert torch.equal(output[:, 8:16], torch.zeros_like(output[:, 8:16]))
    assert output[:, :8].abs().sum() > 0
    headviz.prune_heads(model, OFF)
    assert all(weight.requires_grad for weight in model.parameters())


def test_checkpointed_gradients_are_those_of_the_mask() -> None:
    inputs, result = batch(), []
    for checkpointed in (False, True):
        model = tiny_model(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0).train()
        model.requires_grad_(True)
        if checkpointed:
            model.activation_checkpointing_enable({"use_reentrant": False})
        with headviz.masked(model, OFF):
            model(**inputs).logits.square().sum().backward()
        result.append(model.bert.encoder.layer[0].attention.self.value.weight.grad.clone())
    torch.testing.assert_close(result[0], result[1], atol=1e-5, rtol=1e-5)


def test_a_pass_in_a_thread_of_pytorchs_own_raises() -> None:
    model, inputs = tiny_model(), batch()
    with headviz.masked(model, OFF), ThreadPoolExecutor(1) as pool:
        output = model.bert.encoder.layer[0].attention.output.dense
        output._is_replica = True  # what DataParallel calls its copies
        with pytest.raises(UserError, match="DataParallel"):
            pool.submit(logits, model, inputs).result()
        logits(model, inputs)


def test_trainer_and_pipeline_run_under_the_mask(tmp_path: Path) -> None:
    from transformers import Trainer, TrainingArguments, pipeline

    clf = tiny_classifier()
    model, tokenizer = tiny_model(), clf.tokenizer
    rows = [{**{k: v[0] for k, v in clf.collate(clf.encode([t])).items()}, "labels": 0} for t in TEXTS[:2]]
    with headviz.masked(model, OFF):
        expected = [logits(model, clf.collate(clf.encode([t])))[0] for t in TEXTS[:2]]
        trainer = Trainer(
            model, TrainingArguments(str(tmp_path), report_to=[], use_cpu=True, per_device_eval_batch_size=1)
        )
        predicted = trainer.predict(rows).predictions
        scores = pipeline("text-classification", model=model, tokenizer=tokenizer)(TEXTS[0])
    torch.testing.assert_close(torch.tensor(predicted), torch.stack(expected), atol=1e-5, rtol=1e-5)
    assert scores[0]["score"] == pytest.approx(float(expected[0].softmax(-1).max()), abs=1e-5)
    with pytest.raises(ModelError, match="its attribute 'model'"), headviz.masked(trainer, OFF):
        pass


# refusals -----------------------------------------------------------------------------------------


def test_uneven_heads_that_transformers_could_not_run_are_refused() -> None:
    with pytest.raises(UserError, match="Remove equally many heads of each group"):
        headviz.prune_heads(tiny_model("llama"), {0: [1]})
    with pytest.raises(UserError, match="the same heads in all of them"):
        headviz.prune_heads(tiny_model("t5"), {0: [1]})


class Unknown(nn.Module):
    class Config:
        model_type = "perceiver"

    config = Config()
    base_model = nn.Linear(1, 1)


@pytest.mark.slow
@pytest.mark.parametrize("call", [lambda m, h: headviz.masked(m, h).__enter__(), headviz.prune_heads])
def test_what_cannot_be_done_is_refused(call: Any) -> None:
    model = tiny_model()
    for bad, why in (
        ((Unknown(), OFF), "not supported"),
        ((nn.Linear(2, 2), OFF), "transformers model"),
        (("bert", OFF), "transformers model"),
        ((tiny_classifier(), OFF), "headviz's own"),
        ((torch.compile(tiny_model()), OFF), "compiled"),
        ((nn.DataParallel(tiny_model()), OFF), "model.module"),
        ((model, {3: [0]}), "3"),
        ((model, {0: [4]}), "4"),
        ((model, {0: 1}), "list"),
        ((model, {0: "12"}), "list"),
        ((model, [(0, 1)]), "by layer"),
        ((model, [[1, 1, 1, 2]] * 3), "3 rows of 4"),
        ((model, HeadMask.full(2, 4)), "3×4"),
    ):
        with pytest.raises(UserError, match=why):
            call(*bad)
    assert not any(module._forward_pre_hooks for module in model.modules())


def test_a_mask_that_nothing_ran_under_raises() -> None:
    model = tiny_model()
    with pytest.raises(UserError, match="was not applied to L0, L1, L2"), headviz.masked(model, OFF):
        logits(copy.deepcopy(tiny_model()), batch())
    with pytest.raises(UserError, match="in another thread"), headviz.masked(model, OFF):
        ThreadPoolExecutor(1).submit(logits, model, batch()).result()
    with headviz.masked(model, {0: []}):  # nothing to apply
        pass


def test_heads_removed_by_somebody_else_are_noticed() -> None:
    model = tiny_model()
    headviz.prune_heads(model, OFF)
    del model.config.pruned_heads, model.config.quantization_config
    with pytest.raises(UserError, match="pruned_heads"), headviz.masked(model, {0: [0]}):
        pass


# and on with it -----------------------------------------------------------------------------------


def test_a_model_pruned_in_place_can_be_wrapped_saved_and_loaded(tmp_path: Path) -> None:
    inputs, model = batch(), tiny_model()
    headviz.prune_heads(model, OFF)
    clf = headviz.wrap(model, tiny_tokenizer())
    assert clf.present == MASK
    with torch.no_grad():
        torch.testing.assert_close(clf.logits(inputs), logits(model, inputs), atol=1e-5, rtol=1e-5)
    clf.save(tmp_path / "small")
    again = headviz.load(tmp_path / "small")
    assert again.present == MASK
    with torch.no_grad():
        torch.testing.assert_close(again.logits(inputs), logits(model, inputs), atol=1e-5, rtol=1e-5)


def test_the_model_inside_sentence_transformers_is_taken() -> None:
    model, inputs = tiny_model(), batch()
    first = torch.nn.Module()
    first.auto_model = model
    with headviz.masked(model, {0: [1]}):
        expected = logits(model, inputs)
    with headviz.masked(torch.nn.Sequential(first), {0: [1]}):
        assert torch.equal(logits(model, inputs), expected)
