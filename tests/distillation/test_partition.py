"""The teacher with v2 at zero is the student with the teacher's weights: as functions, on every family."""

import dataclasses

import numpy as np
import pytest
import torch

import headviz
from headviz.errors import MaskError, ModelError, OptionError
from headviz.extras.distillation.layer_removal import KEPT, USELESS, ZEROED, Entries, Partition, remove, zeroed_model
from headviz.extras.distillation.removal import Removal
from support.tiny import PAIRS, TEXTS, tiny_classifier

POST_NORM = ("bert", "distilbert", "roberta")  # and W_Q, W_K, W_V in matrices of their own
EACH_KIND = (*POST_NORM, "modernbert")


def logits(clf):
    return clf.logits(clf.collate(clf.encode(TEXTS, PAIRS)))


def copied(partition, weights):
    """The student's weights as the teacher has them."""
    return {name: piece.take(weights[piece.name]) for name, piece in partition.kept.items()}


def zeroed(clf, partition):
    return dataclasses.replace(clf, model=zeroed_model(clf.model, partition))


@pytest.mark.parametrize("family", POST_NORM)
@pytest.mark.parametrize(
    "text",
    [
        *("heads:0.1,0.3,2.0", "heads-v:0.1,0.3,2.0", "heads-qkv:0.1,0.3,2.0", "heads-all:0.1,0.3,2.0"),
        *("heads:1.0,1.1,1.2,1.3+ffn:1", "heads-v:1.0,1.1,1.2,1.3+ffn:1"),
    ],
)
def test_heads_and_feed_forward_blocks_are_exact(family, text):
    clf = tiny_classifier(family)
    result = remove(clf, Removal.parse(text))
    assert result.partition.exact
    assert not torch.allclose(logits(result.student), logits(clf), atol=1e-3), "the removal must be visible"
    torch.testing.assert_close(logits(result.student), logits(zeroed(clf, result.partition)), atol=1e-5, rtol=0)


def test_layers_with_norms_in_front_are_exact():
    clf = tiny_classifier("modernbert")
    result = remove(clf, Removal.parse("layers:1+ffn:2+heads:0.1,0.3"))
    assert result.partition.exact
    assert result.student.num_layers == clf.num_layers - 1
    assert not torch.allclose(logits(result.student), logits(clf), atol=1e-3)
    torch.testing.assert_close(logits(result.student), logits(zeroed(clf, result.partition)), atol=1e-5, rtol=0)


@pytest.mark.parametrize("family", POST_NORM)
def test_layers_with_norms_behind_are_not_and_say_so(family):
    """What is left of a zeroed post-norm layer is norm(norm(x)): checked by computing just that."""
    clf = tiny_classifier(family, layers=3)
    # trained norms are never exactly one and zero
    for name, p in clf.model.named_parameters():
        if "norm" in name.lower() and name.endswith("weight"):
            p.data += torch.linspace(-0.5, 0.5, p.numel())
    result = remove(clf, Removal.parse("layers:1"))
    assert not result.partition.exact
    assert "norm(norm(x))" in result.partition.remark
    ours, theirs = logits(result.student), logits(zeroed(clf, result.partition))
    assert not torch.allclose(ours, theirs, atol=1e-4)
    # putting the two norms behind the layer in front makes up exactly the difference
    zero = zeroed(clf, result.partition)
    lists = [m for m in zero.model.modules() if isinstance(m, torch.nn.ModuleList) and len(m) == 3]
    norms = [m for m in lists[0][1].modules() if isinstance(m, torch.nn.LayerNorm)]
    own = next(m for m in result.student.model.modules() if isinstance(m, torch.nn.ModuleList) and len(m) == 2)

    class Followed(torch.nn.Module):
        def __init__(self, layer):
            super().__init__()
            self.layer = layer

        def forward(self, *args, **kwargs):
            out = self.layer(*args, **kwargs)
            first = out[0] if isinstance(out, tuple) else out
            for norm in norms:
                first = norm(first)
            return (first, *out[1:]) if isinstance(out, tuple) else first

    own[0] = Followed(own[0])
    torch.testing.assert_close(logits(result.student), theirs, atol=1e-5, rtol=0)


