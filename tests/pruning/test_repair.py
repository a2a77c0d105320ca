"""Repairs against slow transcriptions of their definitions, and what none of them may do: make things worse."""

import copy
import dataclasses

import numpy as np
import pytest
import torch

import headviz
from headviz.answers.answer import FIRST
from headviz.errors import ModelError
from headviz.heads import ENCODER, HeadMask
from headviz.models import pruning
from headviz.models.families import FAMILIES
from headviz.models.feed_forward import block, neurons, smaller
from headviz.pruning import REPAIRS
from headviz.pruning.job import run_plan
from headviz.pruning.reconstruction import LIMIT, Moments, Split, held_out, rebuild, solved, weights_of
from headviz.pruning.removal import SOLVERS, factors, refit_output, repaired, scale_heads
from support.jobs import data_of, model_of
from support.marks import classifiers
from support.plain import evaluate
from support.pruning_plans import context, make_data, plan, without_times
from support.ridge import best, refitted, tuned
from support.tiny import ALL_FAMILIES, PRUNABLE, tiny_classifier

DATA = make_data(40)
MASK = HeadMask.full(3, 4).without([(0, 1), (0, 2), (1, 0), (2, 0), (2, 1), (2, 3)])


@pytest.fixture(scope="module")
def clf():
    return tiny_classifier()


def outputs_of(clf, data, mask=None):
    """Per layer the heads' outputs of every real token, one text at a time: list of [rows, h·d]; last layer [CLS]."""
    rows = [[] for _ in range(clf.num_layers)]
    for e in clf.encode(data.texts, data.pairs):
        call = clf.call(mask, keep_outputs=True)
        with torch.inference_mode():
            clf.forward(clf.collate([e]), call)
        for layer, out in enumerate(call.outputs):
            flat = out[0].transpose(0, 1).flatten(1)  # [T, h·d]
            rows[layer].append(flat if layer + 1 < clf.num_layers else flat[:1])
    return [torch.cat(r).double().numpy() for r in rows]


def test_bias_is_the_removed_heads_mean_output_without_padding(clf):
    fixed = repaired(clf, MASK, DATA, "bias").classifier
    plain = headviz.prune(clf, MASK)
    d = clf.head_size
    for layer, out in enumerate(outputs_of(clf, DATA)):
        weight = clf.projections(layer).output.weight.double().numpy()
        expected = plain.projections(layer).output.bias.double().numpy().copy()
        for head in MASK.off_in(layer):
            part = slice(head * d, (head + 1) * d)
            expected += weight[:, part] @ out[:, part].mean(axis=0)
        np.testing.assert_allclose(fixed.projections(layer).output.bias, expected, atol=1e-5)
        assert torch.equal(fixed.projections(layer).output.weight, plain.projections(layer).output.weight)


def test_memory_serves_other_masks(clf):
    memory, other = {}, HeadMask.full(3, 4).without([(1, 1)])
    repaired(clf, MASK, DATA, "bias", memory)
    again = repaired(clf, other, DATA, "bias", memory).classifier
    assert again.digest == repaired(clf, other, DATA, "bias").classifier.digest


class Overwritten(dict):
    """A memory in which another thread always replaces what one has just put there."""

    def __init__(self, entry):
        self.entry = entry

    def __setitem__(self, name, _):
        super().__setitem__(name, self.entry)


def test_another_thread_may_use_the_same_memory(clf, tmp_path):
    other = {}
    repaired(clf, MASK, make_data(40, seed=1), "bias", other)
    mine = repaired(clf, MASK, DATA, "bias", Overwritten(other["bias"])).classifier
    assert mine.digest == repaired(clf, MASK, DATA, "bias").classifier.digest
    shared = context(tmp_path, memory=Overwritten(("their key", "theirs")))
    assert shared.reuse("model", "my key", lambda: "mine") == "mine"


def parts(clf, data):
    """Per layer what the attention adds to the stream, and that stream; in the last layer of the rows that are read."""
    seen = [[] for _ in range(clf.num_layers)]
    handles = []
    for layer in range(clf.num_layers):
        module = clf.module(f"encoder.layer.{layer}.attention.output")
        rows = slice(1) if layer + 1 == clf.num_layers and clf.answer.read_at == FIRST else slice(None)

        def keep(module, given, out, layer=layer, rows=rows):
            added = module.dense(given[0])[0, rows].double().numpy()
            seen[layer].append((added, given[1][0, rows].double().numpy()))

        handles.append(module.register_forward_hook(keep))
    for e in clf.encode(data.texts, data.pairs):
        clf.logits(clf.collate([e]))
    for handle in handles:
        handle.remove()
    return [[np.concatenate(x) for x in zip(*layer, strict=True)] for layer in seen]


