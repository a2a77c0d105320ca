"""What holds for every job: masks, pruning, batches, conductance, saving, training. Over families where they differ."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch
from captum.attr import LayerConductance

import headviz
from headviz.answers import ANSWERS
from headviz.attention import HeadCall
from headviz.attribution.walk import Walk
from headviz.evaluation import stand_ins
from headviz.evaluation.evaluator import EvaluatorOptions
from headviz.models.pruning import weight_of
from headviz.pruning import FinetuneOptions
from headviz.pruning.finetuning import fine_tune
from support.jobs import data_of, model_of
from support.marks import some_in_ci
from support.tiny import PAIRS

JOBS = [job for job, answer in ANSWERS.items() if answer.explains]
FAMILIES = ("bert", "roberta", "distilbert", "deberta-v2", "modernbert", "mpnet")  # the others share a sheet with one
FIRST = [  # every job with BERT, and those whose way through another family is its own
    *((job, "bert") for job in JOBS),
    ("number", "distilbert"),
    ("labels", "modernbert"),
    ("tokens", "deberta-v2"),
    ("vector", "mpnet"),
    ("vector", "modernbert"),
    ("span", "deberta-v2"),
    ("rank", "roberta"),
]
each = pytest.mark.parametrize(("job", "family"), some_in_ci(product(JOBS, FAMILIES), FIRST))
each_job = pytest.mark.parametrize("job", JOBS)
OFF = [(0, 1), (1, 0), (1, 3), (2, 2)]


@each
def test_a_mask_zeroes_what_the_output_matrix_reads(job: str, family: str) -> None:
    clf, data = model_of(job, family), data_of(job, 2)
    result = headviz.evaluate(clf, data, clf.full_mask.without(OFF)).logits
    full = headviz.evaluate(clf, data).logits
    with torch.no_grad():
        for layer, head in OFF:
            weight_of(clf.projections(layer).output)[:, head * clf.head_size : (head + 1) * clf.head_size] = 0
    np.testing.assert_allclose(result, headviz.evaluate(clf, data).logits, atol=1e-5)
    assert np.nanmax(np.abs(result - full)) > 1e-3


@each
def test_pruned_is_masked_and_opens_again(job: str, family: str, tmp_path: Path) -> None:
    clf, data = model_of(job, family), data_of(job, 2)
    mask = clf.full_mask.without(OFF)
    small = headviz.prune(clf, mask)
    masked, pruned = headviz.evaluate(clf, data, mask), headviz.evaluate(small, data)
    np.testing.assert_allclose(masked.logits, pruned.logits, atol=1e-5)
    small.save(tmp_path / "small")
    again = headviz.load(tmp_path / "small")
    assert (again.job, again.labels) == (job, clf.labels)
    np.testing.assert_allclose(headviz.evaluate(again, data).logits, pruned.logits, atol=1e-6)


@each
def test_batches_and_padding_do_not_matter(job: str, family: str) -> None:
    clf, data = model_of(job, family), data_of(job, 2)
    mask = clf.full_mask.without(OFF)
    large, small = (headviz.evaluate(clf, data, mask, batch_tokens=n).logits for n in (10_000, 1))
    np.testing.assert_allclose(large, small, atol=1e-5)
    encodings = clf.encode(data.texts, data.pairs)
    whole = clf.logits(clf.collate(encodings, width=40), mask).numpy()
    np.testing.assert_allclose(whole, large, atol=1e-5)
    evaluator = headviz.Evaluator(clf, data, EvaluatorOptions(chunk_tokens=64))
    evaluator.evaluate()
    np.testing.assert_allclose(evaluator.evaluate(mask).logits, large, atol=1e-5)  # from states that were kept


@pytest.mark.slow
@each
def test_conductance_is_captums(job: str, family: str) -> None:
    clf = model_of(job, family)
    data = data_of(job, 1)
    (encoding,) = clf.encode(data.texts[:1], data.pairs and data.pairs[:1])
    pair = data.pairs and data.pairs[0]
    target = clf.answer.targets(clf.labels, False)[-1]
    maps = headviz.conductance(clf, data.texts[0], pair, steps=6, rule="captum", target=target, cache=False)
    walk, layer = Walk(clf, [encoding], [maps.target], None), 1

    class Probs(torch.nn.Module):
        """The attention probabilities of a layer, where Captum can look at them."""

        def forward(self, probs: torch.Tensor) -> torch.Tensor:
            return probs.clone()

    probe = Probs()

    class Model(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            rows = {"inputs_embeds": x, **{k: v.expand(len(x), -1) for k, v in walk.batch.items()}}
            call: HeadCall = clf.call(None, "eager", edit_probs=lambda at, p: probe(p) if at == layer else p)
            logits = clf.forward(rows, call)
            chosen = torch.tensor(maps.target)[None].expand(len(logits), *[-1] * isinstance(maps.target, tuple))
            return clf.answer.explained(logits, chosen)[:, 0]

    slow = LayerConductance(Model(), probe).attribute(walk.end, walk.start, n_steps=6)
    expected = slow[0].detach().numpy()
    np.testing.assert_allclose(maps.attribution[layer], expected, atol=1e-5 * max(1.0, np.abs(expected).max()))


@pytest.mark.slow
@each_job
@pytest.mark.parametrize("ablation", ["mean", "resample", "constant"])
def test_what_stands_in_a_heads_place_leaves_the_full_model_alone(
    job: str, ablation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stand_ins, "STEPS", 1)
    clf, data = model_of(job), data_of(job, 2)
    result = headviz.evaluate(clf, data, clf.full_mask.without(OFF), ablation=ablation, reference=data_of(job, 4, 1))
    assert set(result.metrics) == set(clf.answer.usual)
    full = headviz.evaluate(clf, data, ablation=ablation, reference=data_of(job, 4, 1))
    np.testing.assert_allclose(full.logits, headviz.evaluate(clf, data).logits, atol=1e-5)


@pytest.mark.slow
@each_job
def test_scores_do_not_depend_on_the_order_of_the_data(job: str) -> None:
    clf, data = model_of(job), data_of(job, 3)
    turned = data.subset(range(len(data))[::-1])
    for name in ("ablation-loss", "taylor", "conductance-spearman"):
        one, other = (headviz.score_heads(clf, d, name, cache=False).values for d in (data, turned))
        np.testing.assert_allclose(one, other, atol=1e-6)


@each_job
def test_derivatives_by_gates_are_those_of_the_training_loss(job: str) -> None:
    clf, data = model_of(job), data_of(job, 1)
    result = headviz.score_heads(clf, data, "taylor", abs_level="signed", layer_norm=False, cache=False).values
    gold = clf.answer.tensor(data.gold)
    batch = clf.collate(clf.encode(data.texts, data.pairs))

    def loss(gate: float) -> float:
        call = clf.call(None)
        call.gates = tuple(torch.tensor([1.0, gate, 1.0, 1.0]).view(1, -1, 1, 1) if i == 1 else None for i in range(3))
        with torch.no_grad():
            return float(clf.answer.loss(clf.forward(batch, call).double(), gold, reduction="sum")) / len(data)

    assert result[1, 1] == pytest.approx((loss(1.01) - loss(0.99)) / 0.02, abs=2e-3)


@pytest.mark.slow
@each_job
def test_the_metrics_of_an_ablation_are_those_of_evaluations(job: str) -> None:
    clf, data = model_of(job), data_of(job)
    table = headviz.ablate(headviz.evaluator_of(clf, data))
    alone = headviz.evaluate(clf, data, clf.full_mask.without([(1, 1)])).metrics[clf.answer.usual[0]]
    assert table.values[1, 1] == pytest.approx(table.baseline - alone, abs=1e-9)
    low, high = table.interval_low[1, 1], table.interval_high[1, 1]
    assert low <= table.values[1, 1] <= high


@each_job
def test_a_model_learns_a_job_from_the_pre_trained_encoder(job: str, tmp_path: Path) -> None:
    clf, data = model_of(job), data_of(job, 4)
    clf.save(tmp_path / "base")
    fresh = headviz.load(tmp_path / "base", fresh_labels=clf.labels, job=job)
    assert fresh.job == job
    options = FinetuneOptions(epochs=2, batch=8, learning_rate=1e-3, evaluate_epochs=True)
    trained = fine_tune(fresh, data, options, dev=data)
    assert trained.classifier.job == job
    assert set(trained.curve[-1].metrics) >= set(clf.answer.usual)
    assert trained.curve[-1].loss is None or np.isfinite(trained.curve[-1].loss)


@pytest.mark.parametrize("job", [job for job in JOBS if ANSWERS[job].paired])
def test_paired_compares_what_evaluations_answer(job: str) -> None:
    clf, data = model_of(job), data_of(job)
    evaluator = headviz.evaluator_of(clf, data)
    full, masked = (evaluator.predictions(mask) for mask in (None, clf.full_mask.without(OFF)))
    for delta in evaluator.compare(clf.full_mask.without(OFF)).deltas[:2]:
        result = headviz.paired(data.gold, full, masked, delta.metric)
        assert result.difference == pytest.approx(delta.delta, abs=1e-9)
        assert result.low <= result.difference <= result.high
        same = headviz.paired(data.gold, full, full, delta.metric)
        assert (same.difference, same.p) == (0, 1)
        assert same.low < 0 < same.high


@each_job
def test_heads_are_patched(job: str) -> None:
    clf = model_of(job)
    single = ANSWERS[job].num_texts == 1
    text, donor = (text if single else (text, PAIRS[1]) for text in ("a dog sleeps .", "no man eats ."))
    result = headviz.patch(clf, text, donor)
    assert np.isfinite(result.effect).all()
    assert np.abs(result.effect).max() > 0.01
    same = headviz.patch(clf, text, text)
    np.testing.assert_allclose(same.logits, np.broadcast_to(same.from_logits, same.logits.shape), atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("job", ["number", "vector"])
def test_pairs_of_texts_with_other_numbers_are_patched(job: str) -> None:
    clf = model_of(job)
    texts = [(text, PAIRS[1]) for text in ("a dog sleeps .", "no man eats .", "a cat runs .", "the bird sees .")]
    pairs = [(texts[i], texts[j]) for i in range(4) for j in range(4) if i != j]
    values = [float(clf.logits(clf.collate(clf.encode([a], [b])))[0, 0]) for a, b in texts]
    least = clf.answer.least_lead
    far = sum(abs(values[i] - values[j]) >= least for i in range(4) for j in range(4) if i != j)
    assert headviz.patch_pairs(clf, pairs).n == far > 2


@each_job
def test_answers_that_are_no_numbers_are_named(job: str) -> None:
    clf, data = model_of(job), data_of(job, 2)
    with torch.no_grad():
        clf.model.get_input_embeddings().weight.fill_(torch.nan)
    pair = None if data.pairs is None else data.pairs[0]
    for asked in (
        lambda: headviz.conductance(clf, data.texts[0], pair, cache=False),
        lambda: headviz.evaluate(clf, data),
        lambda: headviz.evaluator_of(clf, data).compare(clf.present.without([(0, 0)])),
    ):
        with pytest.raises(headviz.UserError, match="NaN or infinity"):
            asked()


@pytest.mark.parametrize("job", ["tokens", "span", "vector"])
def test_what_follows_the_first_token_alone_says_so(job: str) -> None:
    """Contributions, rollout and AttnLRP; what reads the gradient of F works."""
    clf, data = model_of(job), data_of(job, 1)
    text = (data.texts[0], None if data.pairs is None else data.pairs[0])
    methods = ("rollout", "value-norm", "attnlrp")
    asked = [lambda m=m: headviz.token_explanations(clf, *text, methods=[m]) for m in methods]  # type: ignore[misc]
    asked.append(lambda: headviz.contributions(clf, *text))
    for call in asked:
        with pytest.raises(headviz.UserError, match=r"states of all tokens.*integrated gradients work") as refused:
            call()
        assert "\n" not in str(refused.value)
    assert headviz.token_explanations(clf, *text, methods=["integrated-gradients"], orders=1)
