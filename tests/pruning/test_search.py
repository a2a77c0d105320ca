"""The Fisher mask search against brute force, and its gradients against finite differences."""

from itertools import combinations

import numpy as np
import pytest
import torch

from headviz.heads import HeadId, HeadMask
from headviz.pruning import search
from headviz.pruning.job import run_plan
from headviz.scores.learned import gate_gradients
from support.pruning_plans import context, make_data, plan
from support.tiny import tiny_classifier


def brute_search(gradients, count, keep=0):
    """Every mask of this size, the sum of the diagonal Fisher information of its heads."""
    fisher = (gradients**2).sum(axis=0)
    heads = [HeadId(*h) for h in np.ndindex(*fisher.shape)]
    best = None
    for off in combinations(heads, count):
        mask = HeadMask.full(*fisher.shape).without(off)
        if any(fisher.shape[1] - len(mask.off_in(i)) < keep for i in range(fisher.shape[0])):
            continue
        cost = sum(fisher[h] for h in off)
        if best is None or cost < best[0]:
            best = cost, mask
    return best[1]


@pytest.mark.parametrize("count", range(9))
@pytest.mark.parametrize("seed", range(5))
def test_search_is_the_best_of_all_masks_on_2x4_heads(count, seed):
    g = np.random.default_rng(seed).normal(size=(20, 2, 4))
    assert search.search(g, count) == brute_search(g, count)
    if count <= 6:
        assert search.search(g, count, keep_per_layer=1) == brute_search(g, count, keep=1)


@pytest.mark.parametrize("count", range(9))
@pytest.mark.parametrize("seed", range(5))
def test_rearrangement_is_the_best_of_all_with_these_layer_sizes(count, seed):
    rng = np.random.default_rng(seed)
    g = rng.normal(size=(20, 2, 4)) + rng.normal(size=(20, 2, 1))  # heads of a layer that interact
    result = search.rearranged(search.search(g, count), g)
    sizes = [len(search.search(g, count).off_in(i)) for i in range(2)]
    best = None
    for off in combinations([HeadId(*h) for h in np.ndindex(2, 4)], count):
        mask = HeadMask.full(2, 4).without(off)
        if [len(mask.off_in(i)) for i in range(2)] != sizes:
            continue
        cost = sum((g[:, i, list(mask.off_in(i))].sum(axis=1) ** 2).sum() for i in range(2))
        if best is None or cost < best[0] - 1e-12:
            best = cost, mask
    assert result == best[1]


def test_swaps_reach_a_local_best_and_never_do_worse():
    rng = np.random.default_rng(3)
    for _ in range(20):
        a = rng.normal(size=(40, 9))
        fisher = a.T @ a
        start = tuple(range(4))
        result = search._swapped(fisher, start)

        def cost(off, fisher=fisher):
            return fisher[np.ix_(off, off)].sum()

        assert cost(result) <= cost(start) + 1e-9
        for i in result:
            for j in set(range(9)) - set(result):
                assert cost([*(set(result) - {i}), j]) >= cost(result) - 1e-9
        exact = search.best_subset(fisher, start, range(9))
        assert cost(exact) <= cost(result) + 1e-9


def test_gradients_are_those_of_the_loss():
    clf, data = tiny_classifier(), make_data(6)
    result = gate_gradients(clf, data)
    labels = torch.tensor(data.gold)

    def losses(layer, head, value):
        gates = [torch.ones(1, 4, 1, 1) for _ in range(3)]
        gates[layer][0, head] = value
        from headviz.attention import HeadCall

        batch = clf.collate(clf.encode(data.texts, data.pairs))
        with torch.inference_mode():
            logits = clf.forward(batch, HeadCall(tuple(gates))).double()
        return torch.nn.functional.cross_entropy(logits, labels, reduction="none").numpy()

    for layer, head in ((0, 0), (1, 3), (2, 2)):
        numeric = (losses(layer, head, 1.01) - losses(layer, head, 0.99)) / 0.02
        np.testing.assert_allclose(result[:, layer, head], numeric, atol=2e-3)


def test_gradients_do_not_depend_on_batches_or_order(monkeypatch):
    clf, data = tiny_classifier(), make_data(20)
    result = gate_gradients(clf, data)
    turned = gate_gradients(clf, data.subset(range(20)[::-1]))[::-1]
    np.testing.assert_allclose(result, turned, atol=1e-5)
    monkeypatch.setattr("headviz.scores.gradients.TOKENS", 1)
    np.testing.assert_allclose(result, gate_gradients(clf, data), atol=1e-5)


def test_fisher_is_that_of_the_score_table():
    from headviz.scores.scoring import score_heads

    clf, data = tiny_classifier(), make_data(20)
    mine = (gate_gradients(clf, data) ** 2).sum(axis=0)
    np.testing.assert_allclose(mine, score_heads(clf, data, "fisher", cache=False).values, rtol=1e-4)


def test_a_whole_search_run(tmp_path):
    c, p = context(tmp_path), plan("mask-search")
    assert p.repair == "tune"
    *_, state = run_plan(p, c)
    g = gate_gradients(c.clf, c.sample(p, 0, p.samples))
    for r in state.steps:
        assert HeadMask.from_hex(r.mask, 3, 4) == search.rearranged(search.search(g, r.heads_off), g)
        assert r.repair_error["after"] <= r.repair_error["before"]
    assert [r.heads_off for r in state.steps] == [3, 6, 9]
    choice = state.choices[0]
    low, values, high = (np.array(x) for x in (choice.interval_low, choice.scores, choice.interval_high))
    np.testing.assert_allclose(values, (g**2).sum(axis=0))
    np.testing.assert_allclose(high - values, values - low)
    assert (low < values).all()