@pytest.mark.parametrize("job", ["class", "tokens", "span"])
def test_the_reported_error_by_hand(job):
    """What a layer should add includes what the layers before it have left wrong in the stream."""
    clf, data = model_of(job), data_of(job)
    fixed = repaired(clf, MASK, data, "refit")
    wrong = energy = 0.0
    for full, mine in zip(parts(clf, data), parts(fixed.classifier, data), strict=True):
        wanted = full[0] + full[1] - mine[1]
        wrong += ((wanted - mine[0]) ** 2).sum()
        energy += (wanted**2).sum()
    assert fixed.error["after"] == pytest.approx(wrong / energy, rel=1e-4)


def held_rows(clf, data, layer):
    """Whether each row of ``outputs_of`` is of a held-out text."""
    encodings = clf.encode(data.texts, data.pairs)
    last = layer + 1 == clf.num_layers
    return np.repeat(held_out(encodings), [1 if last else len(e) for e in encodings])


def with_constant(out):
    return np.hstack([out, np.ones((len(out), 1))])


@pytest.mark.parametrize(("repair", "solve"), [("tune", tuned), ("refit", refitted)])
def test_a_repair_is_least_squares_of_the_streams(clf, repair, solve):
    """Each layer's W_O against a plain solver on the rows themselves, for every ridge, and the choice among them."""
    result = repaired(clf, MASK, DATA, repair)
    fixed, plain = result.classifier, headviz.prune(clf, MASK)
    full, mine, outputs = parts(clf, DATA), parts(fixed, DATA), outputs_of(fixed, DATA)
    for layer, told in enumerate(result.error["maps"]):
        old, held = weights_of(plain.projections(layer).output), held_rows(clf, DATA, layer)
        x, wanted = with_constant(outputs[layer]), full[layer][0] + full[layer][1] - mine[layer][1]
        expected, ridge = best(solve, x, wanted, held, old, clf.head_size)
        new = weights_of(fixed.projections(layer).output)
        np.testing.assert_allclose(new, expected, atol=2e-4)
        assert (told["layer"], told["map"], told["ridge"]) == (layer, "W_O", ridge)
        for when, weights in (("before", old), ("after", new)):
            share = ((wanted - x @ weights)[held] ** 2).sum() / (wanted[held] ** 2).sum()
            assert told["held_out"][when] == pytest.approx(share, rel=1e-3)
            assert told["largest"][when] == pytest.approx(np.abs(weights[:-1]).max(initial=0), rel=1e-5)


def test_held_out_are_the_same_texts_in_every_order(clf):
    encodings = clf.encode([*DATA.texts, *DATA.texts[:5]], [*DATA.pairs, *DATA.pairs[:5]])
    held = held_out(encodings)
    assert held_out(encodings[::-1]) == held[::-1]
    assert held[40:] == held[:5]  # a text is never on both sides
    assert 4 <= sum(held) <= 12
    assert held_out(encodings[:1]) == [False]
    assert sum(held_out(clf.encode(["a dog", "a cat"]))) == 1


def nearly_collinear(clf):
    """Head 2 of the first layer is head 0 and a twentieth of head 1."""
    query, key, value, output = clf.projections(0)
    d = clf.head_size
    with torch.no_grad():
        for matrix in (query, key):
            for tensor in (matrix.weight, matrix.bias):
                tensor[d : 3 * d] = torch.cat([tensor[:d], tensor[:d]])
        for tensor in (value.weight, value.bias):
            tensor[2 * d : 3 * d] = tensor[:d] + tensor[d : 2 * d] / 20
        output.weight[:, d : 2 * d] *= 3
    return clf


def test_nearly_collinear_heads_do_not_get_huge_weights():
    """Without head 1, twenty times the difference of heads 2 and 0 would rebuild it exactly."""
    clf = nearly_collinear(tiny_classifier())
    mask = HeadMask.full(3, 4).without([(0, 1)])
    result = repaired(clf, mask, DATA, "refit")
    old, new = (weights_of(m.projections(0).output)[:-1] for m in (headviz.prune(clf, mask), result.classifier))
    assert np.abs(new).max() <= LIMIT * np.abs(old).max()
    assert result.error["maps"][0]["held_out"]["after"] < result.error["maps"][0]["held_out"]["before"]


