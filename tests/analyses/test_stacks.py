"""Analyses of translation models, stack by stack, against the plain loops that they stand for."""

from pathlib import Path

import numpy as np
import pytest

import headviz
from headviz import HeadMask
from headviz.analyses.ablation import ablate
from headviz.analyses.all_but_one import all_but_one
from headviz.analyses.pruning_curve import pruning_curves
from headviz.cli import main
from headviz.errors import MaskError, ModelError
from headviz.extras.translation.evaluation import TranslationEvaluator
from headviz.extras.translation.recurrent import RnnTranslator
from headviz.extras.translation.sentence import TextAnswers
from headviz.extras.translation.stacks import by_stack, rows_by_stack, stack_curves
from headviz.tasks import TASKS, Dataset
from support.tiny import tiny_folder
from support.tiny_translation import HEADS, ROWS, SOURCES, tiny_translator

FULL = HeadMask.full(ROWS, HEADS)


@pytest.fixture(scope="module")
def evaluator() -> TranslationEvaluator:
    """References near to what the model writes, so that BLEU is high and every head can be seen."""
    clf = tiny_translator(seed=3)
    texts = tuple(SOURCES[:2])
    blank = Dataset(TASKS["custom-translation"], "dev", texts, texts)
    written = headviz.evaluate(clf, blank).translations
    near = tuple(" ".join(t.split()[:-1]) or "a" for t in written)
    return TranslationEvaluator(clf, Dataset(blank.task, "dev", texts, near))


def of_one_text(evaluator: TranslationEvaluator) -> TranslationEvaluator:
    return TranslationEvaluator(evaluator.clf, evaluator.data.subset([0]))


def bleu(evaluator: TranslationEvaluator, mask: HeadMask) -> float:
    return headviz.evaluate(evaluator.clf, evaluator.data, mask).metrics["bleu"]


@pytest.mark.slow
def test_single_heads_of_each_stack(evaluator: TranslationEvaluator) -> None:
    evaluator = of_one_text(evaluator)
    result = ablate(evaluator)
    tables = by_stack(evaluator.clf, result)
    assert [t.stack for t in tables] == ["encoder", "cross", "decoder"]
    assert [t.deltas.shape for t in tables] == [(2, 4), (3, 4), (3, 4)]
    full = bleu(evaluator, FULL)
    assert result.baseline == pytest.approx(full)
    assert full > 30
    for table, row, head in ((tables[0], 1, 2), (tables[1], 0, 0), (tables[2], 2, 3)):
        grid_row = {"encoder": 0, "cross": 2, "decoder": 5}[table.stack] + row
        expected = bleu(evaluator, FULL.without([(grid_row, head)])) - full
        assert table.deltas[row, head] == pytest.approx(expected)
    assert np.array_equal(tables[0].marked, tables[0].p_value < 0.01)
    shown = tables[1].to_dict()
    assert shown["heads"] == 12
    assert 0 <= shown["better_without"] <= shown["significant"] <= 12


@pytest.mark.slow
def test_all_but_one_in_each_stack(evaluator: TranslationEvaluator) -> None:
    evaluator = of_one_text(evaluator)
    rows = rows_by_stack(evaluator.clf, all_but_one(evaluator, "same"))
    assert [(r.stack, r.layer) for r in rows] == [
        *(("encoder", i) for i in range(2)),
        *(("cross", i) for i in range(3)),
        *(("decoder", i) for i in range(3)),
    ]
    row = rows[3]  # the second layer of cross-attention, row 3 of the grid
    kept = [bleu(evaluator, FULL.without([(3, h) for h in range(HEADS) if h != keep])) for keep in range(HEADS)]
    assert row.delta == pytest.approx(max(kept) - bleu(evaluator, FULL))


@pytest.mark.slow
def test_a_curve_prunes_one_stack_alone(evaluator: TranslationEvaluator) -> None:
    scores = np.arange(ROWS * HEADS, dtype=float).reshape(ROWS, HEADS)
    result = stack_curves(evaluator, scores, step=0.25)
    assert [c.name for c in result.curves] == ["encoder", "cross", "decoder"]
    for curve, rows in zip(result.curves, evaluator.clf.stacks.values(), strict=True):
        assert [p.sparsity for p in curve.points] == pytest.approx([0, 0.25, 0.5, 0.75, 1])
        for point in curve.points:
            off = sorted(h.layer * HEADS + h.head for h in point.mask.off)
            start = rows.start * HEADS
            assert off == list(range(start, start + len(off)))  # the lowest scores, of this stack only
            assert point.value == pytest.approx(bleu(evaluator, point.mask))
    with pytest.raises(MaskError, match=r"shape \(3, 4\); the model has 8 rows × 4 heads"):
        stack_curves(evaluator, np.zeros((3, 4)))


