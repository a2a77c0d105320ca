import numpy as np

from headviz.scores import Score


def spread(inputs, options):
    """How much the loss's reaction to a head differs between examples: [examples, layers, heads]."""
    signed = inputs.rows["signed"]  # ∂Loss/∂ξ of every example and head, measured by the sweep "gates"
    return np.abs(signed - signed.mean(axis=0))  # headviz averages over the examples, with an interval


SCORES = [
    Score(
        name="loss-spread",
        title="Spread of the loss's reaction",
        meaning="How differently the examples react when a head is turned down a little.",
        formula="mean over examples of |∂Loss/∂ξ − its mean|",
        source="an example",
        measure=spread,
        needs="gates",
    )
]
