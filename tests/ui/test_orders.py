"""The sentence that compares two orders of heads, and what each head is said to carry."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from headviz.heads import HeadId
from headviz.scores import SCORES
from headviz.ui.pages.heads.orders import clear, costs, interval, sentence, word
from headviz.ui.parts import abilities, cost, scoring
from headviz.ui.shell.view import View, from_address, to_address


def table(score: str, values: np.ndarray):
    """A shipped table with other values."""
    found = scoring.shipped(View(), score, "fine-tuned")
    assert found is not None
    return replace(found, values=values, interval_low=values - 0.5, interval_high=values + 0.5)


def test_the_shipped_orders_are_compared_with_the_figures_behind_it() -> None:
    from scipy.stats import spearmanr

    first, second = (scoring.shipped(View(), s, "fine-tuned") for s in ("conductance-spearman", "ablation"))
    assert first is not None
    assert second is not None
    said = sentence(first, cost.in_points(second), None, abilities.carried(View()))
    r = spearmanr(first.values.ravel(), second.values.ravel()).statistic
    assert f"{r:+.2f}".replace("-", "−") in said
    top = second.ranked()[0]
    assert f"{top}, the costliest" in said
    assert f"carries {abilities.carried(View())[top]})" in said
    assert f"is number {first.ranked().index(top) + 1} of 144 by agreement" in said
    assert f"({100 * second.values[top]:.2g} points;" in said


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


def test_a_table_that_grows_decides_nothing() -> None:
    """On 16 of 64 texts it said that agreement does not tell, on 32 that nobody can say; the interval is over heads."""
    values = np.arange(144.0).reshape(12, 12)
    mixed = np.random.default_rng(0).permutation(144.0 * np.ones(144) - np.arange(144)).reshape(12, 12)
    part = replace(table("conductance-spearman", mixed), samples=16)
    said = sentence(part, table("taylor", values), None, growing=True)
    assert said.startswith("On 16 examples so far, agreement and taylor have rank correlation ")
    assert "does not tell" not in said
    assert "which heads are highest by taylor" in sentence(part, table("taylor", values), None)


def test_costs_that_are_not_told_apart_from_nothing_are_no_order() -> None:
    """One answer of 64 lost or gained at every head: 1.6 points, and an interval over zero."""
    shape = np.where(np.arange(144).reshape(12, 12) % 3, 1.5625, -1.5625)
    noise = replace(table("ablation", shape), interval_low=shape - 3, interval_high=shape + 3, samples=64)
    agreement = table("conductance-spearman", np.arange(144.0).reshape(12, 12))
    said = sentence(agreement, noise, None)
    assert said.startswith("On 64 training examples no head's cost can be told from 0 with all 144 tested at once; ")
    assert "96 share the highest, 1.6 points. More examples (Options) can tell smaller costs from 0." in said
    assert said.endswith("can tell smaller costs from 0.")
    assert sentence(agreement, noise, None, hint="Look there.") == f"{said} Look there."
    assert cost.grey(noise).all()
    assert cost.grey(agreement) is None
    in_loss = replace(noise, score="ablation-loss", interval_low=shape - 1)
    assert (cost.grey(in_loss) == (shape < 0)).all()
    assert cost.colours(in_loss).loss
    assert not cost.colours(agreement).loss
    assert "; 96 share the highest, 1.562 of loss. More examples" in costs(replace(noise, score="ablation-loss"), None)
    high = shape.copy()
    high[3, 5] = 9
    one_head = replace(noise, values=high, interval_low=high - 3, interval_high=high + 3)
    one = "On 64 training examples 1 of 144 heads clearly costs something (q < 0.05): L3·H5, 9.0 points."
    assert costs(one_head, None) == one
    assert sentence(agreement, one_head, None) == f"{one} Too few for an order."
    trained = costs(replace(one_head, settings={"split": "train"}), None)
    assert trained == one
    assert costs(replace(one_head, settings={"split": "dev"}), None).startswith("On 64 dev examples 1 of")
    unsure = high.copy()
    unsure[2, 2] = 11  # costs more, but its own interval includes 0
    low = np.where(unsure == 11, -1, unsure - 3)
    assert costs(replace(one_head, values=unsure, interval_low=low), None) == one
    unsure[3, 6] = 9
    two = replace(one_head, values=unsure, interval_low=np.where(unsure == 11, -1, unsure - 3))
    assert costs(two, None).endswith(
        "2 of 144 heads clearly cost something (q < 0.05); of these 2 cost most: 9.0 points."
    )
    wide = replace(one_head, interval_low=high - 8.5, interval_high=high + 8.5)
    assert wide.interval_low[3, 5] > 0
    assert costs(wide, None).startswith(
        "On 64 training examples no head's cost can be told from 0 with all 144 tested at once; L3"
    )


def test_clear_costs_are_those_of_the_table_of_single_ablations() -> None:
    """Intervals stand in for the p values of the exact test."""
    from headviz.ui.parts import recorded

    table = scoring.shipped(View(), "ablation", "fine-tuned")
    exact = recorded._analyses()["ablation"]["result"]
    q, low = (np.array(exact[k], dtype=float) for k in ("q_value", "interval_low"))
    ours = clear(replace(table, values=np.array(exact["values"], float), interval_low=low))
    assert (ours == ((q < 0.05) & (low > 0))).mean() > 0.95
    assert 10 < ours.sum() < 30
    assert not clear(replace(table, values=np.zeros_like(low))).any()


def test_few_heads_leave_open_whether_one_order_tells_of_the_other() -> None:
    rng = np.random.default_rng(3)
    values = np.full((12, 12), np.nan)
    values[:2] = 1.0 + np.arange(24.0).reshape(2, 12)
    cost_of = replace(table("ablation", values), interval_low=values - 0.1, interval_high=values + 0.1)
    other = np.full((12, 12), np.nan)
    other[:2] = rng.permutation(24).reshape(2, 12)
    assert sentence(table("conductance-spearman", other), cost_of, None).startswith(
        "The data cannot say whether agreement tells which heads cost most: rank correlation"
    )


def test_the_interval_of_a_rank_correlation_covers_it() -> None:
    rng = np.random.default_rng(1)
    held = 0
    for _ in range(400):
        a = rng.normal(size=60)
        b = 0.5 * a + rng.normal(size=60) * 0.75**0.5
        from headviz.scores.correlation import spearman

        low, high = interval(float(spearman(a[None], b[None])[0]), 60)
        held += low <= 6 / np.pi * np.arcsin(0.5 / 2) <= high  # Spearman's of two normals that correlate by .5
    assert 0.92 <= held / 400 <= 0.98


def test_the_catalogue_stands_in_the_order_of_the_recorded_board() -> None:
    from headviz.analyses import board

    graded = [grade.score for grade in board.recorded().grades.scores]
    assert list(SCORES)[: len(graded)] == graded


def test_scores_have_plain_names() -> None:
    assert [word(s) for s in ("conductance-kendall", "ablation", "fisher")] == ["agreement", "cost", "fisher"]


def test_the_users_choice_orders_the_heads_else_the_graded_best_else_cost() -> None:
    from headviz.analyses import board

    best = board.recorded().grades.best
    assert best == next(iter(SCORES))
    assert View().order == best
    assert View(model="another").order == View(data="/another").order == "ablation"
    assert View(score="taylor").order == "taylor"
    assert View(score="taylor", beside="fisher").order == "fisher"
    assert from_address(to_address(View(beside="fisher")))[0].order == "fisher"
    assert View(score="ablation-loss", beside="ablation-loss").order == best  # it shows costs and orders nothing
    assert View(score="taylor", beside="ablation-loss").order == "taylor"
    assert cost.ordering(View()).score == best
    assert cost.ordering(View(model="another")) is None


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
