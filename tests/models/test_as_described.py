"""Models that are not as their family's sheet says: merged or refused, never read past."""

from __future__ import annotations

import copy
from collections.abc import Callable
from itertools import product
from pathlib import Path
from types import MethodType
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils import parametrizations, parametrize, prune

import headviz
from headviz import HeadMask, UserError
from headviz.models.classifier import Classifier
from headviz.models.onnx import export_onnx
from support.marks import OWN_WAYS, some_in_ci
from support.tiny import ALL_FAMILIES, FAMILIES, PAIRS, TEXTS, tiny_classifier, tiny_model, tiny_tokenizer

QUERY = "encoder.layer.1.attention.self.query"
OUTPUT = "encoder.layer.1.attention.output.dense"
INNER = "encoder.layer.0.intermediate.dense"
NORM = "encoder.layer.2.output.LayerNorm"
OFF = {0: [1], 1: [0, 3], 2: [2]}
Change = Callable[[Any], None]


class Lora(nn.Module):
    """An adapter as PEFT's: ``weight`` is that of the layer below, without the adapter's part."""

    def __init__(self, base: nn.Linear, seed: int = 0) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        self.base_layer = base
        self.down = nn.Parameter(torch.randn(2, base.in_features, generator=generator))
        self.up = nn.Parameter(torch.randn(base.out_features, 2, generator=generator))
        self.in_features, self.out_features = base.in_features, base.out_features

    @property
    def weight(self) -> Tensor:
        return self.base_layer.weight

    @property
    def bias(self) -> Tensor:
        return self.base_layer.bias

    def forward(self, x: Tensor) -> Tensor:
        return self.base_layer(x) + x @ self.down.T @ self.up.T


class Larger(nn.Linear):
    """A linear map of somebody's own."""

    def forward(self, x: Tensor) -> Tensor:
        return 2 * super().forward(x)


class Doubled(nn.Module):
    def forward(self, weight: Tensor) -> Tensor:
        return 2 * weight


class Marked(Tensor):
    """A tensor of a class of its own, as packages for quantising make them."""


def put(model: Any, path: str, made: Callable[[Any], Any]) -> None:
    parent, _, name = path.rpartition(".")
    setattr(model.base_model.get_submodule(parent), name, made(model.base_model.get_submodule(path)))


def adapted(path: str) -> Change:
    return lambda model: put(model, path, Lora)


def at(path: str, change: Callable[[Any], Any]) -> Change:
    return lambda model: change(model.base_model.get_submodule(path))


def larger(module: Any) -> None:
    module.__class__ = Larger


def marked(module: Any) -> None:
    module.weight = nn.Parameter(module.weight.detach().as_subclass(Marked), requires_grad=False)


def replaced(module: Any) -> None:
    own = module.forward
    module.forward = lambda *args, **kwargs: own(*args, **kwargs)


def doubled(module: nn.Module, inputs: Any, output: Any) -> Any:
    return (2 * output[0], *output[1:]) if isinstance(output, tuple) else 2 * output


def scaled(module: nn.Module) -> None:
    hooks = pytest.importorskip("accelerate.hooks")

    class Scaled(hooks.ModelHook):
        def post_forward(self, module: nn.Module, output: Any) -> Any:
            return 2 * output

    hooks.add_hook_to_module(module, hooks.SequentialHook(hooks.AlignDevicesHook("cpu"), Scaled()))


CHANGES: dict[str, Change] = {
    "adapter on W_Q": adapted(QUERY),
    "adapter on W_O": adapted(OUTPUT),
    "adapter in the feed-forward block": adapted(INNER),
    "subclass": at(QUERY, larger),
    "two maps in one place": lambda model: put(model, QUERY, lambda old: nn.Sequential(old, nn.Identity())),
    "another norm": lambda model: put(model, NORM, lambda old: nn.RMSNorm(32)),
    "parametrised": at(QUERY, lambda m: parametrize.register_parametrization(m, "weight", Doubled())),
    "parametrised weight norm": at(OUTPUT, parametrizations.weight_norm),
    "parametrised head": lambda model: parametrizations.weight_norm(model.classifier),
    "torch's pruning": at(QUERY, lambda m: prune.l1_unstructured(m, "weight", 0.5)),
    "a tensor of its own class": at(QUERY, marked),
    "not in memory": at(INNER, lambda m: m.to("meta")),
    "forward hook": at("encoder.layer.1", lambda m: m.register_forward_hook(doubled)),
    "forward pre-hook": at(NORM, lambda m: m.register_forward_pre_hook(lambda m, x: (2 * x[0],))),
    "backward hook": at("encoder.layer.0", lambda m: m.register_full_backward_hook(lambda m, i, o: i)),
    "forward replaced": at("encoder.layer.1", replaced),
    "one of two hooks of accelerate": at(QUERY, scaled),
}


def batch() -> dict[str, Tensor]:
    clf = tiny_classifier()
    return clf.collate(clf.encode(TEXTS, PAIRS))


@torch.no_grad()
def logits(model: Any) -> Tensor:
    return model.eval()(**batch()).logits


