"""Really removing heads: equal logits, sizes, saving, reloading, and the masked export."""

import os
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode
from transformers import AutoModelForSequenceClassification

import headviz
from headviz import HeadMask
from headviz.errors import ModelError
from support.tiny import PAIRS, TEXTS, tiny_classifier, tiny_folder, tiny_model, tiny_tokenizer

FULL = HeadMask.full(3, 4)
MASKS = {
    "uneven": FULL.without([(0, 1), (2, 0), (2, 3)]),
    "a layer without heads": FULL.without([(1, h) for h in range(4)] + [(0, 2)]),
    "no head at all": FULL.inverted(),
    "one head": HeadMask.only(3, 4, [(1, 2)]),
    "nothing": FULL,
}


def batch_of(clf: headviz.Classifier) -> dict[str, torch.Tensor]:
    return clf.collate(clf.encode(TEXTS, PAIRS))


def same_logits(a: headviz.Classifier, b: headviz.Classifier, mask: HeadMask | None = None) -> None:
    torch.testing.assert_close(a.logits(batch_of(a)), b.logits(batch_of(b), mask), atol=1e-5, rtol=0)


@pytest.mark.parametrize("which", MASKS)  # of every family: test_family_contract
def test_pruned_equals_masked_and_survives_a_reload(which: str, tmp_path: Path) -> None:
    clf, mask = tiny_classifier(), MASKS[which]
    digest = clf.digest
    small = headviz.prune(clf, mask)
    assert small.present == mask
    assert small.heads_per_layer == [4 - len(mask.off_in(i)) for i in range(3)]
    same_logits(small, clf, mask)
    again = headviz.load(small.save(tmp_path / "small"), device="cpu")
    assert again.present == mask
    assert again.digest == small.digest
    assert torch.equal(again.logits(batch_of(again)), small.logits(batch_of(small)))
    assert clf.digest == digest, "the caller's model was edited"
    assert clf.present.is_full
    assert clf.cost(mask, 40) == small.cost(length=40)
    assert small.cost(length=40).parameters == sum(p.numel() for p in small.model.parameters())


def test_a_half_precision_checkpoint_turned_into_float32_loses_nothing(tmp_path: Path) -> None:
    """Its configuration still says half precision, in which the weights were read back."""
    model = tiny_model()
    model.config.dtype = torch.bfloat16
    small = headviz.prune(headviz.wrap(model, tiny_tokenizer()), MASKS["uneven"])
    again = headviz.load(small.save(tmp_path / "m"), device="cpu")
    assert again.digest == small.digest
    assert torch.equal(again.logits(batch_of(again)), small.logits(batch_of(small)))


def test_saving_leaves_the_model_alone_for_other_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They met a configuration without headviz's attention function."""
    clf, met = tiny_classifier(), []
    config, save = clf.config, type(clf.model).save_pretrained

    def noted(model: Any, folder: Path) -> None:
        met.append(clf.config)
        save(model, folder)

    monkeypatch.setattr(type(clf.model), "save_pretrained", noted)
    clf.save(tmp_path / "m")
    assert [one is config for one in met] == [True]
    assert headviz.load(tmp_path / "m", device="cpu").digest == clf.digest


def test_masking_a_removed_head_changes_nothing_and_others_keep_their_numbers() -> None:
    clf = tiny_classifier("bert")
    small = headviz.prune(clf, FULL.without([(0, 0), (1, 2)]))
    batch = batch_of(clf)
    assert torch.equal(small.logits(batch, FULL.without([(0, 0)])), small.logits(batch))
    torch.testing.assert_close(
        small.logits(batch, FULL.without([(0, 3), (1, 2), (2, 1)])),
        clf.logits(batch, FULL.without([(0, 0), (0, 3), (1, 2), (2, 1)])),
        atol=1e-5,
        rtol=0,
    )


