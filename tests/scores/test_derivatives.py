"""Taylor, Fisher and ablation against finite differences, plain autograd and brute force."""

import numpy as np
import pytest
import torch

import headviz
from headviz import HeadMask
from headviz.analyses.ablation import ablate
from headviz.evaluation.evaluator import Evaluator
from headviz.evaluation.stand_ins import standing_in
from headviz.scores.learned import gate_gradients
from headviz.scores.scoring import score_heads
from headviz.scores.task_loss import cost_in_loss
from headviz.storage.store import Store
from support.gated import gated
from support.scored_data import made
from support.tiny import tiny_classifier, tiny_model, tiny_tokenizer


def derivatives(clf, data, mask=None):
    """∂Loss/∂ξ of every example by central differences of the gates, in float64; NaN for heads that are off."""
    clf.model.double()
    out = np.full((len(data), clf.num_layers, clf.num_heads), np.nan)
    h = 1e-5
    for n in range(len(data)):
        batch = clf.collate(clf.encode([data.texts[n]], [data.pairs[n]]))
        for head in clf.under(mask).kept:
            losses = []
            for xi in (1 + h, 1 - h):
                with torch.no_grad():
                    logits = clf.forward(batch, clf.call(mask, edit_outputs=gated(clf, {head: xi})))
                if clf.job == "number":
                    losses.append(float((logits[0, 0] - data.labels[n]) ** 2))
                else:
                    gold = torch.tensor([int(data.labels[n])])
                    losses.append(float(torch.nn.functional.cross_entropy(logits, gold)))
            out[n, head.layer, head.head] = (losses[0] - losses[1]) / (2 * h)
    return out


def normed(values):
    return values / np.sqrt((values**2).sum(axis=1, keepdims=True))


def test_taylor_and_fisher_by_finite_differences():
    data = made(3)
    d = derivatives(tiny_classifier("bert"), data)
    clf = tiny_classifier("bert")

    def taylor(**options):
        return score_heads(clf, data, "taylor", cache=False, **options).values

    np.testing.assert_allclose(taylor(), normed(np.abs(d).mean(axis=0)), rtol=1e-3)
    np.testing.assert_allclose(taylor(layer_norm=False), np.abs(d).mean(axis=0), rtol=1e-3)
    np.testing.assert_allclose(taylor(abs_level="signed", layer_norm=False), d.mean(axis=0), rtol=1e-3, atol=1e-5)
    batches = np.abs([d[:2].mean(axis=0), d[2]]).mean(axis=0)
    np.testing.assert_allclose(taylor(abs_level="batch", batch_size=2, layer_norm=False), batches, rtol=1e-3, atol=1e-5)
    assert (taylor(abs_level="token", layer_norm=False) >= taylor(layer_norm=False) - 1e-6).all()
    fisher = score_heads(clf, data, "fisher", cache=False)
    np.testing.assert_allclose(fisher.values, (d**2).sum(axis=0), rtol=2e-3)


MASK = HeadMask.full(3, 4).without([(0, 1), (1, 0), (1, 3)])


@pytest.mark.parametrize(("kind", "mask"), [("mean", MASK), ("constant", None)])
def test_a_gate_leads_to_what_stands_in_the_heads_place(kind, mask):
    """Also under a mask, whose heads have no derivative: something stands in their place."""
    data, reference = made(2), made(6, seed=1)
    fill = standing_in(tiny_classifier("bert"), kind, reference).fill
    clf = tiny_classifier("bert").filled(fill)
    d = derivatives(tiny_classifier("bert").filled(fill), data, mask)
    how = {"mask": mask, "layer_norm": False, "cache": False}
    signed = score_heads(clf, data, "taylor", abs_level="signed", **how).values
    np.testing.assert_allclose(signed, d.mean(axis=0), rtol=1e-3, atol=1e-5)
    taylor = score_heads(clf, data, "taylor", **how).values
    np.testing.assert_allclose(taylor, np.abs(d).mean(axis=0), rtol=1e-3)
    fisher = score_heads(clf, data, "fisher", mask=mask, cache=False).values
    np.testing.assert_allclose(fisher, (d**2).sum(axis=0), rtol=2e-3, atol=1e-7)
    plain = score_heads(clf.filled(None), data, "taylor", **how).values
    assert (np.abs(taylor / plain - 1)[MASK.array()] > 0.05).sum() > 5
    if mask is None:
        np.testing.assert_allclose(gate_gradients(clf, data), d, rtol=1e-3, atol=1e-5)  # what the mask search reads


