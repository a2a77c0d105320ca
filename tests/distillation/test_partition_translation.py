"""The same statement on encoder-decoder models: exact where norms stand in front, said so where they do not."""

import dataclasses

import pytest
import torch

import headviz
from headviz.extras.distillation.layer_removal import remove, zeroed_model
from headviz.extras.distillation.removal import Removal
from support.tiny_translation import SOURCES, TARGETS, tiny_translator

PRE_NORM = ("mbart", "t5")


def logits(clf):
    return clf.logits(clf.collate(clf.encode(SOURCES, TARGETS)))


def zeroed(clf, partition):
    return dataclasses.replace(clf, model=zeroed_model(clf.model, partition))


def close(ours, theirs):
    torch.testing.assert_close(ours, theirs, atol=2e-5, rtol=1e-5)


@pytest.mark.parametrize(
    ("family", "text"),
    [
        ("marian", "heads:0.1,2.0,3.3,6.2"),
        ("t5", "heads-qkv:0.1,2.0,3.3,6.2"),
        ("mbart", "heads-v:cross.1.2"),
        ("t5", "ffn:0,decoder.1"),
        ("marian", "heads:5.0,5.1,5.2,5.3+ffn:decoder.0"),
    ],
)
def test_heads_and_feed_forward_blocks_are_exact_in_every_stack(family, text):
    clf = tiny_translator(family)
    result = remove(clf, Removal.parse(text))
    assert result.partition.exact
    assert not torch.allclose(logits(result.student), logits(clf), atol=1e-3)
    close(logits(result.student), logits(zeroed(clf, result.partition)))


@pytest.mark.parametrize("family", ["marian", "mbart", "t5"])
@pytest.mark.parametrize("text", ["layers:decoder.1", "layers:1,decoder.2+ffn:decoder.1+heads:2.0"])
def test_layers_are_exact_with_norms_in_front(family, text):
    clf = tiny_translator(family)
    result = remove(clf, Removal.parse(text))
    assert result.partition.exact == (family in PRE_NORM)
    ours, theirs = logits(result.student), logits(zeroed(clf, result.partition))
    if family in PRE_NORM:
        close(ours, theirs)
    else:
        assert "norm(norm(x))" in result.partition.remark
        assert not torch.allclose(ours, theirs, atol=1e-5)
    sizes = result.partition.sizes
    assert sizes["kept"] == sum(p.numel() for p in result.student.model.parameters())
    assert sum(sizes.values()) == sum(p.numel() for p in clf.model.parameters())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "text", "rows"),
    [
        ("marian", "layers:decoder.1", (2, 2, 2)),
        ("t5", "layers:decoder.1", (2, 2, 2)),
        ("mbart", "layers:1+heads:0.3", (1, 3, 3)),
        ("marian", "ffn:decoder.2", (2, 3, 3)),
    ],
)
def test_students_are_translators_that_load_again(family, text, rows, tmp_path):
    student = remove(tiny_translator(family), Removal.parse(text)).student
    assert tuple(len(r) for r in student.stacks.values()) == rows
    student.save(tmp_path / "student")
    again = headviz.load(tmp_path / "student")
    assert torch.equal(logits(again), logits(student))
    assert again.digest == student.digest
    batch = again.collate(again.encode(SOURCES))
    cached = again.generate(batch, max_new_tokens=8)
    assert torch.equal(cached, again.generate(batch, max_new_tokens=8, cached=False))
    assert torch.equal(cached, student.generate(batch, max_new_tokens=8))


def test_columns_of_t5s_position_tables_go_with_the_last_head_that_reads_them():
    clf = tiny_translator("t5")
    text = "heads:" + ",".join(f"{row}.2" for row in (5, 7)) + "+layers:decoder.1"
    result = remove(clf, Removal.parse(text))
    assert result.partition.exact
    close(logits(result.student), logits(zeroed(clf, result.partition)))
    # in two steps it is the same
    one = remove(clf, Removal.parse("heads:5.2,7.2")).student
    two = remove(one, Removal.parse("layers:decoder.1")).student
    assert torch.equal(logits(two), logits(result.student))


def test_heads_may_be_named_by_their_stack():
    clf = tiny_translator("marian")  # rows: encoder 0 and 1, cross 2 to 4, decoder 5 to 7
    named = Removal.parse("heads:cross.1.3,0.1+ffn:1 + heads:decoder.2.0")
    assert named.text == "heads:0.1,cross.1.3,decoder.2.0+ffn:1"
    assert Removal.parse(named.text) == named
    rows = Removal.parse("heads:0.1,3.3,7.0+ffn:1")
    assert named.in_rows(clf.stacks) == rows
    one, two = remove(clf, named), remove(clf, rows)
    assert one.student.digest == two.student.digest
    assert set(one.student.present.off) == {(0, 1), (3, 3), (7, 0)}