def test_masked_export_of_a_pruned_model_has_all_shapes_again(tmp_path: Path) -> None:
    clf = tiny_classifier("bert")
    first, more = FULL.without([(0, 0), (1, 2)]), FULL.without([(0, 3)])
    headviz.prune(clf, first).export_masked(tmp_path / "m", more)
    plain = AutoModelForSequenceClassification.from_pretrained(tmp_path / "m").eval()
    assert plain.config._attn_implementation == "sdpa"
    batch = batch_of(clf)
    with torch.inference_mode():
        torch.testing.assert_close(plain(**batch).logits, clf.logits(batch, first | more), atol=1e-5, rtol=0)


def test_shared_layers_refuse_a_masked_export(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="one set of weights for all layers"):
        tiny_classifier("albert").export_masked(tmp_path / "m", MASKS["uneven"])
    assert not list(tmp_path.iterdir())


def test_saving_never_writes_over_something(tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes.txt").write_text("keep me")
    with pytest.raises(ModelError, match="not an empty folder"):
        tiny_classifier("bert").save(tmp_path / "full")
    assert [p.name for p in tmp_path.rglob("*")] == ["full", "notes.txt"]


@pytest.mark.parametrize("family", ["bert", "distilbert", "modernbert", "albert"])
def test_flops_are_those_that_torch_counts(family: str, tmp_path: Path) -> None:
    clf = headviz.load(tiny_folder(tmp_path / "m", family), device="cpu")
    clf = headviz.prune(clf, MASKS["uneven"]) if clf.family.prunable else clf
    assert clf.cost(length=17).flops == _layer_flops(clf, torch.full((1, 17), 7))


@pytest.mark.parametrize(
    "config",
    [{}, {"share_att_key": False, "pos_att_type": ["c2p"]}, {"position_buckets": -1}],
    ids=["shared", "one kind of their own", "no buckets"],
)
def test_products_with_positions_are_counted(config: dict[str, Any]) -> None:
    """They shrink with the heads: without them the ceiling of a speed-up is too low."""
    clf = tiny_classifier("deberta-v2", **config)
    small = headviz.prune(clf, MASKS["uneven"])
    ids = torch.full((1, 17), 7)
    assert clf.cost(length=17).flops == _layer_flops(clf, ids)
    assert clf.cost(MASKS["uneven"], 17).flops == small.cost(length=17).flops == _layer_flops(small, ids)


def _layer_flops(clf: headviz.Classifier, ids: torch.Tensor) -> int:
    """Products counted by torch inside the stack of layers, eager so that attention is counted too."""
    with FlopCounterMode(display=False, depth=20) as counter:
        clf.forward({"input_ids": ids}, clf.call(kernel="eager"))
    counts = counter.get_flop_counts()
    prefix = f"{type(clf.model).__name__}.{clf.model.base_model_prefix}."
    path = clf.family.layers["encoder"].modules
    depth = path.count(".") + 2
    names = [n for n in counts if n.startswith(f"{prefix}{path}.") and n.removeprefix(prefix).count(".") == depth - 1]
    return sum(sum(counts[n].values()) for n in names)


@pytest.mark.skipif(sys.platform == "win32", reason="files have no mode there")
def test_saved_files_are_for_whom_the_umask_says(tmp_path: Path) -> None:
    mask = 0o027
    clf, before = tiny_classifier("bert"), os.umask(mask)
    try:
        headviz.prune(clf, MASKS["uneven"]).save(tmp_path / "small")
        clf.save(tmp_path / "whole")
        clf.export_masked(tmp_path / "masked")
    finally:
        os.umask(before)
    for folder in (tmp_path / "small", tmp_path / "whole", tmp_path / "masked"):
        assert folder.stat().st_mode & 0o777 == 0o777 & ~mask
        result = {p.name: p.stat().st_mode & 0o777 for p in folder.iterdir()}
        assert any(name.endswith(".safetensors") for name in result)
        assert set(result.values()) == {0o666 & ~mask}