def test_removed_heads_leave_their_vectors_in_a_bias_and_the_others_derivatives():
    """What is masked and what is removed for real have the same scores; a gate of the latter leads to zero again."""
    data, clf = made(2), standing_in(tiny_classifier("bert"), "mean", made(6, seed=1))
    small = headviz.prune(clf, MASK)
    for name in ("taylor", "fisher"):
        masked = score_heads(clf, data, name, mask=MASK, cache=False).values
        np.testing.assert_allclose(score_heads(small, data, name, cache=False).values, masked, rtol=1e-3, atol=1e-6)
    bare = small.filled(None)
    result = score_heads(bare, data, "taylor", layer_norm=False, cache=False).values
    other = headviz.prune(clf, MASK).filled(None)
    np.testing.assert_allclose(result, np.abs(derivatives(other, data)).mean(axis=0), rtol=1e-3)


def test_a_regressions_gradient_is_that_of_the_loss_it_is_trained_with():
    """Autograd of the loss that transformers returns, one example at a time; the mask search reads the same."""
    data, clf = made(4, task="stsb"), tiny_classifier("bert", labels=("score",))
    weights = [clf.projections(layer).output.weight.requires_grad_(True) for layer in range(clf.num_layers)]
    slow = np.zeros((len(data), clf.num_layers, clf.num_heads))
    for n in range(len(data)):
        batch = clf.collate(clf.encode([data.texts[n]], [data.pairs[n]]))
        with torch.enable_grad():
            loss = clf.model(**batch, labels=torch.tensor([data.labels[n]], dtype=torch.float32)).loss
        for layer, (w, g) in enumerate(zip(weights, torch.autograd.grad(loss, weights), strict=True)):
            slow[n, layer] = (w * g).detach().sum(dim=0).view(clf.num_heads, -1).sum(dim=1).numpy()
    np.testing.assert_allclose(gate_gradients(clf, data), slow, rtol=1e-3, atol=1e-6)
    fisher = score_heads(clf, data, "fisher", cache=False).values
    np.testing.assert_allclose(fisher, (slow**2).sum(axis=0), rtol=2e-3)


def test_token_level_is_the_sum_of_the_tokens_absolute_parts():
    clf, data = standing_in(tiny_classifier("bert"), "mean", made(6, seed=1)), made(3)
    token = score_heads(clf, data, "taylor", abs_level="token", layer_norm=False, cache=False).values
    slow = np.zeros((3, 4))
    for n in range(3):
        batch = clf.collate(clf.encode([data.texts[n]], [data.pairs[n]]))
        call = clf.call(kernel="eager", keep_outputs=True)
        x = clf.model.get_input_embeddings()(batch.pop("input_ids")).requires_grad_(True)
        with torch.enable_grad():
            logits = clf.forward({"inputs_embeds": x, **batch}, call)
            loss = torch.nn.functional.cross_entropy(logits, torch.tensor([int(data.labels[n])]))
        for layer, (o, g) in enumerate(zip(call.outputs, torch.autograd.grad(loss, call.outputs), strict=True)):
            for head in range(4):
                vector = clf.fill.values[layer][head]
                for t in range(o.shape[2]):
                    slow[layer, head] += abs(float(((o.detach()[0, head, t] - vector) * g[0, head, t]).sum())) / 3
    np.testing.assert_allclose(token, slow, rtol=1e-3)


def test_ablation_is_the_metric_lost():
    clf, data, full = tiny_classifier("bert"), made(30), HeadMask.full(3, 4)

    def accuracy(mask):
        return (headviz.evaluate(clf, data, mask).logits.argmax(axis=1) == data.labels).mean()

    s = score_heads(clf, data, "ablation", cache=False)
    for head in full.heads():
        assert s.values[head] == pytest.approx(accuracy(full) - accuracy(full.without([head])), abs=1e-12)
    assert (s.values != 0).any()


def test_ablation_has_the_intervals_of_every_other_comparison():
    """It had Student's t over per-example differences: [0, 0] for a head whose absence changes no answer."""
    clf, data = tiny_classifier("bert", labels=("not_equivalent", "equivalent")), made(40, task="mrpc")
    s = score_heads(clf, data, "ablation", metric="f1", cache=False)
    table = ablate(Evaluator(clf, data), metric="f1")
    np.testing.assert_allclose(s.interval_low, table.interval_low)
    np.testing.assert_allclose(s.interval_high, table.interval_high)
    unchanged = table.p_value == 1
    assert unchanged.any()
    assert (s.interval_high[unchanged] > 0).all()


