"""GIM, HIES, gradient norms and average ranks against literal formulas; what is refused by name."""

from itertools import product

import numpy as np
import pytest
import torch
from torch.nn import functional as F

import headviz
from headviz import HeadMask
from headviz.errors import OptionError
from headviz.evaluation.stand_ins import standing_in
from headviz.extras.scores import gim
from headviz.extras.scores.measures import DEFAULT_MEMBERS, mean_ranks
from headviz.scores.scoring import score_heads
from headviz.storage.store import Store
from support.marks import OWN_WAYS, all_in_ci
from support.scored_data import made
from support.tiny import tiny_classifier
from support.tiny_translation import sentences, tiny_translator

NEW = ("gim", "hies", "gnorm", "ranks")


@pytest.fixture(scope="module")
def clf():
    return tiny_classifier("bert", spread=0.3)


@pytest.fixture(scope="module")
def data():
    return made(6)


def encoded(clf, data, n):
    return clf.collate(clf.encode([data.texts[n]], [data.pairs[n]]))


# GIM ----------------------------------------------------------------------------------------------


def share(x, part):
    """x, with only a part of its gradient."""
    return x * part + x.detach() * (1 - part)


def norm_with_fixed_divisor(x, module):
    centred = x - x.mean(-1, keepdim=True)
    return centred / (centred.pow(2).mean(-1, keepdim=True) + module.eps).sqrt().detach() * module.weight + module.bias


def gim_of_bert(clf, batch, gold, temperature):
    """BERT written out, every changed gradient in its place. [L, H] of Σ O ⊙ ∂Loss/∂O."""
    base = clf.model.bert
    e = base.embeddings
    x = e.word_embeddings(batch["input_ids"]) + e.token_type_embeddings(batch["token_type_ids"])
    x = x + e.position_embeddings(torch.arange(x.shape[1])[None])
    x = norm_with_fixed_divisor(x.detach().requires_grad_(True), e.LayerNorm)
    outputs = []
    with torch.enable_grad():
        for layer in base.encoder.layer:
            own = layer.attention.self
            q, k, v = (
                share(m(x), part).view(1, -1, 4, 8).transpose(1, 2)
                for m, part in ((own.query, 0.25), (own.key, 0.25), (own.value, 0.5))
            )
            scores = q @ k.transpose(2, 3) / 8**0.5
            soft = torch.softmax(scores / temperature, -1) * temperature  # its gradient has no 1/T
            probs = torch.softmax(scores, -1).detach() + soft - soft.detach()
            outputs.append(probs @ v)
            mixed = layer.attention.output.dense(outputs[-1].transpose(1, 2).flatten(2))
            y = norm_with_fixed_divisor(mixed + x, layer.attention.output.LayerNorm)
            inner = layer.intermediate.intermediate_act_fn(layer.intermediate.dense(y))
            x = norm_with_fixed_divisor(layer.output.dense(inner) + y, layer.output.LayerNorm)
        logits = clf.model.classifier(base.pooler(x))
        loss = F.cross_entropy(logits, torch.tensor([gold]))
    grads = torch.autograd.grad(loss, outputs)
    stands = [0] * 3 if clf.fill is None else [rows[:, None] for rows in clf.fill.values]
    parts = [(o - v) * g for o, v, g in zip(outputs, stands, grads, strict=True)]
    return logits, np.stack([part.sum(dim=(0, 2, 3)).detach().numpy() for part in parts])


@pytest.mark.parametrize(("temperature", "kind"), [(2.0, "zero"), (5.0, "mean")])
def test_gim_is_the_derivative_of_bert_written_out_with_its_changed_gradients(clf, data, temperature, kind):
    clf, slow = standing_in(clf, kind, made(6, seed=1)), []
    for n in range(len(data)):
        batch = encoded(clf, data, n)
        logits, one = gim_of_bert(clf, batch, int(data.labels[n]), temperature)
        torch.testing.assert_close(logits, clf.forward(batch, clf.call()), atol=1e-5, rtol=1e-5)  # forward as it is
        slow.append(np.abs(one))
    result = score_heads(clf, data, "gim", temperature=temperature, cache=False).values
    np.testing.assert_allclose(result, np.mean(slow, axis=0), rtol=1e-3, atol=1e-7)