@pytest.mark.parametrize("solve", [scale_heads, refit_output])
def test_weights_stay_where_every_solution_is_worse_on_held_out_rows(solve):
    """The rows that are fitted want the opposite of what the others want, which is what the map already gives."""
    rng = np.random.default_rng(0)
    x, old = with_constant(rng.normal(size=(90, 6))), rng.normal(size=(7, 5))

    def of(x, wanted):
        return Moments(len(x), x.T @ x, x.T @ wanted, float((wanted**2).sum()))

    new, ridge = solved(solve, old, Split(of(x[:60], -x[:60] @ old), of(x[60:], x[60:] @ old)), 2)
    assert ridge is None
    np.testing.assert_array_equal(new, old)
    new, ridge = solved(solve, old, Split(of(x[:60], -x[:60] @ old), of(x[60:], -x[60:] @ old)), 2)
    assert ridge is not None


def test_nothing_is_refitted_on_a_single_text(clf):
    result = repaired(clf, MASK, DATA.subset([0]), "refit")
    assert result.classifier.digest == headviz.prune(clf, MASK).digest
    assert {m["ridge"] for m in result.error["maps"]} == {None}


@pytest.mark.parametrize("repair", ["bias", "tune", "refit"])
def test_never_worse_on_the_data_it_was_fitted_on(clf, repair):
    mask = HeadMask.full(3, 4).without_random(9, 0)
    error = repaired(clf, mask, DATA, repair).error
    assert 0 <= error["after"] <= error["before"] + 1e-9
    assert error["before"] > 0


def test_without_any_head_refit_is_the_best_constant(clf):
    empty = HeadMask.full(3, 4).without(HeadMask.full(3, 4).heads())
    fixed = repaired(clf, empty, DATA, "refit").classifier
    first = (
        outputs_of(clf, DATA)[0] @ weights_of(clf.projections(0).output)[:-1]
        + weights_of(clf.projections(0).output)[-1]
    )
    fitted_on = first[~held_rows(clf, DATA, 0)]
    np.testing.assert_allclose(fixed.projections(0).output.bias, fitted_on.mean(axis=0), atol=1e-5)


def test_factors_are_the_least_squares_solution():
    rng = np.random.default_rng(0)
    out, weights = rng.normal(size=(500, 12)), rng.normal(size=(13, 7))
    truth = np.array([0.5, 2.0, 1.3])
    wanted = (out * np.repeat(truth, 4)) @ weights[:-1] + weights[-1]
    x = np.hstack([out, np.ones((500, 1))])
    m = Moments(500, x.T @ x, x.T @ wanted, float((wanted**2).sum()))
    np.testing.assert_allclose(factors(weights, m, 4, 1e-3), truth, atol=5e-3)
    # against lstsq on the stacked system, whose ridge is the same
    a = np.stack([(out[:, i * 4 : i * 4 + 4] @ weights[i * 4 : i * 4 + 4]).ravel() for i in range(3)], axis=1)
    gram = a.T @ a
    ridge = 1e-3 * np.trace(gram) / 3
    direct = np.linalg.lstsq(
        np.vstack([a, np.sqrt(ridge) * np.eye(3)]),
        np.concatenate([(wanted - weights[-1]).ravel() - a.sum(axis=1), np.zeros(3)]),
        rcond=None,
    )[0]
    np.testing.assert_allclose(factors(weights, m, 4, 1e-3), 1 + direct, rtol=1e-9)


REBUILT = [
    name for name in ALL_FAMILIES if FAMILIES[name].prunable and (FAMILIES[name].post_norm or FAMILIES[name].shows_sums)
]

NARROWED = [name for name in REBUILT if not FAMILIES[name].why_no_neurons and not FAMILIES[name].has_decoder]


@pytest.mark.parametrize("family", classifiers(PRUNABLE))
def test_every_prunable_family(family):
    clf = tiny_classifier(family)
    if clf.projections(0).output.bias is None:
        with pytest.raises(ModelError, match="no bias behind its attention"):
            repaired(clf, MASK, make_data(12), "bias")
        return
    fixed = repaired(clf, MASK, make_data(12), "bias")
    assert fixed.error["after"] <= fixed.error["before"]
    assert fixed.classifier.present == MASK
    assert np.isfinite(evaluate(fixed.classifier, make_data(12)).logits).all()


