"""Figures of docs/findings.md about orders that are measured anew at each step, on MPNet, are those of the cells."""

from __future__ import annotations

from types import ModuleType

import numpy as np

from support.findings import ends, findings, plain, range_leads, table

ORDERS = ("gates", "shapley", "ablation", "thesis-2024-code")
Lead = tuple[float, float, float]


def test_the_finding_about_orders_measured_anew_is_the_cells(study: ModuleType) -> None:
    from findings_leads import balanced, lead
    from findings_pruned_page import leads_of, reached
    from findings_tables import steps_at, whole

    cells, said = study.read(), findings(study)
    random = study.read(study.TWINS)["prune-mpnet-mrpc-0-iterative-random-bae01e20"]
    own = {score: cells[f"prune-mpnet-mrpc-0-iterative-{score}"] for score in ORDERS}
    assert {c["digest"] for c in own.values()} == {random["digest"]}
    assert len({s["seed"] for s in random["steps"]}) == 10
    assert f"A third training, with {plain(random['full']['accuracy'])} again." in said

    def leads(score: str, level: float = 0.95) -> dict[int, Lead]:
        cell, found = own[score], {}
        for at in cell["ahead"]:
            orders = [balanced(s, "mrpc") for s in steps_at([random], at["sparsity"])]
            found[round(100 * at["sparsity"])] = lead([at], np.array([orders]), cell["n"], level)
        return found

    def told(score: str, level: float = 0.95) -> tuple[list[int], list[int]]:
        """Ahead and behind."""
        found = leads(score, level)
        return [x for x, (_, low, _) in found.items() if low > 0], [x for x, (*_, high) in found.items() if high < 0]

    gates = leads("gates")
    page = leads_of([{**own["gates"], "of random": random}], "mrpc", reached([own["gates"]]))
    assert [*gates.values()] == page
    ahead = [100 * gates[share][0] for share in told("gates")[0]]
    expected = {
        "gates": f"ahead from 29 to 88 % off, by {min(ahead):.1f} to {max(ahead):.1f} points",
        "shapley": "ahead with 39, 78, 88 and 97 % off; behind with 29 %",
        "ablation": "ahead with 68 and 78 % off; behind with 19, 39 and 58 %",
        "thesis-2024-code": "ahead with 29 % off; behind with 49, 58 and 68 %",
    }
    assert {score: told(score) for score in ORDERS} == {
        "gates": ([29, 39, 49, 58, 68, 78, 88], []),
        "shapley": ([39, 78, 88, 97], [29]),
        "ablation": ([68, 78], [19, 39, 58]),
        "thesis-2024-code": ([29], [49, 58, 68]),
    }
    share = 84 / 144

    def right(score: str, of: float) -> float:
        (step,) = steps_at([own[score]], of)
        return float(step["metrics"]["accuracy"])

    written = table(study, "order, measured anew | right | told apart from random orders")
    values = [s["metrics"]["accuracy"] for s in steps_at([random], share)]
    assert [row[1:] for row in written[:-1]] == [[plain(right(s, share)), expected[s]] for s in ORDERS]
    assert written[-1][1] == f"{plain(float(np.mean(values)))} ({plain(min(values))} to {plain(max(values))})"
    late = right("gates", 126 / 144)
    floor = own["gates"]["steps"][0]["constant"]["accuracy"]
    assert late < floor
    assert f"With 88 % off gates have {plain(late)} right, less than one class for all, {plain(floor)};" in said
    # over all steps at once
    at_once = {score: told(score, 1 - 0.05 / 11) for score in ORDERS}
    assert at_once == {
        "gates": ([49, 58, 68, 78, 88], []),
        "shapley": ([78], []),
        "ablation": ([], [19, 58]),
        "thesis-2024-code": ([], [58]),
    }
    assert "On the third training gates measured anew stay ahead from 49 to 88 %, `shapley` with 78 %;" in said
    assert "the author's code stays behind with 58 %, ablations with 19 and 58 %." in said
    ahead_of = {score: range_leads([cell], [random], lambda s: balanced(s, "mrpc"))[0] for score, cell in own.items()}
    once, drawn = (cells[f"prune-mpnet-mrpc-0-one-importance-{score}"] for score in ("gates", "random"))
    first = ends(*range_leads([once], [drawn], lambda s: balanced(s, "mrpc"))[0]).replace(" [", " points [")
    mean, low, high = ahead_of["ablation"]
    assert (
        f"gates are ahead by {first} on the first training, scored once, and by {ends(*ahead_of['gates'])} on the "
        f"third, measured anew; `shapley` by {ends(*ahead_of['shapley'])}; ablations are behind by "
        f"{ends(-mean, -high, -low)}, and the author's code is not told apart "
        f"({ends(*ahead_of['thesis-2024-code']).replace('-', '−')})."
    ) in said
    assert [score for score in ORDERS if not whole(own[score])] == ["shapley"]
    assert round(100 * own["shapley"]["ahead"][-1]["sparsity"]) == 97
    assert once["digest"] != own["gates"]["digest"]
    assert "`gates` at seven either way, on two trainings. Neither pair was compared." in said
