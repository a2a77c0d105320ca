from dataclasses import replace

from headviz.pruning.algorithms import Algorithm, masked


def from_the_top(loop):
    """The next mask: the highest layer's heads go first, within a layer those of lowest score."""
    scores = loop.first_scores()
    lower_on_top = tuple(
        tuple(None if value is None else value - 1000 * layer for value in row)
        for layer, row in enumerate(scores.values)
    )
    return loop.without_lowest(replace(scores, values=lower_on_top, low=None, high=None))


ALGORITHMS = [
    Algorithm(
        name="top-down",
        title="From the top",
        what="Score θ* once; remove the heads of the highest layers first; evaluate θ* under each mask.",
        cost="One scoring, no training.",
        source="an example",
        choose=from_the_top,
        result=masked,
    )
]
