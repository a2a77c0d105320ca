"""The study's page: networks that were pruned and trained."""

from __future__ import annotations

from types import ModuleType

from study.tests.made_cells import retrained, text


def test_a_ticket_is_marked_and_its_chance_of_being_false_stands_beside(study: ModuleType) -> None:
    won = [retrained(0, 0.80, 0.79), retrained(1, 0.81, 0.81), retrained(2, 0.82, 0.83)]  # .81 ≤ .81 + sd
    said = text(study, *won)
    assert "With all heads: 0.810 ± 0.010 over 3 trainings." in said
    assert "| ISP, IGSPP, `taylor` | 0 1 2 | 0.810 ± 0.020 * |" in said
    assert "It lets a true loss of one sd pass: 45% with 3 seeds." in said
    assert "one-shot ISP ticket 84.2±0.3" in said
    assert "80 % off): Michel (alpha 1.0) 0.773" in said
    lost = [retrained(0, 0.80, 0.78), retrained(1, 0.81, 0.79), retrained(2, 0.82, 0.79)]
    assert "| 0.787 ± 0.006 |" in text(study, *lost)


def test_a_loss_of_more_than_the_margin_is_excluded_only_where_the_seeds_agree(study: ModuleType) -> None:
    agree = [retrained(0, 0.80, 0.798), retrained(1, 0.81, 0.809), retrained(2, 0.82, 0.817)]
    assert text(study, *agree).split("`taylor` | 0 1 2 |")[1].splitlines()[0].endswith("| 30% |")
    apart = [retrained(0, 0.80, 0.83), retrained(1, 0.81, 0.78), retrained(2, 0.82, 0.82)]
    assert text(study, *apart).split("`taylor` | 0 1 2 |")[1].splitlines()[0].endswith("| – |")


def test_a_seeds_models_that_were_trained_apart_are_each_counted(study: ModuleType) -> None:
    once = {**retrained(0, 0.9, 0.8), "cell": "retrain-minilm-mrpc-0-igspf-taylor", "algorithm": "igspf", "digest": "b"}
    assert "With all heads: 0.850 ± 0.071 over 2 trainings." in text(study, retrained(0, 0.8, 0.8), once)
    assert "With all heads: 0.900." in text(study, once)


def test_one_seed_is_no_ticket_and_its_interval_is_over_examples(study: ModuleType) -> None:
    said = text(study, retrained(0, 0.8, 0.9))
    assert "| ISP, IGSPP, `taylor` | 0 | 0.900 | – |" in said
    assert "One seed has no sd, so it is no ticket." in said
    assert "| ISP, IGSPP, `taylor` | 1 | +10.0 [+5.0, +15.0] |" in said
    assert "| ISP, IGSPP, `taylor` | 1 | +10.0 [+7.0, +13.0] |" in said  # against all heads
    several = [retrained(seed, 0.8, 0.79, lead) for seed, lead in enumerate((0.1, 0.12, 0.11))]
    assert "| ISP, IGSPP, `taylor` | 3 | +11.0 [+8.5, +13.5] |" in text(study, *several)
    equal = [retrained(seed, 0.8, 0.79) for seed in range(3)]
    assert "| ISP, IGSPP, `taylor` | 3 | +10.0 |" in text(study, *equal)  # no spread, no interval


def test_retrained_scores_are_set_against_the_thesiss_on_the_same_models(study: ModuleType) -> None:
    own = [{**retrained(seed, 0.8, 0.79, lead), "digest": f"a{seed}"} for seed, lead in enumerate((0.1, 0.12, 0.11))]
    thesis = [
        {**retrained(seed, 0.8, 0.78, 0.07), "digest": f"a{seed}", "score": "thesis-2024"}
        | {"cell": f"retrain-minilm-mrpc-{seed}-isp-thesis-2024"}
        for seed in range(3)
    ]
    told = text(study, *own, *thesis).split("Ahead of the thesis's score (`thesis-2024`) on the same models, by seed:")
    assert "| ISP, IGSPP, `taylor` | 3 | +4.0 [+1.5, +6.5] | +4.0 [+1.5, +6.5] |" in told[1].split("\n\n")[1]
    assert "`thesis-2024` |" not in told[1].split("\n\n")[1]
    other = [{**cell, "digest": "b"} for cell in thesis]  # trained again
    assert "Ahead of the thesis's score" not in text(study, *own, *other)


def test_a_constant_answer_that_wins_is_called_one(study: ModuleType) -> None:
    useless = [retrained(seed, 0.6, 0.68, predicted=100) for seed in range(2)]
    said = text(study, *useless)
    assert "0.680 ± 0.000 * (2 of 2 one class)" in said
    assert "a network that has forgotten the task wins here" in said
    assert "Balanced accuracy ahead of the random order" not in said


def test_isp_reaches_the_sizes_that_the_other_algorithms_are_given(study: ModuleType) -> None:
    from headviz.pruning import PruningPlan
    from headviz.pruning.sizes import listed, remaining
    from study.papers import LAST, ROUND, shares

    assert remaining(72, ROUND, LAST, last="full") == listed(72, shares("minilm")) == [22, 37, 47, 55, 60, 64]
    plan = {"model": "m", "base": "b", "task": "mrpc", "retrain_full": False}
    PruningPlan(algorithm="isp", step=ROUND, until=LAST, last_step="full", **plan)
    PruningPlan(algorithm="igspf", sparsities=shares("minilm"), **plan)
