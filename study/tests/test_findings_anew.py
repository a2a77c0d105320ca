"""Figures of docs/findings.md about orders that are measured anew at each step, on MPNet, are those of the cells."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np

from study.tests.findings import ends, findings, plain, range_leads, table

ORDERS = ("gates", "shapley", "ablation", "thesis-2024-code")
Lead = tuple[float, float, float]


def _masks(cell: dict[str, Any]) -> dict[tuple[int, float], str]:
    return {(s["seed"], s["sparsity"]): s["mask"] for s in cell["steps"]}


def _inside(own: dict[str, Any], other: dict[str, Any]) -> list[bool]:
    from study.again import _inside

    return [_inside(a, b, own["metric"]) for a, b in zip(own["steps"], other["steps"], strict=True)]


def test_the_finding_about_orders_measured_anew_is_the_cells(study: ModuleType) -> None:
    from study.leads import balanced, lead
    from study.page_pruned import leads_of, reached
    from study.tables import steps_at, whole

    cells, said = study.read(), findings(study)
    random = study.read(study.TWINS)["prune-mpnet-mrpc-0-iterative-random-bae01e20"]
    own = {score: cells[f"prune-mpnet-mrpc-0-iterative-{score}"] for score in ORDERS}
    assert {c["digest"] for c in own.values()} == {random["digest"]}
    assert len({s["seed"] for s in random["steps"]}) == 10
    assert f"B and C {plain(random['full']['accuracy'])}." in said
    once = {score: cells[f"prune-mpnet-mrpc-0-one-importance-{score}"] for score in ("gates", "taylor", "random")}
    assert _masks(once["random"]) == _masks(random)  # the same orders
    twins = [t for t in study.read(study.TWINS).values() if t["cell"] == random["cell"]]
    trainings = {
        c["digest"] for c in (*study.read(study.TWINS).values(), *cells.values()) if "mpnet-mrpc-0" in c["cell"]
    }
    assert len(trainings) == 6
    first = cells[random["cell"]]
    inside = {t["digest"]: sum(_inside(first, t)) for t in twins}
    of_b = inside[cells["prune-mpnet-mrpc-0-iterative-thesis-2024"]["digest"]]
    told = (
        f"of {len(_inside(first, random))} values of random orders on A, {of_b} and {inside[random['digest']]} lie in"
    )
    assert told in said

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
    low = [right("gates", 126 / 144), right("shapley", 42 / 144), right("shapley", 98 / 144)]
    floor = own["gates"]["steps"][0]["constant"]["accuracy"]
    assert max(low) < floor
    words = "gates have {} with 88 % off, and `shapley` {} with 29 and {} with 68 %; one class for all has {}."
    assert words.format(*map(plain, (*low, floor))) in said
    most = [max(steps_at([own[s]], share)[0]["predicted"].values()) for s in ("thesis-2024-code", "ablation")]
    assert "gives one class for {} of 408 answers, ablations for {}.".format(*most) in said
    # over all steps at once
    at_once = {score: told(score, 1 - 0.05 / 11) for score in ORDERS}
    assert at_once == {
        "gates": ([49, 58, 68, 78, 88], []),
        "shapley": ([78], []),
        "ablation": ([], [19, 58]),
        "thesis-2024-code": ([], [58]),
    }
    assert (
        "gates stay ahead from 49 to 88 % on A and on C, `taylor` on A from 68 to 88 %, `shapley` on C with 78 %."
        in said
    )
    assert "it stays behind on C with 58 %, as ablations do with 19 and 58 %." in said

    def range_of(cell: dict[str, Any], beside: dict[str, Any]) -> Lead:
        return range_leads([cell], [beside], lambda s: balanced(s, "mrpc"))[0]

    scored_once = ends(*range_of(once["gates"], once["random"])).replace(" [", " points [")
    anew = ends(*range_of(own["gates"], random))
    assert f"by {scored_once} on A, measured anew by {anew} on C." in said
    again = [cells[f"prune-mpnet-mrpc-0-iterative-{score}"] for score in ("taylor", "random")]
    pair = range_of(once["taylor"], once["random"])[0], range_of(*again)[0]
    assert again[0]["digest"] == once["taylor"]["digest"]
    assert "`taylor` on A is ahead by {:.1f} scored once and by {:.1f} measured anew.".format(*pair) in said
    assert "random orders by {1:.1f} points over the whole range, scored once by {0:.1f};".format(*pair) in said
    wnli = [cells[f"prune-mpnet-wnli-0-iterative-{score}"] for score in ("thesis-2024-code", "gates")]
    values = [plain(c["full"]["accuracy"]) for c in wnli]
    assert "On WNLI it has {}, in another training {}, less than one class,".format(*values) in said
    assert [score for score in ORDERS if not whole(own[score])] == ["shapley"]
    assert round(100 * own["shapley"]["ahead"][-1]["sparsity"]) == 97