@pytest.mark.parametrize("family", EACH_KIND)
@pytest.mark.parametrize("text", ["heads:0.1,2.0,2.3", "layers:1+ffn:2+heads:0.0"])
def test_every_weight_has_one_role_and_the_student_holds_the_kept_ones(family, text):
    clf = tiny_classifier(family)
    result = remove(clf, Removal.parse(text))
    partition = result.partition
    teacher = dict(clf.model.named_parameters())
    roles = {name: partition.roles(name) for name in teacher}
    counts = {
        role: sum(int((r == number).sum()) for r in roles.values())
        for role, number in (("kept", KEPT), ("useless", USELESS), ("zeroed", ZEROED))
    }
    assert counts == partition.sizes
    assert sum(counts.values()) == sum(p.numel() for p in teacher.values())
    assert counts["kept"] == sum(p.numel() for p in result.student.model.parameters())
    assert min(counts["useless"], counts["zeroed"]) > 0
    own = copied(partition, teacher)
    for name, p in result.student.model.named_parameters():
        assert torch.equal(p, own[name]), name


@pytest.mark.parametrize("by", ["", "-v", "-qkv"])
@pytest.mark.parametrize("family", POST_NORM)
def test_useless_weights_are_useless(family, by):
    """With v2 at zero, whatever v1 is changes nothing; with v2 as it was, it does."""
    clf = tiny_classifier(family)
    partition = remove(clf, Removal.parse(f"heads{by}:0.1+ffn:1+layers:2")).partition
    plain, zero = clf, zeroed(clf, partition)
    before = logits(plain), logits(zero)
    for one in (plain, zero):
        # norms of a zeroed post-norm layer still act (that is why it is not exact), so they stay as they are
        for name, p in one.model.named_parameters():
            if "norm" not in name.lower():
                p.data[partition.roles(name) == USELESS] += 0.7
    assert torch.equal(logits(zero), before[1])
    assert not torch.allclose(logits(plain), before[0], atol=1e-3)