def test_ablation_by_matthews_of_one_answer_for_all_is_0():
    """An iterative run on CoLA ended where the masked model gave one class: no head could be measured."""
    model = tiny_model(labels=("unacceptable", "acceptable"))
    with torch.no_grad():
        model.classifier.bias[0] += 100
    result = score_heads(headviz.wrap(model, tiny_tokenizer()), made(20, task="cola"), "ablation", cache=False)
    assert (result.values == 0).all()
    assert (result.interval_low <= 0).all()
    assert (result.interval_high >= 0).all()


@pytest.mark.parametrize(("labels", "task", "order"), [
    (("equivalent", "not_equivalent"), "mrpc", (1, 0)),  # the other way round than the task
    (("score",), "stsb", None),
])  # fmt: skip
def test_ablation_in_loss_is_the_loss_gained(labels, task, order):
    """One evaluation for each head, and PyTorch's own loss."""
    clf, data = tiny_classifier("bert", labels=labels), made(12, task=task)
    mask = HeadMask.full(3, 4).without([(1, 2)])

    def losses(mask):
        logits = torch.tensor(headviz.evaluate(clf, data, mask).logits).double()
        if order is None:
            return torch.nn.functional.mse_loss(logits[:, 0], torch.tensor(data.labels), reduction="none").numpy()
        gold = torch.tensor(np.array(order)[data.labels])
        return torch.nn.functional.cross_entropy(logits, gold, reduction="none").numpy()

    result = score_heads(clf, data, "ablation-loss", mask=mask, cache=False)
    for head in mask.kept:
        gained = losses(mask.without([head])) - losses(mask)
        assert result.values[head] == pytest.approx(gained.mean(), abs=1e-6)
        assert result.stderr[head] == pytest.approx(gained.std(ddof=1) / np.sqrt(12), abs=1e-6)
    assert np.isnan(result.values[1, 2])
    assert (np.abs(result.values[mask.array()]) > 1e-6).all()


def test_ablation_in_loss_reads_what_ablation_has_measured(tmp_path):
    clf, data, store = tiny_classifier("bert"), made(12), Store(tmp_path)
    score_heads(clf, data, "ablation", cache=store)
    entries = store.usage().entries
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(clf), "forward", None)
        again = score_heads(clf, data, "ablation-loss", cache=store)
    assert store.usage().entries == entries
    np.testing.assert_array_equal(again.values, score_heads(clf, data, "ablation-loss", cache=False).values)


def test_heads_that_cost_the_same_may_go_in_the_order_of_the_loss():
    """Accuracy on few examples ties nearly all heads; by name, the costs in loss decide among equals."""
    clf, data = tiny_classifier("bert"), made(12)
    plain, loss = (score_heads(clf, data, score, cache=False) for score in ("ablation", "ablation-loss"))
    parted = score_heads(clf, data, "ablation", ties="loss", cache=False)
    assert plain.tied > 2
    assert parted.tied == 0
    np.testing.assert_allclose(parted.values, plain.values, atol=1e-3 / len(data))
    order = np.lexsort((loss.values.ravel(), plain.values.ravel().round(9)))
    assert parted.values.ravel().argsort().tolist() == order.tolist()


@pytest.mark.filterwarnings("error")
def test_ablation_in_loss_leaves_out_answers_that_are_not_finite():
    data, draw = made(3), np.random.default_rng(0)
    rows = {"full": draw.normal(size=(3, 3)), "without": draw.normal(size=(3, 2, 2, 3))}
    sound = cost_in_loss(rows, data, np.arange(3))
    rows["without"][0, 0, 1] = np.inf
    rows["without"][1, 1, 0] = np.nan
    rows["full"][2, 0] = -np.inf
    result = cost_in_loss(rows, data, np.arange(3))
    lost = np.isnan(result)
    assert lost[0, 0, 1]
    assert lost[1, 1, 0]
    assert not lost[:2].all(axis=(1, 2)).any()
    np.testing.assert_array_equal(result[:2][~lost[:2]], sound[:2][~lost[:2]])
