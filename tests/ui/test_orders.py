"""The sentence that compares two orders of heads, and what each head is said to carry."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from headviz.heads import HeadId
from headviz.scores.map_values import correlations
from headviz.ui.pages.orders import clear, interval, sentence
from headviz.ui.parts import abilities, scoring
from headviz.ui.shell.view import View, from_address, to_address


def table(score: str, values: np.ndarray):
    """A shipped table with other values."""
    found = scoring.shipped(View(), score, "fine-tuned")
    assert found is not None
    return replace(found, values=values, interval_low=values - 0.5, interval_high=values + 0.5)


@pytest.mark.parametrize(
    ("how", "said"),
    [
        (lambda v: v, "Agreement tells which heads cost most"),
        (lambda v: -v, "Agreement tends to be low where cost is high"),
        (
            lambda v: np.random.default_rng(0).permutation(v.ravel()).reshape(v.shape),
            "Agreement does not tell which heads cost most",
        ),
        (lambda v: np.zeros_like(v), "All heads have the same agreement"),
        (lambda v: np.full_like(v, np.nan), "Too few heads have both values"),
    ],
)
def test_what_two_orders_allow_to_say(how, said: str) -> None:
    values = np.arange(144.0).reshape(12, 12)
    assert said in sentence(table("conductance-spearman", how(values)), table("ablation", values), None)


def test_clear_costs_are_those_of_the_table_of_single_ablations() -> None:
    """Intervals stand in for the p values of the exact test."""
    from headviz.ui.shell import recorded

    table = scoring.shipped(View(), "ablation", "fine-tuned")
    exact = recorded._analyses()["ablation"]["result"]
    q, low = (np.array(exact[k], dtype=float) for k in ("q_value", "interval_low"))
    ours = clear(replace(table, values=np.array(exact["values"], float), interval_low=low))
    assert (ours == ((q < 0.05) & (low > 0))).mean() > 0.95
    assert 10 < ours.sum() < 30
    assert not clear(replace(table, values=np.zeros_like(low))).any()


def test_the_interval_of_a_rank_correlation_covers_it() -> None:
    rng = np.random.default_rng(1)
    held = 0
    for _ in range(400):
        a = rng.normal(size=60)
        b = 0.5 * a + rng.normal(size=60) * 0.75**0.5
        low, high = interval(float(correlations(a[None], b[None])["spearman"][0]), 60)
        held += low <= 6 / np.pi * np.arcsin(0.5 / 2) <= high  # Spearman's of two normals that correlate by .5
    assert 0.92 <= held / 400 <= 0.98


def test_the_users_choice_orders_the_heads_else_the_graded_best_else_cost() -> None:
    from headviz.analyses import grades

    best = grades.recorded().grades.best
    assert View().order == best
    assert View(model="another").order == View(data="/another").order == "ablation"
    assert View(score="taylor").order == "taylor"
    assert View(score="taylor", beside="fisher").order == "fisher"
    assert from_address(to_address(View(beside="fisher")))[0].order == "fisher"
    assert View(score="ablation-loss", beside="ablation-loss").order == best  # it shows costs and orders nothing
    assert View(score="taylor", beside="ablation-loss").order == "taylor"
    assert scoring.ordering(View()).score == best
    assert scoring.ordering(View(model="another")) is None


def test_the_demos_heads_are_named_by_the_table_of_its_card() -> None:
    from headviz.demo import card_figures

    told, sets = abilities.carried(View()), card_figures()["heads"]["sets"]
    for row in sets:
        for head in row["heads"]:
            assert row["phenomenon"] in told[HeadId.parse(head)]
    assert abilities.carried(View(model="another")) == {}
    assert abilities.carried(View(data="a folder")) == {}


def test_kind_by_kind_names_the_heads_of_other_models() -> None:
    values = np.zeros((2, 3, 4))
    values[0, 1, 2], values[0, 0, 1], values[0, 2, 0], values[1, 1, 2] = 0.5, 0.3, 0.1, 0.4
    found = SimpleNamespace(
        slices=[SimpleNamespace(name="number", cost=0.5), SimpleNamespace(name="tense", cost=0.4)],
        values=values,
        significant=lambda: values > 0.05,
        subject=SimpleNamespace(scale=1.0),
    )
    view = View(model="kinds", task="custom")
    abilities.remember(view, found)
    assert abilities.carried(view) == {HeadId(1, 2): "number, tense", HeadId(0, 1): "number"}
    assert abilities.carried(replace(view, limit=7)) == {}


def test_heads_of_one_value_share_their_places() -> None:
    """99 of the demo's heads cost exactly 0.0, and one of them was said to be number 76."""
    values = np.zeros((12, 12))
    values[0, :3] = (3.0, 2.0, 2.0)
    found = table("ablation", values)
    assert [scoring.rank(found, HeadId(0, i)) for i in range(4)] == [
        "1 of 144",
        "2 to 3 of 144",
        "2 to 3 of 144",
        "4 to 144 of 144",
    ]
    values[5, 5] = np.nan
    assert scoring.rank(table("ablation", values), HeadId(5, 5)) == "–"


def test_a_table_that_grows_and_costs_that_may_be_noise_are_no_order() -> None:
    values = np.arange(144.0).reshape(12, 12)
    agreement = table("conductance-spearman", values)
    said = sentence(replace(agreement, samples=16), table("taylor", values), None, growing=True)
    assert "16 examples" in said
    assert "which heads" not in said
    noise = replace(table("ablation", values), interval_low=values - 500, interval_high=values + 500)
    assert "rank correlation" not in sentence(agreement, noise, None)
    assert scoring.grey(noise).all()
    assert scoring.grey(agreement) is None