def test_what_is_zeroed_is_what_was_named():
    """By W_O the columns of the head, by V its rows and bias of W_V, by Q, K and V those of all three."""
    clf = tiny_classifier("bert")
    size, hidden = clf.head_size, clf.config.hidden_size
    place = "bert.encoder.layer.1.attention."
    maps = {"query": "self.query", "key": "self.key", "value": "self.value"}
    for by, named in (("", ()), ("-v", ("value",)), ("-qkv", ("query", "key", "value"))):
        result = remove(clf, Removal.parse(f"heads{by}:1.2"))
        roles = {n: result.partition.roles(n) for n, _ in clf.model.named_parameters()}
        rows, others = slice(2 * size, 3 * size), [i for i in range(hidden) if i // size != 2]
        for name, path in maps.items():
            role = ZEROED if name in named else USELESS
            for kind in ("weight", "bias"):
                assert (roles[f"{place}{path}.{kind}"][rows] == role).all()
                assert (roles[f"{place}{path}.{kind}"][others] == KEPT).all()
        output = roles[f"{place}output.dense.weight"]
        assert (output[:, rows] == (USELESS if named else ZEROED)).all()
        assert (output[:, others] == KEPT).all()
        assert torch.equal(logits(result.student), logits(remove(clf, Removal.parse("heads:1.2")).student))


def test_shared_values_cannot_be_zeroed(monkeypatch):
    clf = tiny_classifier("bert")
    monkeypatch.setattr(type(clf), "group_size", 2)
    with pytest.raises(ModelError, match="whose zeros are in W_O"):
        remove(clf, Removal.parse("heads-v:0.1"))


def test_the_teacher_is_left_alone():
    clf = tiny_classifier("bert")
    before = {k: v.clone() for k, v in clf.model.state_dict().items()}
    config = clf.config.to_dict()
    result = remove(clf, Removal.parse("layers:1+ffn:2+heads:0.1,0.3"))
    for p in result.student.model.parameters():
        p.data.fill_(3.0)
    assert all(torch.equal(v, before[k]) for k, v in clf.model.state_dict().items())
    assert clf.config.to_dict() == config


@pytest.mark.parametrize("family", EACH_KIND)
@pytest.mark.parametrize("text", ["ffn:0", "layers:1+ffn:2"])
def test_students_load_again_with_equal_logits(family, text, tmp_path):
    clf = tiny_classifier(family)
    student = remove(clf, Removal.parse(text)).student
    student.save(tmp_path / "student")
    again = headviz.load(tmp_path / "student")
    assert torch.equal(logits(again), logits(student))
    assert again.digest == student.digest
    assert again.num_layers == student.num_layers


def test_a_layer_removed_alone_is_a_plain_transformers_model(tmp_path):
    from transformers import AutoModelForSequenceClassification

    clf = tiny_classifier("bert")
    student = remove(clf, Removal.parse("layers:1")).student
    student.save(tmp_path / "student")
    plain = AutoModelForSequenceClassification.from_pretrained(tmp_path / "student")
    batch = student.collate(student.encode(TEXTS, PAIRS))
    torch.testing.assert_close(plain(**batch).logits, logits(student), atol=1e-6, rtol=0)


def test_students_can_be_masked_evaluated_and_cut_again():
    clf = tiny_classifier("bert", layers=4)
    first = remove(clf, Removal.parse("heads:3.1+ffn:2")).student
    second = remove(first, Removal.parse("layers:1")).student
    assert second.num_layers == 3
    assert second.heads_per_layer == [4, 4, 3]
    assert second.config.removed_feed_forward == {"encoder": [1]}
    once = remove(clf, Removal.parse("heads:3.1+ffn:2+layers:1")).student
    assert torch.equal(logits(once), logits(second))
    batch = second.collate(second.encode(TEXTS, PAIRS))
    mask = headviz.HeadMask.full(3, 4).without([(0, 2)])
    assert not torch.allclose(second.logits(batch, mask), logits(second), atol=1e-4)
    assert second.cost().parameters == sum(p.numel() for p in second.model.parameters())


def test_the_fast_evaluation_agrees_on_an_empty_feed_forward_block():
    from headviz.models.fast.packing import pack
    from headviz.models.fast.stages import stages_for

    clf = remove(tiny_classifier("bert"), Removal.parse("ffn:1")).student
    encodings = clf.encode(TEXTS, PAIRS)
    stages = stages_for(clf)
    out = np.zeros((len(encodings), 3), dtype=np.float32)
    for chunk in pack([len(e) for e in encodings], 4096):
        with torch.inference_mode():
            hidden = stages.embed(chunk, encodings)
            gates = clf.gates(None)
            for layer in range(clf.num_layers):
                hidden = stages.layer(layer, hidden, chunk, gates)
            out[list(chunk.index)] = stages.read_out(hidden, chunk, encodings).numpy()
    np.testing.assert_allclose(out, logits(clf).numpy(), atol=1e-5)


def test_a_removed_feed_forward_block_comes_back_as_zeros_in_a_masked_export(tmp_path):
    clf = remove(tiny_classifier("bert"), Removal.parse("ffn:1")).student
    folder = clf.export_masked(tmp_path / "export")
    assert not (folder / "headviz.json").exists()
    np.testing.assert_allclose(logits(headviz.load(folder)).numpy(), logits(clf).numpy(), atol=1e-5)


@pytest.mark.parametrize(
    ("text", "kind", "words"),
    [
        ("layers:0,1,2", ModelError, "leaves nothing"),
        ("ffn:decoder.1", ModelError, "no decoder layers"),
        ("layers:99+heads:0.1", ModelError, "no encoder layer 99"),
        ("layers:decoder.1+heads:0.1", ModelError, "no decoder layers"),
        ("heads:9.0", MaskError, "does not exist"),
        ("heads:" + ",".join(f"{i}.{j}" for i in range(3) for j in range(4)), MaskError, "every head"),
        ("heads:1.0+layers:1", OptionError, "goes with its layer"),
        ("attention", ModelError, "heads, not one attention"),
        ("", OptionError, "Nothing to remove"),
        ("head:3.5", OptionError, "Did you mean 'heads'"),
        ("attention+ffn:1", OptionError, "recurrent"),
        ("heads-v:0.1+heads:0.2", OptionError, "in one way"),
        ("layers-v:1", OptionError, "Choose one of"),
    ],
)
def test_bad_removals_get_one_clear_line(text, kind, words):
    with pytest.raises(kind, match=words) as error:
        remove(tiny_classifier("bert"), Removal.parse(text))
    assert "\n" not in str(error.value)


def test_families_without_separate_layers_say_so():
    with pytest.raises(ModelError, match="share weights"):
        remove(tiny_classifier("albert"), Removal.parse("layers:1"))
    with pytest.raises(ModelError, match="built otherwise"):
        remove(tiny_classifier("modernbert"), Removal.parse("layers:0"))


def test_a_weight_cannot_be_kept_and_zeroed():
    with pytest.raises(ModelError, match="at once"):
        Partition({"w": torch.Size([3])}, {"w": Entries("w")}, (Entries("w"),))