@pytest.mark.parametrize("what", CHANGES)
def test_what_the_sheet_does_not_know_is_refused(what: str) -> None:
    model = tiny_model()
    CHANGES[what](model)
    before = {name: id(weight) for name, weight in model.named_parameters()}
    with pytest.raises(UserError, match=r"not a plain model.* at "):
        headviz.wrap(model, tiny_tokenizer())
    with pytest.raises(UserError, match=r"not a plain model.* at "):
        headviz.prune_heads(model, OFF)
    assert {name: id(weight) for name, weight in model.named_parameters()} == before


@pytest.mark.filterwarnings("ignore:.*quantization.*")
def test_int8_is_refused_and_can_be_masked() -> None:
    model = torch.ao.quantization.quantize_dynamic(tiny_model().eval(), {nn.Linear}, torch.qint8)
    for call in (lambda: headviz.wrap(model, tiny_tokenizer()), lambda: headviz.prune_heads(model, OFF)):
        with pytest.raises(UserError, match=r"torch\.ao.*float weights"):
            call()
    full = logits(model)
    with headviz.masked(model, OFF):
        assert not torch.allclose(logits(model), full, atol=1e-2)
    assert torch.equal(logits(model), full)


def test_masks_read_no_weights() -> None:
    model, merged = tiny_model(), tiny_model()
    for path in (QUERY, OUTPUT, INNER):
        put(model, path, Lora)
        layer, weight = model.base_model.get_submodule(path), merged.base_model.get_submodule(path).weight
        weight.data += (layer.up @ layer.down).detach()
    torch.testing.assert_close(logits(model), logits(merged), atol=1e-5, rtol=1e-5)
    with headviz.masked(merged, OFF):
        expected = logits(merged)
    with headviz.masked(model, OFF):
        torch.testing.assert_close(logits(model), expected, atol=1e-5, rtol=1e-5)


MASK = HeadMask.full(3, 4).without([(0, 1)])
READERS: dict[str, Callable[[Any, Any, Path], Any]] = {
    "evaluate": lambda clf, data, _: headviz.evaluate(clf, data),
    "prune": lambda clf, data, _: headviz.prune(clf, MASK),
    "conductance": lambda clf, data, _: headviz.conductance(clf, TEXTS[0], PAIRS[0]),
    "taylor": lambda clf, data, _: headviz.score_heads(clf, data, score="taylor"),
    "magnitude": lambda clf, data, _: headviz.score_heads(clf, data, score="magnitude"),
    "tokens": lambda clf, data, _: headviz.token_attributions(clf, TEXTS[0], PAIRS[0], steps=2),
    "save": lambda clf, data, folder: clf.save(folder / "saved"),
    "masked export": lambda clf, data, folder: clf.export_masked(folder / "masked", MASK),
    "digest": lambda clf, data, _: clf.digest,
}


LATER = [*product(["adapter on W_Q"], READERS), *product(["parametrised", "forward hook"], ["evaluate"])]


@pytest.mark.parametrize(("what", "reader"), LATER)
def test_a_model_that_is_changed_later_is_refused_too(what: str, reader: str, tmp_path: Path) -> None:
    clf, data = headviz.wrap(tiny_model(), tiny_tokenizer(), "mine"), headviz.load_task("demo", limit=6)
    CHANGES[what](clf.model)
    with pytest.raises(UserError, match="'mine' is not a plain model"):
        READERS[reader](clf, data, tmp_path)


def test_onnx_is_refused_where_it_would_pass_a_hook_over(tmp_path: Path) -> None:
    pytest.importorskip("onnxscript")
    pytest.importorskip("onnxruntime")
    clf = headviz.wrap(tiny_model(), tiny_tokenizer())
    CHANGES["forward hook"](clf.model)
    with pytest.raises(UserError, match="doubled"):
        export_onnx(clf, tmp_path / "model.onnx")


@pytest.mark.parametrize("family", some_in_ci(ALL_FAMILIES, ["bert", "gpt2", "t5", "deberta-v2", "gemma2"], OWN_WAYS))
def test_an_adapter_is_seen_in_every_family(family: str) -> None:
    clf, pad = tiny_classifier(family), FAMILIES[family].tiny.get("pad_token_id", 0)
    model = tiny_model(family)
    paths, where = clf.attention(0)
    for path in {paths.query, paths.key, paths.value, paths.output}:
        changed = copy.deepcopy(model)
        put(changed, path.format(**where), lambda old: nn.Sequential(old))
        with pytest.raises(UserError, match="Sequential stands in the place of"):
            headviz.wrap(changed, tiny_tokenizer(pad))


def test_accelerates_placement_is_allowed() -> None:
    hooks = pytest.importorskip("accelerate.hooks")
    model, expected = tiny_model("mpnet"), tiny_classifier("mpnet")
    for module in model.modules():
        hooks.add_hook_to_module(module, hooks.AlignDevicesHook("cpu", io_same_device=True))
    clf = headviz.wrap(model, expected.tokenizer)
    inputs = clf.collate(clf.encode(TEXTS, PAIRS))
    torch.testing.assert_close(clf.logits(inputs, MASK), expected.logits(inputs, MASK))
    assert headviz.prune(clf, MASK).present == MASK
    assert all(hasattr(module, "_hf_hook") for module in model.modules())


