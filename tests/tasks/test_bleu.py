"""BLEU, chrF and paired bootstrap resampling, against sacrebleu's own values and a slow loop."""

import numpy as np
import pytest

from headviz.errors import OptionError, TaskError
from headviz.extras.translation.sentence import bleu, bleu_counts, bleu_of, chrf, compare

REFERENCES = [
    "The cat sat on the mat, and slept.",
    "It is not far from here.",
    "Two dogs ran after the old man's car.",
    "Nobody knows the answer.",
]
HYPOTHESES = [
    "The cat sat on a mat, and slept.",
    "It isn't far from here.",
    "Two dogs ran behind the car of the old man.",
    "Nobody knows the answer.",
]


def test_values_of_the_reference_tool() -> None:
    # printed by `sacrebleu references -i hypotheses -m bleu chrf -w 4`, version 2.6.0, on these two files
    assert bleu(HYPOTHESES, REFERENCES).value == pytest.approx(51.0334, abs=5e-5)
    assert chrf(HYPOTHESES, REFERENCES).value == pytest.approx(75.0934, abs=5e-5)


def test_counts_add_up_to_the_corpus_score() -> None:
    rows = bleu_counts(HYPOTHESES, REFERENCES)
    assert bleu_of(rows.sum(axis=0)) == pytest.approx(bleu(HYPOTHESES, REFERENCES).value, abs=1e-9)
    part = [0, 2]
    expected = bleu([HYPOTHESES[i] for i in part], [REFERENCES[i] for i in part]).value
    assert bleu_of(rows[part].sum(axis=0)) == pytest.approx(expected, abs=1e-9)


def systems(n: int, worse: float) -> tuple[np.ndarray, np.ndarray]:
    """Counts of two systems that garble some sentences, the second one more of them."""
    rng = np.random.default_rng(3)
    words = "the a dog cat saw ran old red in house".split()
    references = [" ".join(rng.choice(words, 9)) for _ in range(n)]

    def garbled(share: float) -> list[str]:
        return [" ".join(rng.permutation(r.split())) if rng.random() < share else r for r in references]

    return bleu_counts(garbled(0.3), references), bleu_counts(garbled(0.3 + worse), references)


def test_bootstrap_against_a_plain_loop() -> None:
    first, other = systems(60, 0.1)
    result = compare(first, other, seed=1, resamples=2000)
    rng = np.random.default_rng(99)
    drawn = []
    for _ in range(2000):
        rows = rng.integers(0, 60, 60)
        drawn.append(bleu_of(other[rows].sum(axis=0)) - bleu_of(first[rows].sum(axis=0)))
    delta = bleu_of(other.sum(axis=0)) - bleu_of(first.sum(axis=0))
    assert result.delta == pytest.approx(delta)
    assert (result.interval_low, result.interval_high) == pytest.approx(np.quantile(drawn, [0.025, 0.975]), abs=1.0)
    p = np.mean(np.abs(np.array(drawn) - np.mean(drawn)) >= abs(delta))
    assert result.p_value == pytest.approx(p, abs=0.04)


def test_p_values_tell_a_real_change_from_none() -> None:
    first, other = systems(300, 0.25)
    assert compare(first, other).p_value == pytest.approx(1 / 1001)
    same = compare(first, first)
    assert (same.delta, same.p_value) == (0, 1)
    assert np.isnan([same.interval_low, same.interval_high]).all()  # no flip does not mean that nothing can be lost
    assert compare(first, other) == compare(first, other)
    assert compare(other, first).delta == pytest.approx(-compare(first, other).delta)


def test_few_changed_sentences_have_no_interval() -> None:
    references = [f"the {word} cat sat on the old mat" for word in "abcdefghijklmnopqrst"]
    first = bleu_counts(references, references)
    for changed, given in ((9, False), (10, True)):
        other = first.copy()
        other[:changed, :4] -= 1
        assert np.isfinite(compare(first, other).interval_low) == given


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: bleu(["a"], ["a", "b"]), TaskError, "1 translations but 2 references"),
        (lambda: chrf([], []), TaskError, "nothing to measure"),
        (lambda: bleu(["a"], ["a"], "moses"), OptionError, "Unknown BLEU tokenizer 'moses'.*13a"),
        (lambda: compare(np.ones((2, 10), int), np.ones((3, 10), int)), TaskError, "cannot be paired"),
        (lambda: compare(np.ones((2, 10), int), np.ones((2, 10), int), resamples=0), OptionError, "resample"),
    ],
)
def test_bad_input(call: object, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()  # type: ignore[operator]
