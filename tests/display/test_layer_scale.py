"""The colours of a layer's small maps: logarithmic, the same on both sides of zero."""

from __future__ import annotations

import numpy as np

from headviz.display.figures.maps import layer, symmetric_log


def test_the_scale_is_symmetric_monotone_and_ends_at_one() -> None:
    values = np.array([-1.0, -0.1, -0.001, 0.0, 0.001, 0.1, 1.0])
    scaled = symmetric_log(values, 1.0)
    assert np.all(np.diff(scaled) > 0)
    np.testing.assert_allclose(scaled, -scaled[::-1])
    assert scaled[-1] == 1.0
    assert scaled[5] > 0.5  # a tenth of the largest value is well seen


def test_a_layers_maps_keep_their_values_beside_the_colours() -> None:
    maps = np.stack([np.full((3, 3), 0.5), np.full((3, 3), -0.005)])
    fig = layer(maps, ["L0·H0", "<b>L0·H1"], "attribution", True, 0)
    assert [a.text for a in fig.layout.annotations] == ["<b>L0·H0 Σ 4.5</b>", "&lt;b&gt;L0·H1 Σ 0.045"]
    np.testing.assert_allclose(fig.data[1].customdata, maps[1], rtol=1e-6)
    assert fig.data[0].showscale
    assert fig.data[0].colorbar.ticktext[-1] == "0.5"
