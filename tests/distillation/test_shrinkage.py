"""The shrinkage that iterates support: noise supports none, a shared direction does, and a dense formula agrees."""

from dataclasses import replace
from typing import Any

import pytest
import torch

from distillation.test_conditional import SHAPES, dense, partition
from distillation.test_partition import copied
from headviz.extras.distillation.layer_removal import KEPT, ZEROED
from headviz.extras.distillation.plan import PosteriorOptions
from headviz.extras.distillation.posterior import (
    FAR,
    GRID,
    MemoryIterates,
    Posterior,
    Prior,
    _gains,
    _rows,
    chosen,
    supported,
)

OPTIONS = PosteriorOptions()


def noise(count: int, seed: int = 0) -> list[dict[str, torch.Tensor]]:
    torch.manual_seed(seed)
    return [{n: torch.randn(shape) for n, shape in SHAPES.items()} for _ in range(count)]


def along(count: int, size: float = 10.0) -> list[dict[str, torch.Tensor]]:
    """Noise, and one direction that all weights share."""
    direction = noise(1, seed=5)[0]
    torch.manual_seed(6)
    return [
        {n: w + size * float(torch.randn(())) * direction[n] for n, w in weights.items()} for weights in noise(count)
    ]


def test_independent_noise_supports_nothing() -> None:
    for seed in range(10):
        result = chosen(MemoryIterates(noise(10, seed)), partition(), OPTIONS, independent=True)
        assert result.shrinkage == 1
        assert "not shown to foretell anything" in result.note


@pytest.mark.parametrize("independent", [True, False])
def test_a_shared_direction_is_found(independent: bool) -> None:
    result = chosen(MemoryIterates(along(10)), partition(), OPTIONS, independent=independent)
    assert result.shrinkage < 1
    assert 0 < result.low < result.foretold <= 1
    assert f"Shrinkage {result.shrinkage:g}" in result.note


def test_a_training_is_judged_by_its_steps() -> None:
    """A walk of independent steps has large correlations of place, which foretell no step."""
    steps, place = noise(12), {n: torch.zeros(shape) for n, shape in SHAPES.items()}
    walk = []
    for step in steps:
        place = {n: place[n] + step[n] for n in place}
        walk.append(place)
    assert chosen(MemoryIterates(walk), partition(), OPTIONS, independent=False).shrinkage == 1


def test_what_is_foretold_is_the_conditional_mean_of_the_dense_formula() -> None:
    its, part = along(8, size=1.0), partition()
    kept, zeroed = _rows(MemoryIterates(its), part, independent=True)
    gains = _gains(kept, zeroed, 3, OPTIONS.floor)
    others = [w for k, w in enumerate(its) if k != 3]
    centre = {n: torch.stack([w[n] for w in others]).mean(0) for n in SHAPES}
    roles = torch.cat([part.roles(n).flatten() for n in SHAPES])
    away = torch.cat([(its[3][n] - centre[n]).flatten() for n in SHAPES]).double()
    for a, gain in zip(GRID, gains, strict=True):
        # the formula's mean moves by what v2 moves to zero: put the teacher where zero is the row that was left out
        mean = {n: -(its[3][n] - centre[n]) for n in SHAPES}
        moved, _ = dense(mean, others, PosteriorOptions(shrinkage=a), part)
        order = torch.cat([-away[roles == KEPT]])
        guess = moved - order
        target = away[roles == KEPT]
        expected = 1 - float((target - guess).square().sum() / target.square().sum())
        assert float(gain) == pytest.approx(expected, abs=1e-4)
    assert (roles == ZEROED).any()


def far_iterates() -> tuple[dict[str, torch.Tensor], MemoryIterates]:
    """One shared direction, and zeroed weights that lie many steps away from zero."""
    its = along(10)
    mean = {n: torch.ones(shape) for n, shape in SHAPES.items()}
    for piece in partition().zeroed:
        piece.fill(mean[piece.name], 200.0)
    return mean, MemoryIterates(its)


def test_a_supported_shrinkage_is_declined_where_it_moves_the_mean_too_far() -> None:
    part, (mean, its) = partition(), far_iterates()
    result = chosen(its, part, OPTIONS, independent=True)
    assert result.shrinkage < 1
    alone = Prior(Posterior(mean, its, replace(OPTIONS, shrinkage=result.shrinkage)), part)
    assert alone.moved > FAR
    prior = supported(mean, its, OPTIONS, part, independent=True)
    assert prior.posterior.shrinkage == 1
    assert prior.moved == 0
    for name, weights in prior.mean().items():
        assert torch.equal(weights, copied(part, mean)[name])
    assert f"With shrinkage {result.shrinkage:g}" in prior.notes[0]
    assert f"{alone.moved:.2g} times" in prior.notes[0]
    assert "the conditional mean is the copied weights" in prior.notes[0]


def test_a_supported_shrinkage_that_moves_little_stays() -> None:
    """The same iterates, with the zeroed weights near zero."""
    part, (mean, its) = partition(), far_iterates()
    near = {n: 10 * t for n, t in mean.items()}
    for piece in part.zeroed:
        piece.fill(near[piece.name], 0.5)
    prior = supported(near, its, OPTIONS, part, independent=True)
    assert 0 < prior.moved <= FAR
    assert prior.posterior.shrinkage == chosen(its, part, OPTIONS, independent=True).shrinkage
    assert prior.notes[0].startswith("Shrinkage ")


def test_two_iterates_say_nothing() -> None:
    result: Any = chosen(MemoryIterates(noise(2)), partition(), OPTIONS, independent=True)
    assert result.shrinkage == 1