@pytest.mark.parametrize(("translates", "kind"), [(False, "zero"), (True, "zero"), (True, "mean")])
def test_without_its_changes_gim_is_taylor(clf, data, translates, kind, monkeypatch):
    """Of sentences, too; so what is changed is only the backward pass."""
    clf, data = (tiny_translator(), sentences()) if translates else (clf, data)
    clf = standing_in(clf, kind, data)
    plain = score_heads(clf, data, "taylor", layer_norm=False, cache=False).values
    changed = score_heads(clf, data, "gim", cache=False).values
    assert not np.allclose(plain, changed, rtol=0.05)
    monkeypatch.setattr(gim, "layer_norm", F.layer_norm)
    monkeypatch.setattr(gim, "shares", lambda clf: {})
    np.testing.assert_allclose(score_heads(clf, data, "gim", temperature=1.0, cache=False).values, plain, rtol=2e-3)


def test_factors_of_a_product_share_its_gradient():
    """ModernBERT: W_QKV in one matrix, and half of W_i multiplies the other half. BERT: nothing multiplies."""
    clf = tiny_classifier("modernbert")
    result = gim.shares(clf)
    places = clf.projections(0)
    thirds = result[id(places.query.weight)].view(3, -1)
    assert [set(third.tolist()) for third in thirds] == [{0.25}, {0.25}, {0.5}]
    assert sorted(v for v in result.values() if isinstance(v, float)) == [0.5] * clf.num_layers
    assert len(gim.shares(tiny_classifier("bert"))) == 9


def test_a_norm_that_gim_does_not_know_is_refused_by_name(data):
    with pytest.raises(OptionError, match="LlamaRMSNorm"):
        score_heads(tiny_classifier("llama"), data, "gim", cache=False)
    with pytest.raises(OptionError, match="T5LayerNorm"):
        score_heads(tiny_translator("t5"), sentences(), "gim", cache=False)


# HIES ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("alpha", "kind"), [(0.0, "zero"), (0.3, "mean")])
def test_hies_is_its_formula(clf, data, alpha, kind):
    clf = standing_in(clf, kind, made(6, seed=1))
    importance, spread = np.zeros((3, 4)), np.zeros((3, 4))
    importance += score_heads(clf, data, "taylor", layer_norm=False, cache=False).values
    for n in range(len(data)):
        call = clf.call(kernel="eager", keep_probs=True)
        with torch.no_grad():
            clf.forward(encoded(clf, data, n), call)
        for layer, probs in enumerate(call.probs):
            for head in range(4):
                rows = [-sum(p * np.log(p) for p in row.tolist() if p > 0) for row in probs[0, head]]
                spread[layer, head] += np.mean(rows) / np.log(len(rows)) / len(data)
    i, e = ((t - t.min()) / (t.max() - t.min()) for t in (importance, spread))
    result = score_heads(clf, data, "hies", alpha=alpha, cache=False).values
    np.testing.assert_allclose(result, alpha * i + (1 - alpha) * (1 - e), rtol=1e-3, atol=1e-4)


# gradient norms -----------------------------------------------------------------------------------


