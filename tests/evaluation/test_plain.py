"""Plain evaluation against an obvious loop, its invariances, and what bad input gets."""

import numpy as np
import pytest
import torch

import headviz
from headviz import HeadMask
from headviz.errors import Cancelled, TaskError
from headviz.evaluation.plain import batches
from headviz.tasks import Dataset
from headviz.tasks.catalogue import get_task
from support.tiny import FAMILY_NAMES, WORDS, tiny_classifier

MASK = HeadMask.full(3, 4).without([(0, 1), (2, 2)])


def some_data(n: int = 37, task: str = "mnli", seed: int = 0) -> Dataset:
    rng = np.random.default_rng(seed)
    texts, pairs = ([" ".join(rng.choice(WORDS, rng.integers(1, 20))) for _ in range(n)] for _ in range(2))
    entry = get_task(task)
    labels = rng.random(n) if entry.job == "number" else rng.integers(0, len(entry.label_names), n)
    return Dataset(entry, "dev", tuple(texts), tuple(pairs), labels)


@pytest.mark.parametrize("family", FAMILY_NAMES)
def test_equal_to_one_by_one_in_the_datas_order(family: str) -> None:
    clf, data = tiny_classifier(family), some_data()
    result = headviz.evaluate(clf, data, mask=MASK)
    slow = [
        clf.logits(clf.collate(clf.encode([a], [b])), MASK)[0].numpy()
        for a, b in zip(data.texts, data.pairs or (), strict=True)
    ]
    np.testing.assert_allclose(result.logits, np.stack(slow), atol=2e-5)
    assert result.metrics == {"accuracy": np.mean(np.stack(slow).argmax(1) == data.labels)}
    assert result.n == 37
    assert result.mask == MASK
    np.testing.assert_allclose(result.probabilities.sum(axis=1), 1, rtol=1e-5)


def test_batches_keep_to_their_budget_and_lose_nothing() -> None:
    lengths = list(np.random.default_rng(0).integers(3, 60, 200))
    groups = list(batches(lengths, 256))
    assert sorted(i for g in groups for i in g) == list(range(200))
    assert all(len(g) * max(lengths[i] for i in g) <= 256 for g in groups)
    assert list(batches([500], 256)) == [[0]]


def test_labels_are_matched_by_name() -> None:
    """MNLI checkpoints come in different label orders; the order of the logits is the model's own."""
    data = some_data()
    straight = tiny_classifier()
    turned = tiny_classifier(labels=("contradiction", "neutral", "entailment"))
    for name in ("weight", "bias"):
        source = getattr(straight.model.classifier, name)
        getattr(turned.model.classifier, name).data = source.data.flip(0).clone()
    a, b = headviz.evaluate(straight, data), headviz.evaluate(turned, data)
    np.testing.assert_allclose(a.logits, b.logits[:, ::-1], atol=1e-5)
    assert a.metrics == b.metrics
    assert [straight.labels[i] for i in a.predictions] == [turned.labels[i] for i in b.predictions]
    assert [straight.labels[i] for i in a.gold] == [turned.labels[i] for i in b.gold]


def test_labels_without_names_are_never_guessed() -> None:
    clf, data = tiny_classifier(labels=("LABEL_0", "LABEL_1", "LABEL_2")), some_data()
    with pytest.raises(TaskError, match=r"--label-order.* for instance entailment,neutral,contradiction"):
        headviz.evaluate(clf, data)
    named = headviz.evaluate(clf, data, label_order="contradiction,neutral,entailment")
    assert named.metrics["accuracy"] == np.mean(2 - named.predictions == data.labels)


def test_regression() -> None:
    from scipy.stats import pearsonr

    clf, data = tiny_classifier(labels=("score",)), some_data(task="stsb")
    result = headviz.evaluate(clf, data)
    assert result.metrics["pearson"] == pytest.approx(pearsonr(result.predictions, data.labels).statistic)
    assert set(result.metrics) == {"pearson", "spearman"}
    with pytest.raises(TaskError):
        headviz.evaluate(tiny_classifier(), data)
    with pytest.raises(TaskError):
        headviz.evaluate(clf, some_data())


def test_texts_without_labels_have_logits_and_no_metrics() -> None:
    data = some_data(5)
    result = headviz.evaluate(tiny_classifier(), Dataset(data.task, "dev", data.texts, data.pairs))
    assert result.metrics == {}
    assert result.gold is None
    assert result.logits.shape == (5, 3)


def test_progress_and_cancel() -> None:
    clf, data = tiny_classifier(), some_data()
    seen: list[tuple[int, int]] = []
    headviz.evaluate(clf, data, batch_tokens=100, progress=lambda done, total: seen.append((done, total)))
    assert seen[0] == (0, 37)
    assert seen[-1] == (37, 37)
    assert len(seen) > 3
    assert seen == sorted(seen)
    seen.clear()
    with pytest.raises(Cancelled):
        headviz.evaluate(clf, data, batch_tokens=100, progress=lambda *s: seen.append(s), cancel=lambda: len(seen) >= 3)
    assert len(seen) == 3


def test_cut_texts_are_counted() -> None:
    data = some_data(3)
    long = Dataset(data.task, "dev", ("dog " * 300, *data.texts[1:]), data.pairs, data.labels)
    assert headviz.evaluate(tiny_classifier(), long).truncated == 1


def test_evaluation_leaves_gradient_mode_alone() -> None:
    headviz.evaluate(tiny_classifier(), some_data(3))
    assert torch.is_grad_enabled()
    assert not torch.is_inference_mode_enabled()
