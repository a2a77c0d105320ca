"""How often a board of scores says "behind the best" where nothing is: ``python bench/coverage_of_boards.py``.

Simulated: scores of equal worth. A score is measured on one half of the examples, which shifts what it keeps on the
other half by an error of its own; examples are answered right or wrong under all scores alike to some degree. Both
ways, in several splits, as ``headviz grade`` does it. Columns: how often at least one score is called behind the best
by percentile intervals without correction, by this package's intervals, how often a difference of two scores named
beforehand is held by the interval for one, and the median width of the interval for all.
"""

import argparse

import numpy as np

from headviz.statistics.significance import differences

SCORES, DRAWS = 14, 500


def board(
    rng: np.random.Generator, n: int, splits: int, alike: float, of_scoring: tuple[float, float]
) -> tuple[np.ndarray, ...]:
    """Draws [K, 1 + R] and values by half [K, S, 2], from ``n`` examples; ``of_scoring`` is the standard
    deviation of what one example adds to a score's error, of every other score; ``alike`` correlates the answers."""
    common = np.sqrt(alike) * rng.normal(size=n)
    answers = (common + np.sqrt(1 - alike) * rng.normal(size=(SCORES, n)) > 0).astype(float)  # right or wrong
    errors = np.resize(of_scoring, SCORES)
    shifts = errors[:, None] * rng.normal(size=(SCORES, n))
    weights = np.concatenate([np.ones((1, n)), rng.multinomial(n, np.full(n, 1 / n), DRAWS)])
    areas, halves = np.zeros((SCORES, 1 + DRAWS)), np.zeros((SCORES, splits, 2))
    for split in range(splits):
        pairs = rng.permuted(np.arange(n).reshape(-1, 2), axis=1)
        for side in (0, 1):
            scored, tried = pairs[:, side], pairs[:, 1 - side]
            shift = shifts[:, scored].mean(axis=1) + 0.3 * errors * rng.normal(size=SCORES) / np.sqrt(n / 2)
            tries = weights[:, tried]
            value = (tries @ answers[:, tried].T / tries.sum(axis=1, keepdims=True)).T + shift[:, None]
            areas += value / (2 * splits)
            halves[:, split, side] = value[:, 0]
    return areas, halves


def judged(areas: np.ndarray, halves: np.ndarray) -> tuple[bool, bool, bool, float]:
    """False alarms without and with correction, whether a pair named beforehand holds 0, and the width for all."""
    best = int(areas[:, 0].argmax())
    behind = areas[best] - areas
    plain = np.percentile(behind[:, 1:], 2.5, axis=1) > 0
    result = differences(areas[:, 1:], halves)
    width = result.all * result.errors[best]
    apart = abs(float(areas[0, 0] - areas[1, 0]))
    corrected = behind[:, 0] > width
    named = apart <= result.single * float(result.errors[0, 1])
    return bool(plain.any()), bool(corrected.any()), named, float(np.median(width[width > 0]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=400, help="boards of each kind")
    given = parser.parse_args()
    print("| examples | splits | alike | error of scoring | plain: false | all at once: false | a pair holds | width |")
    print("|---|---|---|---|---|---|---|---|")
    for n, splits in ((200, 1), (200, 5), (1000, 5)):
        for alike in (0.3, 0.8):
            for of_scoring in ((0.0, 0.0), (0.3, 0.3), (1.0, 1.0), (0.0, 1.0)):
                rng = np.random.default_rng(0)
                rows = [judged(*board(rng, n, splits, alike, of_scoring)) for _ in range(given.runs)]
                plain, at_once, named, width = (float(np.mean([row[at] for row in rows])) for at in range(4))
                cells = f"{plain:.3f} | {at_once:.3f} | {named:.3f} | {width:.3f}"
                print(f"| {n} | {splits} | {alike} | {of_scoring[0]}, {of_scoring[1]} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