def blocks(clf, layer, which):
    """The weight that a head's rows of W_Q, W_K or W_V are in, and where: [(head, rows of it as [outputs, inputs])]."""
    places = clf.projections(layer)
    fused = places.value is places.query
    offset = 32 * ("query", "key", "value").index(which) if fused else 0
    group = 1 if which == "query" else clf.group_size
    return getattr(places, which), [slice(offset + 8 * (h // group), offset + 8 * (h // group) + 8) for h in range(4)]


@pytest.mark.parametrize(
    "family", all_in_ci(("bert", "deberta-v2", "modernbert", "gpt2", "llama", "mpnet"), ("bert", "deberta-v2", "gpt2"))
)
def test_gnorm_is_the_product_of_the_norms_of_autograds_gradients(family, data):
    means = {which: np.zeros((3, 4)) for which in ("query", "key", "value")}
    clf = tiny_classifier(family)
    weights = {id(m.weight): m.weight for i in range(3) for m in clf.projections(i)[:3]}
    for weight in weights.values():
        weight.requires_grad_(True)
    for n in range(len(data)):
        with torch.enable_grad():
            size = clf.forward(encoded(clf, data, n), clf.call()).norm()
        grads = dict(zip(weights, torch.autograd.grad(size, list(weights.values())), strict=True))
        for which, table in means.items():
            for layer in range(3):
                matrix, rows = blocks(clf, layer, which)
                grad = grads[id(matrix.weight)]
                grad = grad.T if hasattr(matrix, "nx") else grad
                table[layer] += [float(grad[r].norm()) / len(data) for r in rows]
    result = score_heads(tiny_classifier(family), data, "gnorm", cache=False).values
    np.testing.assert_allclose(result, means["query"] * means["key"] * means["value"], rtol=2e-3)


def test_gnorm_of_a_model_without_a_layer_is_that_of_the_masked_one(data):
    clf = tiny_classifier("deberta-v2")
    mask = clf.full_mask.without((1, h) for h in range(4))
    result, wanted = (
        score_heads(model, data, "gnorm", mask=m, cache=False).values
        for model, m in ((headviz.prune(clf, mask), None), (clf, mask))
    )
    assert np.isnan(result[1]).all()
    np.testing.assert_allclose(result, wanted, rtol=1e-4)


# average ranks ------------------------------------------------------------------------------------


def place(table, head):
    """Between 0 and 1: the share of the other values that are below this one, equal ones half."""
    others = [v for i, row in enumerate(table) for j, v in enumerate(row) if (i, j) != head and v == v]
    return sum((v < table[head]) + (v == table[head]) / 2 for v in others) / len(others)


def test_ranks_are_averaged_ties_shared_and_missing_values_left_out():
    a = np.array([[3.0, 1.0, 2.0], [2.0, np.nan, 0.0]])
    b = np.array([[np.nan, 10.0, -1.0], [7.0, np.nan, 7.0]])
    result = mean_ranks([a, b])
    assert np.isnan(result[1, 1])
    assert result[0, 0] == 1  # the highest of the only table that has it
    for head in ((0, 1), (0, 2), (1, 0), (1, 2)):
        assert result[head] == pytest.approx(np.mean([place(t, head) for t in (a, b)]))


def test_ranks_of_a_model_are_those_of_its_members_tables(clf, data):
    mask = HeadMask.full(3, 4).without([(0, 1)])
    for members in (None, "taylor, random"):
        names = DEFAULT_MEMBERS if members is None else [name.strip() for name in members.split(",")]
        tables = [score_heads(clf, data, name, mask=mask, cache=False).values for name in names]
        result = score_heads(clf, data, "ranks", mask=mask, members=members, cache=False).values
        assert np.isnan(result[0, 1])
        for head in mask.kept:
            assert result[head] == pytest.approx(np.mean([place(t, head) for t in tables]))


def test_members_that_were_measured_are_not_measured_again(clf, data, tmp_path, monkeypatch):
    from headviz.scores import score

    store = Store(tmp_path)
    score_heads(clf, data, "taylor", cache=store)
    first = score_heads(clf, data, "ranks", members="taylor,fisher", cache=False).values

    def never(chunk):
        raise AssertionError("measured again")

    monkeypatch.setitem(score.SWEEPS, "gates", score.Sweep(**{**vars(score.SWEEPS["gates"]), "run": never}))
    np.testing.assert_array_equal(score_heads(clf, data, "ranks", members="taylor,fisher", cache=store).values, first)


# every kind of model ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("family", "name"),
    all_in_ci(
        [*product(["albert"], NEW), *product(OWN_WAYS, ["gnorm"]), ("deberta-v2", "gim")], product(["albert"], NEW)
    ),
)
def test_every_family_has_them_or_says_why_not(family, name):
    clf, data = tiny_classifier(family), made(3)
    said = ""
    try:
        assert np.isfinite(score_heads(clf, data, name, cache=False).values).all()
    except headviz.UserError as error:
        said = str(error)
    assert not said or any(word in said for word in (clf.name, "BART", "T5"))
    assert not said or family not in ("bert", "roberta", "distilbert", "albert", "electra", "mpnet", "modernbert")