def test_the_precision_of_a_training_is_taken_off() -> None:
    operations = pytest.importorskip("accelerate.utils.operations")
    model = tiny_model().eval()
    model._original_forward = model.forward  # as Trainer(bf16=True) leaves a model behind
    low = torch.autocast("cpu", torch.bfloat16)(model.forward.__func__)
    model.forward = MethodType(operations.convert_outputs_to_fp32(low), model)
    result, whole = headviz.wrap(model, tiny_tokenizer()), tiny_classifier()
    assert not torch.allclose(logits(model), whole.logits(batch()), atol=1e-4)
    torch.testing.assert_close(result.logits(batch()), whole.logits(batch()))
    assert result.digest == whole.digest


# PEFT ---------------------------------------------------------------------------------------------


def lora(seed: int = 0, **config: Any) -> Any:
    peft = pytest.importorskip("peft")
    given = {"task_type": "SEQ_CLS", "target_modules": ["query", "key", "value", "dense"], "r": 2} | config
    model = peft.get_peft_model(tiny_model(), peft.LoraConfig(**given)).eval()
    generator = torch.Generator().manual_seed(seed)
    for name, weight in model.named_parameters():
        if "lora_B" in name:
            weight.data = 0.3 * torch.randn(weight.shape, generator=generator)
    return model


def test_a_mask_on_a_peft_model_is_that_on_the_model_inside_it() -> None:
    model = lora()
    with headviz.masked(model.get_base_model(), {1: [0]}):
        inside = logits(model)
    with headviz.masked(model, {1: [0]}):
        assert torch.equal(logits(model), inside)
    assert not torch.equal(logits(model), inside)


def test_a_peft_model_is_merged_into_a_copy() -> None:
    model, data = lora(), headviz.load_task("demo", limit=12)
    before = copy.deepcopy(model.state_dict())
    clf = headviz.wrap(model, tiny_tokenizer())
    truth = headviz.wrap(copy.deepcopy(model).merge_and_unload(), tiny_tokenizer())
    assert isinstance(clf, Classifier)
    assert clf.digest == truth.digest
    torch.testing.assert_close(clf.logits(batch()), logits(model), atol=1e-5, rtol=1e-5)
    assert not torch.allclose(clf.logits(batch()), tiny_classifier().logits(batch()), atol=1e-2)
    mine, right = (headviz.conductance(c, TEXTS[1], PAIRS[1], cache=False) for c in (clf, truth))
    assert np.array_equal(mine.attribution, right.attribution)
    assert np.array_equal(mine.attention, right.attention)
    assert np.array_equal(headviz.evaluate(clf, data, MASK).logits, headviz.evaluate(truth, data, MASK).logits)
    after = model.state_dict()
    assert list(after) == list(before)
    assert all(torch.equal(after[name], before[name]) for name in before)


def test_what_cannot_be_merged_is_refused() -> None:
    off, hooked = lora(), lora()
    off.base_model.disable_adapter_layers()
    hooked.base_model.model.base_model.get_submodule(QUERY).register_forward_hook(doubled)
    part = lora().base_model
    for model, why in (
        (off, "switched off"),
        (hooked, "doubled"),  # merging would drop it
        (part, "the PEFT model itself"),
        (part.model, "merge_and_unload"),  # the transformers model with adapters inside
    ):
        with pytest.raises(UserError, match=why):
            headviz.wrap(model, tiny_tokenizer())
    for model, why in ((part, "the PEFT model itself"), (part.model, "merge_and_unload")):
        with pytest.raises(UserError, match=why):
            headviz.prune_heads(model, OFF)


@pytest.mark.parametrize("kind", ["PromptTuningConfig", "PrefixTuningConfig"])
def test_prompts_cannot_be_merged_but_heads_are_switched_off_beside_them(kind: str) -> None:
    peft = pytest.importorskip("peft")
    torch.manual_seed(0)
    prompts = peft.get_peft_model(tiny_model(), getattr(peft, kind)(task_type="SEQ_CLS", num_virtual_tokens=2))
    with pytest.raises(UserError, match=r"cannot be merged.*headviz\.masked"):
        headviz.wrap(prompts, tiny_tokenizer())
    full = logits(prompts)
    with headviz.masked(prompts, OFF):
        masked = logits(prompts)
    cut = copy.deepcopy(prompts)
    for row, heads in OFF.items():
        weight = cut.get_base_model().base_model.get_submodule(f"encoder.layer.{row}.attention.output.dense").weight
        for head in heads:
            weight.data[:, 8 * head : 8 * (head + 1)] = 0
    torch.testing.assert_close(masked, logits(cut))
    assert not torch.allclose(masked, full, atol=1e-2)
    assert torch.equal(logits(prompts), full)
