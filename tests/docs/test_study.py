"""The study's page: made from its cells alone, and saying no more than they support."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from filelock import FileLock

BENCH = Path(__file__).resolve().parents[2] / "bench"


def trained(seed: int) -> dict[str, Any]:
    return {
        "cell": f"train-minilm-mrpc-{seed}",
        "experiment": "training",
        "metrics": {"accuracy": 0.8},
        "examples": 3668,
        "n": 408,
    }


def pruned(score: str, seed: int, lead: float, width: float, predicted: int = 200) -> dict[str, Any]:
    """A cell of four steps; every order of it loses the same."""
    ahead = [
        {"sparsity": share, "mean": lead, "low": lead - width, "high": lead + width} for share in (0.3, 0.5, 0.7, 0.9)
    ]
    step = {
        "metrics": {"accuracy": 0.7 + lead},
        "predicted": {"equivalent": predicted, "not_equivalent": 408 - predicted},
        "constant": {"accuracy": 0.68},
    }
    return {
        "cell": f"prune-minilm-mrpc-{seed}-one-importance-{score}",
        "experiment": "E2",
        "algorithm": "one-importance",
        "score": score,
        "n": 408,
        "metric": "accuracy",
        "full": {"accuracy": 0.8},
        "steps": [{**step, "sparsity": a["sparsity"]} for a in ahead],
        "ahead_in": "balanced accuracy",
        "ahead": ahead,
    }


def drawn(seed: int, *accuracies: float) -> dict[str, Any]:
    """The cell of the random orders of one model."""
    cell = pruned("random", seed, 0.0, 0.0)
    steps = [{**s, "metrics": {"accuracy": a}, "seed": i} for s in cell["steps"] for i, a in enumerate(accuracies)]
    return {**cell, "steps": steps}


def text(study: ModuleType, *found: dict[str, Any]) -> str:
    """The page, with the names of its links alone."""
    said = study.page({cell["cell"]: cell for cell in found}, study.cells())
    return re.sub(r"\[([^]]*)\]\(study/[^)]*\.json\)", r"\1", said)


def test_every_cell_is_a_link_away(study: ModuleType) -> None:
    page = study.TARGET.read_text(encoding="utf-8")
    twins = [f"twins/{name}" for name, cell in study.read(study.TWINS).items() if "steps" in cell]
    assert sorted(set(re.findall(r"\(study/([^)]*)\.json\)", page))) == sorted([*study.read(), *twins])


def test_the_document_is_what_its_files_say(study: ModuleType) -> None:
    assert study.TARGET.read_text(encoding="utf-8") == study.page(study.read(), study.cells(), study.read(study.TWINS))


def test_a_lead_is_told_where_models_orders_and_examples_allow_it(study: ModuleType) -> None:
    models = [trained(seed) for seed in range(3)]
    even = [drawn(seed, 0.69, 0.70, 0.71) for seed in range(3)]
    sure = [pruned("taylor", seed, 0.1 + 0.01 * seed, 0.03) for seed in range(3)]
    said = text(study, *models, *even, *sure)
    assert "`taylor`: ahead of random with 30%, 50%, 70%, 90% off." in said
    assert "| One importance, `taylor` | 0 1 2 | 0.810 | 0.810 | 0.810 | 0.810 |" in said
    assert "one class for all answers: 0.680" in said
    apart = [pruned("taylor", 0, 0.1, 0.03), pruned("taylor", 1, 0.3, 0.03), pruned("taylor", 2, 0.02, 0.03)]
    orders = [drawn(seed, 0.5, 0.7, 0.9) for seed in range(3)]
    examples = [pruned("taylor", seed, 0.1 + 0.01 * seed, 0.12) for seed in range(3)]
    for unsure in ([*even, *apart], [*orders, *sure], [*even, *examples]):
        assert "`taylor`: not told apart from random at any step." in text(study, *models, *unsure)
    assert "of random with" not in text(study, *models, *sure)  # the random orders are not there


def test_scores_are_set_against_the_thesiss_on_the_same_models(study: ModuleType) -> None:
    models = [trained(seed) for seed in range(3)]

    def cells(score: str, *values: float) -> list[dict[str, Any]]:
        return [{**drawn(seed, value), "cell": f"prune-minilm-mrpc-{seed}-one-importance-{score}", "score": score}
                for seed, value in enumerate(values)]  # fmt: skip

    random = [drawn(seed, 0.69, 0.70, 0.71) for seed in range(3)]
    base = cells("thesis-2024", 0.70, 0.72, 0.69)
    said = text(study, *models, *random, *base, *cells("gates", 0.80, 0.81, 0.79))
    assert "- `gates`: ahead of it with 30%, 50%, 70%, 90% off." in said
    said = text(study, *models, *random, *base, *cells("gates", 0.80, 0.60, 0.79))
    assert "- `gates`: not told apart from it at any step." in said
    other = [{**cell, "digest": "b"} for cell in cells("gates", 0.80, 0.81, 0.79)]  # trained again
    assert "Ahead of the thesis's score:" not in text(study, *models, *random, *base, *other)


def test_balanced_accuracy_follows_from_the_accuracy_and_the_counts(study: ModuleType) -> None:
    from findings_leads import DEV, balanced

    gold = np.array([0] * DEV["mrpc"]["equivalent"] + [1] * DEV["mrpc"]["not_equivalent"])
    answers = np.random.default_rng(0).permutation(gold) | (np.arange(408) % 5 == 0)
    counts = dict(zip(DEV["mrpc"], np.bincount(answers).tolist(), strict=True))
    step = {"metrics": {"accuracy": float((answers == gold).mean())}, "predicted": counts}
    expected = np.mean([(answers[gold == c] == c).mean() for c in (0, 1)])
    assert balanced(step, "mrpc") == pytest.approx(expected)


def test_counts_of_the_dev_splits_are_those_of_the_files(study: ModuleType) -> None:
    import headviz
    from findings_leads import DEV
    from findings_models import FOLDERS

    files = BENCH.parents[1] / "shared" / "data" / "glue"
    if not files.is_dir():
        pytest.skip("the task files are not here")
    for task, counts in DEV.items():
        data = headviz.load_task(task, split="dev", data=str(files / FOLDERS[task]))
        assert dict(data.class_counts()) == counts


def test_intervals_over_few_orders_hold_where_resampling_does_not(study: ModuleType) -> None:
    """Orders that differ by ten points: nominal 95 %."""
    import study_cells
    from findings_leads import simulate

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(study_cells, "RESAMPLES", 200)
        resampled, here = simulate(10.0, draws=150)
    assert resampled < 0.92 < here


def test_answers_of_one_class_are_marked(study: ModuleType) -> None:
    assert "(1 of 1 one class)" in text(study, trained(0), pruned("taylor", 0, 0.0, 0.1, predicted=404))
    assert "one class)" not in text(study, trained(0), pruned("taylor", 0, 0.0, 0.1, predicted=200))


def test_matthews_of_one_class_counts_as_that_class(study: ModuleType) -> None:
    """Undefined values were left out, so that a network that had collapsed in one seed gained by it."""
    step = {"metrics": {"matthews": 0.3}, "constant": {"matthews": 0.0}, "predicted": {"acceptable": 1043}}
    lost = {**step, "metrics": {"matthews": None}}
    cells = [
        {**pruned("taylor", seed, 0.0, 0.1), "cell": f"prune-minilm-cola-{seed}-one-importance-taylor"}
        | {"metric": "matthews", "full": {"matthews": 0.3}}
        | {"steps": [{**one, "sparsity": s} for s in (0.3, 0.5, 0.7, 0.9)]}
        for seed, one in enumerate((step, lost))
    ]
    models = [{**trained(s), "cell": f"train-minilm-cola-{s}", "metrics": {"matthews": 0.3}} for s in (0, 1)]
    assert "| 0.150 (2 of 2 one class) |" in text(study, *models, *cells)
    again = [
        {**retrained(seed, 0.3, 0.3), "cell": f"retrain-minilm-cola-{seed}-isp-taylor", "metric": "matthews"}
        | {"full": {"matthews": 0.3}, "steps": [{**one, "sparsity": 0.3}]}
        for seed, one in enumerate((step, lost, step))
    ]
    assert "| 0.200 ± 0.173 * (3 of 3 one class) |" in text(study, *again)


def test_a_model_that_was_trained_once_more_is_marked(study: ModuleType) -> None:
    cell = {**pruned("taylor", 0, 0.1, 0.03), "digest": "b", "full": {"accuracy": 0.79}}
    assert "All heads, by seed: 0.790 (0′);" in text(study, {**trained(0), "digest": "a"}, cell)
    assert "`taylor` | 0′ |" in text(study, {**trained(0), "digest": "a"}, cell)
    assert "`taylor` | 0 |" in text(study, {**trained(0), "digest": "b"}, cell)
    third = {**pruned("gates", 0, 0.1, 0.03), "digest": "c", "full": {"accuracy": 0.77}}
    assert "All heads, by seed: 0.770 (0′), 0.790 (0′′);" in text(study, {**trained(0), "digest": "a"}, cell, third)


def test_orders_are_compared_with_random_ones_of_the_same_weights(study: ModuleType) -> None:
    models = [{**trained(seed), "digest": f"a{seed}"} for seed in range(3)]
    own = [{**pruned("taylor", seed, 0.1 + 0.01 * seed, 0.03), "digest": f"b{seed}"} for seed in range(3)]
    random = [drawn(seed, 0.69, 0.70, 0.71) for seed in range(3)]
    here = [{**cell, "digest": f"a{seed}"} for seed, cell in enumerate(random)]
    there = [{**cell, "digest": f"b{seed}"} for seed, cell in enumerate(random)]
    found = {c["cell"]: c for c in (*models, *own, *here)}
    assert "Ahead of 3 random orders:" not in study.page(found, study.cells())
    for cell in here + there:
        cell["steps"] = [{**s, "mask": "f", "intervals": {"accuracy": [0.6, 0.8]}} for s in cell["steps"]]
    said = study.page(found, study.cells(), {f"{c['cell']}-twin": c for c in there})
    assert "| One importance, `taylor` | 0′ 1′ 2′ | +11.0" in said


def test_over_the_range_steps_are_averaged_before_models(study: ModuleType) -> None:
    models = [trained(seed) for seed in range(3)]
    random = [drawn(seed, 0.69, 0.70, 0.71) for seed in range(3)]
    own = [pruned("taylor", seed, 0.1 + 0.01 * seed, 0.03) for seed in range(3)]
    anew = [
        {**pruned("taylor", seed, 0.13 + 0.01 * seed, 0.03), "algorithm": "iterative"}
        | {"cell": f"prune-minilm-mrpc-{seed}-iterative-taylor"}
        for seed in range(3)
    ]
    also = [{**c, "algorithm": "iterative", "cell": c["cell"].replace("one-importance", "iterative")} for c in random]
    said = text(study, *models, *random, *own, *anew, *also)
    part = said.split("over the whole range:")[1].split("\n\n")[1]
    ((mean, low, high), (again, *_), (added, *_)) = (
        [float(v.replace("−", "-")) for v in re.findall(r"[+−][\d.]+", column)]
        for column in part.splitlines()[-1].split("|")[2:5]
    )
    assert (mean, again, added) == (11.0, 14.0, 3.0)
    assert low < 11 - 2.4 < 11 + 2.4 < high  # wider than over the models alone
    assert "over the whole range:" not in text(study, *models[:2], *random[:2], *own[:2])


def test_no_order_is_judged_on_a_model_that_knows_nothing(study: ModuleType) -> None:
    said = text(study, trained(0), {**pruned("taylor", 0, 0.1, 0.05), "full": {"accuracy": 0.68}})
    assert "No model is better than one class for all" in said
    assert "ahead of random" not in said


def heads_one_by_one(low: float | None) -> dict[str, Any]:
    layer = {"layer": 0, "head": 1, "delta": 0.0, "low": low, "high": 0.01}
    return {
        "cell": "michel-minilm-mrpc-0",
        "experiment": "M",
        "heads": 72,
        "cost": [[0.1] + [0.02] * 5, [-0.05] * 2 + [0.001] * 3 + [None], *([0.0] * 6 for _ in range(10))],
        "p_value": [[1e-6] + [0.01] * 5, [1e-5] * 2 + [0.9] * 3 + [None], *([1.0] * 6 for _ in range(10))],
        "one head is left": [layer, {**layer, "layer": 1, "low": -0.5}],
        "spared": [{"updates": 69, "spared": None}, {"updates": None, "spared": 0.3}],
    }


def test_one_head_is_enough_only_where_a_loss_is_excluded(study: ModuleType) -> None:
    assert "| 72 | 6 | 1 | 2 | 1 of 2 |" in text(study, heads_one_by_one(-0.019))
    assert "| 72 | 6 | 1 | 2 | 0 of 2 |" in text(study, heads_one_by_one(-0.021))
    assert "| 72 | 6 | 1 | 2 | 0 of 2 |" in text(study, heads_one_by_one(None))  # a metric that is undefined
    assert "| 69: – | end: 30% |" in text(study, heads_one_by_one(-0.021))


def retrained(seed: int, full: float, kept: float, lead: float = 0.1, predicted: int = 60) -> dict[str, Any]:
    """A cell of one seed: a network with 30 % of the heads off, trained."""
    less = kept - full
    return {
        "cell": f"retrain-minilm-mrpc-{seed}-isp-taylor", "experiment": "E3", "algorithm": "isp", "score": "taylor",
        "seed": seed, "metric": "accuracy", "n": 408, "full": {"accuracy": full},
        "steps": [{"sparsity": 0.3, "metrics": {"accuracy": kept}, "constant": {"accuracy": 0.68},
                   "predicted": {"yes": predicted, "no": 100 - predicted},
                   "deltas": {"accuracy": {"delta": less, "low": less - 0.03, "high": less + 0.03}}}],
        "ahead": [{"sparsity": 0.3, "mean": lead, "low": lead - 0.05, "high": lead + 0.05}],
    }  # fmt: skip


def test_a_ticket_is_marked_and_its_chance_of_being_false_stands_beside(study: ModuleType) -> None:
    won = [retrained(0, 0.80, 0.79), retrained(1, 0.81, 0.81), retrained(2, 0.82, 0.83)]  # .81 ≤ .81 + sd
    said = text(study, *won)
    assert "With all heads: 0.810 ± 0.010." in said
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
    from findings_papers import LAST, ROUND, shares
    from headviz.pruning import PruningPlan
    from headviz.pruning.sizes import listed, remaining

    assert remaining(72, ROUND, LAST, last="full") == listed(72, shares("minilm")) == [22, 37, 47, 55, 60, 64]
    plan = {"model": "m", "base": "b", "task": "mrpc", "retrain_full": False}
    PruningPlan(algorithm="isp", step=ROUND, until=LAST, last_step="full", **plan)
    PruningPlan(algorithm="igspf", sparsities=shares("minilm"), **plan)


def test_every_cell_comes_after_what_it_needs(study: ModuleType) -> None:
    """A call that does all cells in order never makes one twice; what a cell needs is planned."""
    planned = study.cells()
    place = {cell.name: at for at, cell in enumerate(planned)}
    assert len(place) == len(planned)
    late = [(c.name, need) for c in planned for need in c.needs if place[need] > place[c.name]]
    assert late == []


def test_costs_on_two_halves_stand_beside_the_published_correlation(study: ModuleType) -> None:
    cell = {
        "cell": "cross-minilm-mnli-0", "experiment": "X", "n": 2000, "full": [0.7, 0.71], "heads": 72,
        "r": 0.4, "low": 0.19, "high": 0.58,
    }  # fmt: skip
    said = text(study, cell)
    assert "| 1,000 each | 0.700 and 0.710 | 72 | +0.400 [+0.190, +0.580] |" in said
    assert "r = 0.68." in said
    assert "| 72 | – |" in text(study, {**cell, "r": None})


def agreement(seed: int, change: float) -> dict[str, Any]:
    before, after = {"signed": 0.0, "absolute": 0.1}, {"signed": change, "absolute": 0.1 + change}
    return {"cell": f"agree-minilm-mrpc-{seed}", "experiment": "E1", "before": before, "after": after}


def test_no_direction_from_one_seed_or_from_seeds_that_disagree(study: ModuleType) -> None:
    assert "which is no evidence of a direction" in text(study, agreement(0, 0.3))
    assert "no direction is told apart" in text(study, agreement(0, 0.3), agreement(1, -0.2), agreement(2, 0.1))
    assert "rises" in text(study, agreement(0, 0.30), agreement(1, 0.31), agreement(2, 0.29))
    assert "falls" in text(study, agreement(0, -0.30), agreement(1, -0.31), agreement(2, -0.29))


def test_heads_in_the_thesiss_band_are_counted_before_and_after(study: ModuleType) -> None:
    grids = {"before": [[0.2, 0.39, 0.4, None], [-0.3, 0.0, 0.1, 0.0]], "after": [[0.0, 0.1, 0.3, None], [0.0] * 4]}
    said = text(study, {**agreement(0, 0.1), "grids": grids})
    assert "minilm on mrpc 28.6 %, then 14.3 %. Published for fine-tuned BERT-base" in said
    assert "SST-2 4.86 %" in said


def test_what_is_missing_is_listed(study: ModuleType) -> None:
    said = text(study, trained(0))
    assert f"{len(study.cells()) - 1} cells" in said
    assert "- `train-minilm-mrpc-0`" not in said


def given(source: str, target: str, full: float, random_q: float | None, value: float = 0.7) -> dict[str, Any]:
    """A mask on the model of a task, as a transfer tells it."""
    from headviz.pruning.tickets.transfer_matrix import Entry

    return Entry(
        source,
        target,
        sparsity=0.39,
        metric="accuracy",
        value=value,
        sd=None,
        count=1,
        full=full,
        constant=0.6,
        kept=0.5,
        change=full - 0.7,
        low=-0.05,
        high=0.01,
        random=0.66,
        random_low=0.63,
        random_high=0.69,
        random_q=random_q,
        random_count=20,
    ).to_dict()


def shared(*entries: dict[str, Any]) -> dict[str, Any]:
    shares = [{"off": 0.3, "entries": list(entries)}]
    return {"cell": "transfer-minilm-all-0", "experiment": "E5", "score": "taylor", "random": 20, "shares": shares}


def test_a_mask_has_transferred_where_random_ones_have_not(study: ModuleType) -> None:
    own, other = given("mrpc", "mrpc", 0.81, 0.01), given("mrpc", "rte", 0.72, 0.04)
    said = text(study, trained(0), shared(own, other))
    assert "### minilm, 39% of the heads off" in said
    assert "Of 1 masks given to another task, better than random masks: mrpc → rte." in said
    assert "| +11.0 [−5.0, +1.0] | 0.660 [0.630, 0.690] | 0.01 |" in said
    none = "Of 1 masks given to another task, none is told apart from random masks."
    assert none in text(study, trained(0), shared(own, given("mrpc", "rte", 0.72, 0.4)))
    worse = given("mrpc", "rte", 0.72, 0.01, value=0.5)  # told apart from random masks, because it is worse
    assert none in text(study, trained(0), shared(own, worse))


def test_no_transfer_is_told_where_even_all_heads_would_not_stand_out(study: ModuleType) -> None:
    said = text(study, trained(0), shared(given("mrpc", "rte", 0.68, 0.01), given("rte", "wnli", 0.6, 0.01)))
    assert "With all its heads, the model of rte would not be told apart from random masks, so no transfer" in said
    assert "the model of wnli is no better than one class" in said
    assert "masks given to another task" not in said


def test_the_board_names_the_best_and_what_is_no_better_than_chance(study: ModuleType) -> None:
    from headviz.analyses.grades import Grade, Grades

    def grade(score: str, area: float, lead: float, behind: float | None) -> Grade:
        numbers = dict.fromkeys(("area_top", "cpr", "cmd", "agreement", "stability", "seconds"), 0.5)
        ends = {"area_low": area - 0.01, "area_high": area + 0.01, "lead_low": lead - 0.02, "lead_high": lead + 0.02}
        back = {"behind": behind, "behind_low": behind and behind - 0.02, "behind_high": behind and behind + 0.02}
        return Grade(score, None, area, lead=lead, shapley=None, precision=None, **numbers, **ends, **back)

    rows = (
        grade("fisher", 0.9, 0.2, None),
        grade("taylor", 0.89, 0.19, 0.01),
        grade("magnitude", 0.7, 0.01, 0.2),
        grade("random", 0.69, 0.0, 0.2),
        grade("ablation", 0.6, -0.1, 0.3),
    )
    cell = {
        "cell": "board-minilm-mrpc-0",
        "experiment": "B",
        "n": 200,
        "grades": Grades(rows, "fisher", 0, 200, "mrpc").to_dict(),
    }
    said = text(study, trained(0), cell)
    assert "The largest area has `fisher`; not told apart from it: `taylor`." in said
    assert "Not told apart from random orders: `magnitude`. Worse than random orders: `ablation`." in said
    assert "| `random` | 0.690 [0.680, 0.700] | – |" in said


def test_one_class_for_all_is_not_ahead_of_a_model_that_tells_some_apart(study: ModuleType) -> None:
    from findings_orders import lead

    gold = np.array([0] * 70 + [1] * 30)
    constant = gold == 0  # accuracy .70, and .50 in the mean of the classes
    knows = np.array([True] * 42 + [False] * 28 + [True] * 24 + [False] * 6)  # accuracy .66, classes .60 and .80
    assert constant.mean() > knows.mean()
    found = lead(knows, np.stack([constant] * 3), gold, np.random.default_rng(0))
    assert found["mean"] == pytest.approx(0.2)
    assert found["low"] > 0
    even = lead(knows, np.stack([knows, constant]), gold, np.random.default_rng(0))
    assert even["mean"] == pytest.approx(0.1)


def test_a_cell_done_again_is_set_beside_its_first_value(study: ModuleType) -> None:
    def once(value: float, mask: str, digest: str) -> dict[str, Any]:
        cell = pruned("taylor", 0, 0.1, 0.05)
        steps = [
            {**s, "mask": mask, "metrics": {"accuracy": value}, "intervals": {"accuracy": [0.7, 0.8]}}
            for s in cell["steps"]
        ]
        return {**cell, "steps": steps, "digest": digest}

    found = {c["cell"]: c for c in (trained(0), once(0.81, "f", "b"))}
    first = once(0.75, "f", "a")
    said = study.page(found, study.cells(), {first["cell"]: first})
    assert "| other | 0.00 | 4 of 4 | 6.00 | 0 of 4 |" in said
    assert "Of 1 second computations, 0 gave the same values (0). Of the 4 values of the rest, 0 lie inside." in said
    first = once(0.79, "e", "b")
    found[first["cell"]] = once(0.8, "f", "b")
    assert "| the same | 0.00 | 0 of 4 | 1.00 | 4 of 4 |" in study.page(found, study.cells(), {first["cell"]: first})
    assert "## Done again" not in study.page(found, study.cells(), {})


def test_leads_of_another_measure_are_not_shown(study: ModuleType) -> None:
    old, random = pruned("taylor", 0, 0.05, 0.01), pruned("random", 0, 0.0, 0.01)
    del old["ahead_in"]
    assert "ahead of random" not in text(study, trained(0), random, old)


def test_leads_over_another_number_of_orders_are_not_shown(study: ModuleType) -> None:
    ten, many = {**pruned("taylor", 0, 0.1, 0.03), "orders": 10}, [0.69 + 0.002 * at for at in range(10)]
    random = {**drawn(0, *many), "orders": 10}
    assert "Ahead of 10 random orders:" in text(study, trained(0), random, ten)
    assert not re.search(r"Ahead of \d", text(study, trained(0), random, pruned("taylor", 0, 0.1, 0.03)))


def test_gates_are_ahead_only_where_the_interval_excludes_zero(study: ModuleType) -> None:
    def lead(low: float, high: float) -> dict[str, Any]:
        ends = {"mean": (low + high) / 2, "low": low, "high": high}
        return {"sparsity": 0.5, **ends, "accuracy": ends}

    leads = [lead(0.01, 0.03), lead(-0.01, 0.03), lead(-0.03, -0.01)]
    steps = [{"metrics": {"accuracy": 0.7}}] * 3
    cell = {
        "cell": "gates-minilm-mrpc-0", "experiment": "G", "examples": 2000, "against": "iterative taylor", "n": 408,
        "metric": "accuracy", "ahead": {"gates": leads}, "orders": {"gates": steps}, "base": steps,
    }  # fmt: skip
    said = text(study, trained(0), cell)
    assert "`gates` is ahead of iterative taylor at 1 of 3 sparsities, behind at 1; at 1 they are" in said
    assert "| 50% | 0.700 | 0.700 | +2.0 [+1.0, +3.0] | +2.0 [+1.0, +3.0] |" in said


def glue(folder: Path) -> Path:
    """Pairs of made-up words in the files of MRPC and MNLI; equal first words decide."""
    import random

    draw = random.Random(0)
    words = ["cat", "dog", "sun", "sea", "red", "big"]
    for task, header, names in (
        ("MRPC", "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String", "01"),
        ("MNLI", "index\tsentence1\tsentence2\tgold_label", ("neutral", "entailment", "contradiction")),
    ):
        (folder / task).mkdir(parents=True)
        for split, count in (("train", 64), ("dev" if task == "MRPC" else "dev_matched", 48)):
            lines = [header]
            for i in range(count):
                first, second = (" ".join(draw.choices(words, k=4)) for _ in range(2))
                label = names[i % len(names)]
                row = [label, str(i), str(i), first, second] if task == "MRPC" else [str(i), first, second, label]
                lines.append("\t".join(row))
            (folder / task / f"{split}.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


@pytest.mark.slow
def test_cells_are_computed_and_a_second_call_has_nothing_left(
    study: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Kinds of cells that train, remove and compare, on an encoder of MiniLM's shape with random weights."""
    import findings
    import findings_leads
    import findings_models
    import findings_orders
    import findings_papers
    import headviz
    from support.tiny import tiny_folder

    for module in (findings_orders, findings_papers):
        monkeypatch.setattr(module, "SAMPLES", 8)
    monkeypatch.setitem(findings_leads.DEV, "mrpc", {"equivalent": 24, "not_equivalent": 24})
    encoder = tiny_folder(tmp_path / "encoder", layers=6, heads=12, hidden=24)
    only = ("prune-minilm-mrpc-0-one-importance-taylor", "retrain-minilm-mrpc-0-isp-taylor", "cross-minilm-mnli")
    call = ["--encoder", f"minilm={encoder}", "--data", str(glue(tmp_path / "glue")), "--work", str(tmp_path / "work")]
    call += ["--out", str(tmp_path / "cells"), *(part for name in only for part in ("--only", name))]
    monkeypatch.setattr(sys, "argv", ["findings.py", *call])
    findings.main()
    found = study.read(tmp_path / "cells")
    assert {c["experiment"] for c in found.values()} == {"training", "E2", "E3", "X"}
    steps = found["retrain-minilm-mrpc-0-isp-taylor"]["steps"]
    assert [s["heads_off"] for s in steps] == [22, 37, 47, 55, 60, 64]
    # θ* is the full model of the retrained ones: the same training, whenever checkpoints are written
    data = headviz.load_task("mrpc", split="train", data=str(tmp_path / "glue" / "MRPC"))
    fresh = headviz.load(str(encoder), fresh_labels=data.label_names, seed=0, device="cpu")
    again = findings_models.fine_tune(fresh, data, findings_models.recipe(), 0).classifier
    assert again.digest == found["train-minilm-mrpc-0"]["digest"]
    said = study.page(found, study.cells())
    assert "ISP, IGSPP, `taylor`" in said
    assert "′](study/" not in said  # one machine, one set of weights
    capsys.readouterr()
    findings.main()
    assert capsys.readouterr().out == ""
    # what another process is at is left to it
    gone = tmp_path / "cells" / f"{only[0]}.json"
    gone.unlink()
    monkeypatch.setattr(sys, "argv", ["findings.py", *call, "--minutes", "0.03"])
    with FileLock(tmp_path / "work" / "taken" / only[0]):
        findings.main()
    assert not gone.exists()
    findings.main()
    assert gone.exists()
