"""How many heads lie in each band of correlation, beside the published shares."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ...parts import published
from ...shell import show, state

BANDS = tuple((i / 10, (i + 2) / 10) for i in range(-10, 10, 2))  # of equal width, so that bars compare
TITLES = {"fine-tuned": "Fine-tuned", "pre-trained": "Pre-trained", "difference": "Fine-tuned − pre-trained"}
PUBLISHED_BAND = (0.2, 0.4)  # its share was published
UNCUT = "Published for texts of at most 200 tokens; longer ones are not cut here."


def section(shown: Mapping[str, np.ndarray]) -> None:
    """The share of heads in bands of correlation."""
    from ....display.figures import histograms  # plotly loads only when a figure is drawn

    models = {k: v for k, v in shown.items() if k != "difference"}
    names = [f"{low:g} to {high:g}".replace("-", "−") for low, high in BANDS]
    rows = [(TITLES[k], [in_band(v, *b) for b in BANDS]) for k, v in models.items()]
    show.figure(
        histograms.bands(rows, names),
        "bands",
        f"{sentences({TITLES[k]: v for k, v in models.items()})} {UNCUT}",
        source="Share of heads per band of correlation, “Integrated Gradients for Structured Pruning on BERT”, §6.5.2.",
    )
    published.section("correlation", state.view().task)


def sentences(models: Mapping[str, np.ndarray]) -> str:
    """What the bars show; where there are several models, one sentence for each, by name."""
    if len(models) == 1:
        return sentence(*models.values())
    return " ".join(f"{name}: {sentence(values)}" for name, values in models.items())


def sentence(values: np.ndarray) -> str:
    """The band with the most heads, and the band of the published figures."""
    shares = {b: in_band(values, *b) for b in BANDS}
    if any(s != s for s in shares.values()):
        return "No head has a value yet."
    (low, high), most = max(shares.items(), key=lambda item: item[1])
    said = f"{100 * most:.0f} % of the heads lie between {low:g} and {high:g}".replace("-", "−")
    if (low, high) == PUBLISHED_BAND:
        return f"{said}, the band of the published figures."
    share = shares[PUBLISHED_BAND]
    other = f"{show.number(100 * share, 2)} %" if share else "none"
    return f"{said}, {other} between 0.2 and 0.4, the band of the published figures."


def in_band(values: np.ndarray, low: float, high: float) -> float:
    """The share of measured heads with low ≤ value < high; 1 belongs to the last band."""
    known = values[np.isfinite(values)]
    if known.size == 0:
        return float("nan")
    return float(((known >= low) & ((known < high) | ((high >= 1.0) & (known <= high)))).mean())