@pytest.mark.slow
def test_a_pruned_model_s_stacks_lose_shares_of_the_heads_they_have(evaluator: TranslationEvaluator) -> None:
    small = headviz.prune(evaluator.clf, FULL.without([(2, 0), (2, 1), (3, 0)]))
    scores = np.where(small.present.array(), np.arange(ROWS * HEADS).reshape(ROWS, HEADS), np.nan)
    result = stack_curves(TranslationEvaluator(small, evaluator.data.subset([0])), scores, step=0.25)
    sizes = {curve.name: [len(p.mask.off) - 3 for p in curve.points] for curve in result.curves}
    assert sizes == {"encoder": [0, 2, 4, 6, 8], "cross": [0, 2, 4, 7, 9], "decoder": [0, 3, 6, 9, 12]}
    for curve, rows in zip(result.curves, small.stacks.values(), strict=True):
        off = curve.points[-1].mask.off
        assert {h for h in off if small.present.array()[h.layer, h.head]} == {
            h for h in small.present.kept if h.layer in rows
        }
        assert [p.sparsity for p in curve.points] == [n / sizes[curve.name][-1] for n in sizes[curve.name]]


@pytest.mark.slow
def test_an_order_is_compared_with_the_random_one_as_two_translations_are(evaluator: TranslationEvaluator) -> None:
    """The counts of the full model's translations stood beside the random order's, and turned the sign."""
    few = evaluator.data
    data = Dataset(few.task, "dev", few.texts * 6, few.references * 6)  # an interval takes ten changed sentences
    evaluator = TranslationEvaluator(evaluator.clf, data)
    draw = np.random.default_rng(0)
    own, random = pruning_curves(
        evaluator, {"own": draw.random((ROWS, HEADS)), "random": draw.random((ROWS, HEADS))}, step=0.25
    ).curves
    compared = 0
    for mine, other in zip(own.points, random.points, strict=True):
        said = [evaluator.evaluate(p.mask).translations for p in (other, mine)]
        if mine.mask != other.mask:
            (d,) = TextAnswers(np.array(evaluator.data.references, object), np.array(said[0], object)).deltas(
                [np.array(said[1], object)], "bleu"
            )
            np.testing.assert_equal(mine.over_random, d.interval_low)
            compared += not np.isnan(d.interval_low)
    assert compared


def test_a_translator_is_refused_where_classes_or_one_list_of_tokens_are_needed(
    evaluator: TranslationEvaluator,
) -> None:
    for ask in (headviz.interactions, headviz.redundant):
        with pytest.raises(ModelError, match="has no classes"):
            ask(evaluator)
    with pytest.raises(ModelError, match="from one text into another"):
        headviz.roles(evaluator.clf, evaluator.data)
    with pytest.raises(ModelError, match="from one text into another"):
        headviz.conductance(evaluator.clf, SOURCES[0])
    rnn = RnnTranslator.new(evaluator.data.texts, evaluator.data.references, embedding=4, hidden=5, units=3)
    for ask in (lambda: headviz.roles(rnn, evaluator.data), lambda: headviz.conductance(rnn, SOURCES[0])):
        with pytest.raises(ModelError, match="no attention heads"):
            ask()


def test_a_classifier_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tiny_folder(tmp_path / "m")
    assert main(["stacks", "--model", str(tmp_path / "m"), "--task", "demo-translation"]) == 2
    assert "has one stack of heads" in capsys.readouterr().err


def test_a_head_without_a_score_is_the_last_of_its_own_stack(evaluator: TranslationEvaluator) -> None:
    scores = np.arange(ROWS * HEADS, dtype=float).reshape(ROWS, HEADS)
    scores[0, 1] = np.nan
    encoder = stack_curves(evaluator, scores, step=0.5).curves[0]
    off = [{(h.layer, h.head) for h in point.mask.off} for point in encoder.points]
    assert off[-1] == {(row, head) for row in range(2) for head in range(HEADS)}
    assert (0, 1) not in off[-2]
