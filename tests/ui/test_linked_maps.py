"""What One head sends to the browser: few bytes, and the numbers that it shows."""

from __future__ import annotations

import json
import zlib

import numpy as np
import pytest

from headviz.attribution.maps import Maps
from headviz.display.figures.maps import CELLS, thumbnails
from headviz.heads import HeadId, HeadMask
from headviz.ui.pages.head import points_drawn, sentence, weight
from headviz.ui.widgets.maps import LIMIT, Panel, message, pack


def unpacked(top: float, levels: int, body: bytes, shape: tuple[int, ...]) -> np.ndarray:
    raw = np.frombuffer(zlib.decompress(body), dtype=np.uint8)
    n = int(np.prod(shape))
    steps = (
        raw.view(np.int8).astype(int) if levels <= 127 else raw.reshape(2, n).T.copy().view("<i2").ravel().astype(int)
    )
    return (np.sign(steps) * (steps / levels) ** 2 * top).reshape(shape)


def attention(tokens: int, seed: int = 0) -> np.ndarray:
    scores = np.random.default_rng(seed).normal(0, 3, (tokens, tokens))
    weights = np.exp(scores)
    return weights / weights.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("tokens", [1, 20, 130])
def test_a_packed_map_keeps_three_digits(tokens: int) -> None:
    values = attention(tokens) * np.random.default_rng(1).choice([-1, 1], (tokens, tokens))
    top, levels, body = pack(values)
    assert top == np.abs(values).max()
    result = unpacked(top, levels, body, values.shape)
    large = np.abs(values) > top / 1000
    np.testing.assert_allclose(result[large], values[large], rtol=2e-3)
    assert np.abs(result - values).max() < 1e-4 * top


@pytest.mark.slow
def test_both_maps_of_512_tokens_take_less_than_180_kB_even_if_they_are_noise() -> None:
    noise = np.random.default_rng(0).normal(size=(512, 512))
    panels = [Panel("attention", attention(512), False, ""), Panel("attribution", noise, True, "")]
    sent = message({"label": "L0·H1", "queries": ["word"] * 512, "keys": ["word"] * 512}, panels)
    assert len(sent) < 2 * LIMIT + 5000 < 180_000
    length = int.from_bytes(sent[:4], "little")
    about = json.loads(zlib.decompress(sent[4 : 4 + length]))
    assert [m["size"] for m in about["maps"]] == [len(pack(p.values)[2]) for p in panels]
    assert len(sent) == 4 + length + sum(m["size"] for m in about["maps"])


def test_a_map_without_numbers_is_zero_everywhere() -> None:
    top, levels, body = pack(np.full((3, 3), np.nan))
    assert top == 1.0
    assert not unpacked(top, levels, body, (3, 3)).any()


def test_a_small_map_of_a_long_text_shows_the_strongest_of_each_block() -> None:
    maps = np.zeros((2, 100, 90), dtype=np.float32)
    maps[0, 99, 89], maps[1, 4, 5], maps[1, 4, 4] = 0.5, -0.9, 0.8
    small, block = thumbnails(maps)
    assert max(small.shape[1:]) <= CELLS
    assert small[0, 99 // block, 89 // block] == np.float32(0.5)
    assert small[1, 4 // block, 5 // block] == np.float32(-0.9)
    assert np.count_nonzero(small) <= 3
    same, one = thumbnails(maps[:, :40, :40])
    assert one == 1
    np.testing.assert_array_equal(same, maps[:, :40, :40])


def test_of_many_connections_the_largest_on_either_side_are_drawn() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.random(2500), rng.normal(size=2500)
    shown = points_drawn(a, b)
    assert len(shown) <= 400
    assert {int(a.argmax()), int(np.abs(b).argmax())} <= set(shown.tolist())
    assert points_drawn(a[:9], b[:9]).tolist() == list(range(9))


def maps(sizes: list[list[float]]) -> Maps:
    """Two tokens; each head's attribution is its size in one connection, and minus half of it in another."""
    layers, heads = len(sizes), len(sizes[0])
    attribution = np.zeros((layers, heads, 2, 2), dtype=np.float32)
    attribution[..., 0, 0] = sizes
    attribution[..., 1, 1] = -np.array(sizes) / 2
    return Maps(
        attention=np.full((layers, heads, 2, 2), 0.5, dtype=np.float32),
        attribution=attribution,
        tokens=("a", "b"),
        types=(0, 0),
        special=(False, False),
        labels=("no", "yes"),
        logits=np.array([0.0, 1.0]),
        target=1,
        mask=HeadMask.full(layers, heads),
        method="conductance",
        rule="richardson",
        steps=16,
        head_error=np.zeros((layers, heads)),
    )


def test_a_heads_weight_stands_beside_its_correlation_and_a_small_one_is_called_small() -> None:
    result = maps([[0.001, 0.999], [0.5, 0.5]])
    whole, layer, model, even = weight(result, HeadId(0, 0))
    assert (round(whole, 6), round(layer, 6), round(model, 6), even) == (0.0005, 0.001, 0.0005, 0.25)
    assert "hardly takes part in this answer: it moves 'yes' by +0.0005" in sentence(result, HeadId(0, 0))
    assert "moves 'yes' by +0.25, with 25 %" in sentence(result, HeadId(1, 1))
    assert "contributes nothing" in sentence(maps([[0.0, 1.0]]), HeadId(0, 0))
