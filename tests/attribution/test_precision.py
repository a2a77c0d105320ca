"""Which precision explains texts on a GPU, without one: the decision is made of what a sweep returns."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

import headviz
from headviz.attribution import attattr, integration, precision
from headviz.attribution.conductance import encode
from headviz.attribution.rules import AttAttrOptions, PathOptions
from headviz.models.fast.linear import bfloat16_here
from support.tiny import PAIRS, TEXTS, tiny_classifier

BFLOAT16 = "bfloat16" if bfloat16_here(torch.device("cpu")) else "float32"


class Sweep:
    """A method on a GPU: real maps, and ``change`` of them in TF32; counts its calls."""

    def __init__(self, run: Any, clf: Any, change: Any = lambda maps: maps) -> None:
        self.run, self.clf, self.change, self.calls = run, clf, change, list[str]()

    def __call__(self, _: Any, encodings: Any, targets: Any, options: Any, mask: Any) -> Any:
        self.calls.append(options.precision)
        maps = self.run(self.clf, encodings, targets, replace(options, precision="float32"), mask)
        return maps if options.precision == "float32" else [self.change(m) for m in maps]


@pytest.fixture
def card(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(precision, "has_tf32", lambda device: True)
    return tiny_classifier()


def decided(clf: Any, sweep: Any, options: Any = None) -> str:
    on_card: Any = SimpleNamespace(device=torch.device("cuda"), dtype=torch.float32, model=clf.model)
    chosen = precision.settled(options or PathOptions(), on_card, encode(clf, TEXTS, PAIRS), None, sweep)
    return str(chosen.precision)


def scaled(maps: Any, *factors: float) -> Any:
    """The first heads' attributions times these factors."""
    table = maps.attribution.copy()
    for head, factor in enumerate(factors):
        table[0, head] *= factor
    return replace(maps, attribution=table)


def test_tf32_where_maps_and_order_agree(card: Any) -> None:
    assert decided(card, Sweep(integration.sweep, card)) == "tf32"
    assert decided(card, Sweep(integration.sweep, card, lambda m: scaled(m, 1.0001))) == "tf32"


def test_float32_where_values_outputs_or_numbers_differ(card: Any) -> None:
    for change in (
        lambda m: replace(m, attribution=m.attribution * 1.1),
        lambda m: replace(m, target=(m.target + 1) % 3),
        lambda m: scaled(m, np.nan),
    ):
        assert decided(card, Sweep(integration.sweep, card, change)) == "float32"


def test_float32_where_the_heads_change_places(card: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    exact = integration.sweep(card, encode(card, TEXTS, PAIRS), [None] * 4, PathOptions(8))
    strength = np.sum([np.abs(m.attribution).sum(axis=(2, 3)) for m in exact], axis=0)
    places = np.argsort(strength.ravel())[:4]  # the weakest heads, whose maps weigh least

    def swapped(maps: Any) -> Any:
        table = maps.attribution.copy().reshape(-1, *maps.attribution.shape[2:])
        wanted = strength.ravel()[places[::-1]]
        table[places] *= (wanted / strength.ravel()[places])[:, None, None]
        return replace(maps, attribution=table.reshape(maps.attribution.shape))

    far = max(precision._distance(m.attribution, swapped(m).attribution) for m in exact)
    monkeypatch.setattr(precision, "KEPT", ((far * 1.01, 0.998),))  # the maps themselves differ little enough
    assert decided(card, Sweep(integration.sweep, card, swapped)) == "float32"


def test_each_method_has_its_own_check_which_is_made_once(card: Any) -> None:
    good = Sweep(integration.sweep, card)
    bad = Sweep(attattr.sweep, card, lambda m: replace(m, attribution=m.attribution * 1.1))
    for _ in range(2):
        assert decided(card, good) == "tf32"
        assert decided(card, bad, AttAttrOptions()) == "float32"
    assert good.calls == bad.calls == ["float32", "tf32"]


def test_the_check_is_made_again_when_weights_have_changed(card: Any) -> None:
    sweep = Sweep(integration.sweep, card)
    decided(card, sweep)
    with torch.no_grad():
        next(card.model.parameters()).mul_(1.0)
    decided(card, sweep)
    assert len(sweep.calls) == 4


def test_what_is_asked_for_is_not_checked(card: Any) -> None:
    sweep = Sweep(integration.sweep, card)
    for asked in ("float32", "tf32", "bfloat16"):
        assert decided(card, sweep, PathOptions(precision=asked)) == asked
    assert not sweep.calls


def test_on_a_processor_auto_and_tf32_are_float32() -> None:
    clf = tiny_classifier()
    for asked in ("auto", "tf32"):
        chosen = precision.settled(PathOptions(precision=asked), clf, [], None, Sweep(integration.sweep, clf))
        assert chosen.precision == "float32"


@pytest.mark.parametrize("method", [headviz.conductance, headviz.attattr])
def test_maps_name_their_precision(method: Any) -> None:
    clf = tiny_classifier()
    assert method(clf, TEXTS[0], PAIRS[0], steps=4, cache=False).precision == "float32"
    half = method(clf, TEXTS[0], PAIRS[0], steps=4, precision="bfloat16", cache=False)
    assert half.precision == BFLOAT16
    assert half.to_dict()["precision"] == BFLOAT16
    assert ("computed in bfloat16, a preview" in half.notes) == (BFLOAT16 == "bfloat16")
    half_weights = replace(clf, model=tiny_classifier().model.to(torch.bfloat16))
    assert method(half_weights, TEXTS[0], PAIRS[0], steps=4, cache=False).precision == "bfloat16"