def copied(clf, row, one, other):
    """The weights of one head of a row become those of another, but for W_O. In place."""
    masks = [clf.full_mask.without([(row, h) for h in range(clf.num_heads) if h != head]) for head in (one, other)]
    both = [list(pruning.parts(clf, row, clf.present, mask)) for mask in masks]
    with torch.no_grad():
        for theirs, own in zip(*both, strict=True):
            if theirs.side == pruning.OUT:
                weight = theirs.matrix.weight
                weight.index_copy_(theirs.dim, own.index, weight.index_select(theirs.dim, theirs.index))
                if theirs.matrix.bias is not None:
                    theirs.matrix.bias[own.index] = theirs.matrix.bias[theirs.index]


# two heads are never equal where each has its own column in a table of positions
@pytest.mark.parametrize("family", classifiers([name for name in REBUILT if name not in ("mpnet", "t5")]))
def test_a_head_that_another_can_replace_costs_nothing_after_a_refit(family):
    """W_O reads two equal heads, so the best W_O over one of them gives the same sum, if it is fitted to that sum."""
    clf, data = tiny_classifier(family), make_data(40)
    copied(clf, 1, 0, 1)
    mask = clf.full_mask.without([(1, 1)])
    fixed = repaired(clf, mask, data, "refit")
    whole, masked = evaluate(clf, data).logits, evaluate(clf, data, mask).logits
    assert np.abs(masked - whole).max() > 1e-3
    assert np.abs(evaluate(fixed.classifier, data).logits - whole).max() < 0.05 * np.abs(masked - whole).max()


@pytest.mark.parametrize("family", classifiers(NARROWED))
def test_neurons_that_others_can_replace_cost_nothing_after_a_refit(family):
    clf, data = tiny_classifier(family), make_data(40)
    layers = clf.family.layers[ENCODER]
    inner, _ = block(clf.model, layers, 1)
    size = neurons(clf)[1]
    with torch.no_grad():
        for matrix in inner:
            for start in range(0, size * layers.gated, size):
                for values in (matrix.weight, matrix.bias):
                    if values is not None:
                        values[start] = values[start + 1]
    kept = [range(n) for n in neurons(clf)]
    kept[1] = range(1, size)
    small = smaller(clf, clf.present, kept)
    small = dataclasses.replace(small, model=copy.deepcopy(small.model))
    whole, narrow = evaluate(clf, data).logits, evaluate(small, data).logits
    rebuild(clf, small, data, SOLVERS["refit"])
    assert np.abs(narrow - whole).max() > 1e-4
    assert (
        np.abs(evaluate(small, data).logits - whole).max() < 0.15 * np.abs(narrow - whole).max()
    )  # a ridge holds the weights


def test_the_caller_is_left_alone(clf):
    before = {k: v.clone() for k, v in clf.model.state_dict().items()}
    for repair in REPAIRS:
        repaired(clf, MASK, DATA, repair)
    assert all(torch.equal(v, clf.model.state_dict()[k]) for k, v in before.items())


@pytest.mark.slow
def test_an_option_of_masked_and_of_retrained_runs(tmp_path):
    for name in ("iterative", "one-shot-isp"):
        c, p = context(tmp_path / name), plan(name, step=0.5, until=0.5, repair="refit", retrain_full=False)
        *_, state = run_plan(p, c)
        record = state.steps[0]
        assert record.repair_error["after"] <= record.repair_error["before"]
        assert record.seconds["repair"] > 0


@pytest.mark.slow
def test_plans_on_one_context_do_not_mix_their_repairs(tmp_path):
    shared, found = context(tmp_path / "a"), []
    for repair in ("bias", "refit"):
        p = plan("iterative", until=0.5, repair=repair)
        *_, mine = run_plan(p, shared)
        *_, alone = run_plan(p, context(tmp_path / repair))
        assert without_times(mine) == without_times(alone)
        found.append(mine.choices[1].scores)
    assert found[0] != found[1]


@pytest.mark.slow
def test_plans_on_one_context_do_not_mix_their_gradients(tmp_path):
    shared = context(tmp_path / "a")
    for samples in (24, 12):
        p = plan("mask-search", until=0.25, samples=samples, repair="none")
        *_, mine = run_plan(p, shared)
        *_, alone = run_plan(p, context(tmp_path / str(samples)))
        assert mine.choices[0].scores == alone.choices[0].scores
