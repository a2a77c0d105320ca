import numpy as np

from headviz.pruning.algorithms import Algorithm, Remove, Score


def from_the_top(full, sizes):
    """The highest layer's heads go first, within a layer those of lowest score."""
    scores = yield Score(full)
    lower_on_top = scores - 1000 * np.arange(len(scores))[:, None]
    mask = full
    for size in sizes:
        mask = yield Remove(lower_on_top, mask, size)


ALGORITHMS = [
    Algorithm(
        name="top-down",
        title="From the top",
        what="Score θ* once; remove the heads of the highest layers first; evaluate θ* under each mask.",
        cost="One scoring, no training.",
        source="an example",
        masks=from_the_top,
    )
]
