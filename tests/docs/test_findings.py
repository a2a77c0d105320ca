"""Figures of docs/findings.md are those of the study's cells and pages."""

from __future__ import annotations

import re
from types import ModuleType
from typing import Any

import numpy as np

NAMES = ("SST-2", "MRPC", "CoLA")


def table(study: ModuleType, first: str) -> list[list[str]]:
    """The rows of the one table of the page whose header begins so, without links to cells."""
    text = (study.PAGE.parent / "findings.md").read_text(encoding="utf-8")
    text = re.sub(r" \(\[cell\]\(study/[^)]*\.json\)\)", "", text)
    (found,) = re.findall(rf"^\| {re.escape(first)} \|.*\n\|[-|]+\|\n((?:\|.*\n)+)", text, re.M)
    return [[part.strip() for part in line.strip("|").split("|")] for line in found.splitlines()]


def findings(study: ModuleType) -> str:
    """The page of findings, without its links to cells."""
    said = " ".join((study.PAGE.parent / "findings.md").read_text(encoding="utf-8").split())
    return re.sub(r" \(\[cell\]\(study/[^)]*\.json\)\)", "", said)


def test_the_finding_about_scores_is_the_boards(study: ModuleType) -> None:
    from findings_shared_page import behind, most
    from headviz.analyses.board import recorded

    cells = {name: cell for name, cell in study.read().items() if cell["experiment"] == "B"}
    of = behind(list(cells.values()))
    said = findings(study)
    demo, mrpc, sst2, mpnet = boards = [recorded().grades.to_dict(), *(cell["grades"] for cell in cells.values())]
    assert [*cells] == ["board-minilm-mrpc-0", "board-minilm-sst2-0", "board-mpnet-mrpc-0"]
    assert [board["best"] for board in (demo, sst2, mrpc, mpnet)] == ["attattr-max", "taylor", "gates", "gates"]
    assert "The best of each board is `attattr-max`, `taylor`, `gates` and `gates`." in said
    assert [name for name in of if name != "random"][:4] == ["gates", "gates-exact", "taylor", "gim"]
    assert len(of) - ("random" in of) == 14

    def grade(board: dict[str, Any], score: str) -> dict[str, Any]:
        return next(g for g in board["scores"] if g["score"] == score)

    names = {f"`{name}`": name for name in of} | {"random orders": "random"}
    written = table(study, "score | demo | MiniLM, SST-2 | MiniLM, MRPC | MPNet, MRPC")
    for row, *values in written:
        known = [grade(board, names[row])["behind"] for board in (demo, sst2, mrpc, mpnet)]
        assert values == ["best" if value is None else f"{value:.3f}" for value in known]
    assert [row for row, *_ in written][-2:] == ["`conductance-spearman`", "random orders"]
    assert f"Gates are at most {most(of['gates']):.3f} behind" in said
    tops = [f"{grade(board, 'gates')['behind_high']:.3f}" for board in (demo, sst2)]
    assert "(95 %: up to {} on the demo, {} on MiniLM and SST-2)".format(*tops) in said
    assert "`gates-exact` is not told apart from them on either MRPC board" in said
    assert all(grade(board, "gates-exact")["behind_low"] <= 0 for board in (mrpc, mpnet))
    areas = [grade(mpnet, name) for name in ("gates", "taylor", "random")]
    kept = f"{areas[0]['area']:.3f} [{areas[0]['area_low']:.3f}, {areas[0]['area_high']:.3f}]"
    assert f"gates keep {kept} of what the model knows, `taylor` {areas[1]['area']:.3f}, random" in said
    assert f"random orders {areas[2]['area']:.3f}. Nine of the fourteen are not shown" in said
    others = [g for g in mpnet["scores"] if g["score"] != "random"]
    assert [sum(g["lead_low"] <= 0 for g in others), sum(g["lead_high"] < 0 for g in others)] == [9, 7]
    guide = " ".join((study.PAGE.parent / "howto.md").read_text(encoding="utf-8").split())
    assert f"was up to {most(of['taylor']):.2f} behind; on the encoders there it takes about a hundredth of" in guide
    assert "on none of the three boards of real encoders are they shown to be better than random orders" in guide
    assert all(grade(board, name)["lead_low"] <= 0 for board in boards[1:] for name in ("ablation", "ablation-loss"))
    times = [grade(board, "gates")["seconds"] / grade(board, "taylor")["seconds"] for board in boards[1:]]
    assert 60 < min(times) < max(times) < 150
    thesis = [grade(board, "conductance-spearman") for board in boards]
    assert all(g["lead_low"] <= 0 for g in thesis)
    assert [g["lead_high"] < 0 for g in thesis] == [False, False, False, True]
    two = [grade(board, "ablation-loss") for board in (sst2, mpnet)]
    worse = [f"{-g['lead']:.3f} [{-g['lead_high']:.3f}, {-g['lead_low']:.3f}]" for g in two]
    assert all(g["lead_high"] < 0 for g in two)
    assert f"is worse than random orders on SST-2 and on MPNet, by {' and '.join(worse)}." in said


def test_the_finding_about_orders_is_the_pages(study: ModuleType) -> None:
    sections = study.TARGET.read_text(encoding="utf-8").split("## E3")[0].split("### minilm on ")
    told = {part.split("\n")[0]: part for part in sections[1:]}
    known = ("sst2", "mrpc", "cola")

    def steps(task: str, order: str, side: str) -> list[str]:
        line = next(x for x in told[task].splitlines() if x.startswith(f"- {order}: "))
        parts = [p for p in line.rstrip(".").split(": ", 1)[1].split("; ") if p.startswith(side)]
        return [p.split("%")[0].split()[-1] for p in parts[0].split(", ")] if parts else []

    for task in known:
        assert {"58", "78"} <= set(steps(task, "One importance, `gates`", "ahead"))
    on = {t: (steps(t, "`taylor`", "ahead"), steps(t, "One importance, `taylor`", "ahead")) for t in known}
    assert on["sst2"] == (["49", "58"], ["49", "58", "68", "78"])
    assert on["cola"] == (["10", "19", "29", "39", "49", "58"], ["39", "49", "58"])
    assert on["mrpc"] == ([], [])
    gates = [steps(t, "`gates`", "ahead") for t in known]
    assert gates == [["58"], ["58", "68", "78", "88"], ["10", "19", "29", "39", "49", "58", "68", "78"]]
    more = [re.search(r"\| `gates` \| 0 1 2 \| .*? \| \+(\S+) \[\+", told[task]) for task in known]
    said = findings(study)
    assert "gates keep {}, {} and {} points more than".format(*(found[1] for found in more if found)) in said
    whole: dict[tuple[str, str], list[tuple[float, ...]]] = {}
    for task in known:
        part = told[task].split("over the whole range:")[1].split("Ahead of the thesis's")[0]
        for score, *columns in re.findall(r"\| `(\S+)` \| (.*?) \| (.*?) \| (.*?) \|", part):
            ends = [re.findall(r"[+−][\d.]+", column) for column in columns]
            whole[task, score] = [tuple(float(v.replace("−", "-")) for v in one) for one in ends]
    over = {score: [whole[task, score][0] for task in known] for score in ("gates", "taylor", "thesis-2024")}
    written = table(
        study, "score | " + " | ".join(f"[{t}](study.md#minilm-on-{t.lower().replace('-', '')})" for t in NAMES)
    )
    for row, *values in written:
        assert values == [
            "{:+.1f} [{:+.1f}, {:+.1f}]".format(*whole[task, row.strip("`")][0]).replace("-", "−")
            for task in ("sst2", "mrpc", "cola")
        ]
    assert [row.strip("`") for row, *_ in written] == [*over]
    assert all(low < 0 < high for _, low, high in over["thesis-2024"])
    again = {task: whole[task, "thesis-2024"][1] for task in known}
    assert [bool(ends) and ends[1] > 0 for ends in again.values()] == [True, False, False]
    assert f"(measured anew at each step it is, on SST-2, by {again['sst2'][0]})" in said
    anew = [whole[task, score][2] for task in known for score in over if whole[task, score][2]]
    assert len(anew) == len(known) * len(over) == 9
    assert all(low < 0 < high for _, low, high in anew)
    most = "from −{:.1f} to +{:.1f} points of balanced accuracy over the whole range"
    assert most.format(-min(a[0] for a in anew), max(a[0] for a in anew)) in said
    added = re.findall(r"\| `(\S+)` \| [+−].*? \| [+−].*? \| (\+\S+ \[\+\S+ \+\S+\]) \|", "\n".join(told.values()))
    assert added == [("gates", "+1.3 [+0.1, +2.6]")]
    assert "gates on RTE alone gain, by 1.3 [0.1, 2.6]" in said
    own = [x for task in known for x in told[task].splitlines() if x.startswith("- ") and "`thesis-2024" in x]
    own = [x for x in own if "random" in x]
    assert len(own) >= 10
    assert not any(": ahead" in x for x in own)
    behind = [x for x in own if "behind random" in x]
    assert behind == [x for x in told["sst2"].splitlines() if x.startswith("- One importance, `thesis-2024-code`")]
    assert "behind random with 88% off" in behind[0]


def test_the_finding_about_mpnet_is_the_cells(study: ModuleType) -> None:
    from findings_leads import balanced, lead
    from findings_pruned_page import leads_of

    cells, said = study.read(), findings(study)
    random, own, gates, thesis, ablation = (
        cells[f"prune-mpnet-mrpc-0-one-importance-{score}"]
        for score in ("random", "taylor", "gates", "thesis-2024", "ablation")
    )
    twins = [t for t in study.read(study.TWINS).values() if t["cell"] == own["cell"]]

    def accuracies(cell: dict[str, Any], off: float) -> list[str]:
        near = [s["metrics"]["accuracy"] for s in cell["steps"] if abs(s["sparsity"] - off) < 0.01]
        return [f"{value:.3f}".lstrip("0") for value in (sum(near) / len(near), min(near), max(near))]

    def leads(cell: dict[str, Any], task: str = "mrpc") -> dict[int, tuple[float, float, float]]:
        beside = {**cell, "of random": cells[f"prune-mpnet-{task}-0-one-importance-random"]}
        found = leads_of([beside], task, range(len(cell["ahead"])))
        return {round(100 * at["sparsity"]): lead for at, lead in zip(cell["ahead"], found, strict=True)}

    def ahead(of: dict[int, tuple[float, float, float]]) -> dict[int, float]:
        return {share: mean for share, (mean, low, _) in of.items() if low > 0}

    def sure(cell: dict[str, Any]) -> list[int]:
        """Ahead at all these steps at once."""
        found = []
        for at in cell["ahead"]:
            near = [balanced(s, "mrpc") for s in random["steps"] if abs(s["sparsity"] - at["sparsity"]) < 1e-9]
            _, low, _ = lead([at], np.array([near]), cell["n"], 1 - 0.05 / len(cell["ahead"]))
            if low > 0:
                found.append(round(100 * at["sparsity"]))
        return found

    mean, low, high = accuracies(random, 0.58)
    assert len({s["seed"] for s in random["steps"]}) == 10
    assert f"heads have {own['full']['accuracy']:.3f} of the answers right".replace("0.", ".") in said
    written = table(study, "order | right | ahead of random orders")
    anew = cells["prune-mpnet-mrpc-0-iterative-taylor"]
    shown = (gates, own, anew, thesis, ablation, random)
    assert [right for _, right, _ in written] == [accuracies(cell, 0.58)[0] for cell in shown]
    assert written[-1] == ["random orders", mean, f"from {low} to {high}"]
    of_gates, of_taylor = ahead(leads(gates)), ahead(leads(own))
    assert [*of_gates] == [29, 39, 49, 58, 68, 78, 88]
    assert f"29 to 88 % off, by {100 * min(of_gates.values()):.1f} to {100 * max(of_gates.values()):.1f} points" in said
    assert len(of_taylor) == 6
    assert [*ahead(leads(thesis))] == [29, 58]
    assert [share for share, (_, _, top) in leads(thesis).items() if top < 0] == [68]
    assert all(max(s["predicted"].values()) >= 0.95 * 408 for s in thesis["steps"] if s["sparsity"] > 0.7)
    assert [share for share, (_, _, top) in leads(ablation).items() if top < 0] == [10, 19, 29, 39, 49, 58, 68]
    assert f"at six of eleven steps; with 78 % off by {100 * of_taylor[78]:.1f} points" in said
    assert anew["steps"][0]["seed"] == 0
    assert len(ahead(leads(anew))) == 8
    assert [sure(gates), sure(own), sure(thesis)] == [[49, 58, 68, 78, 88], [68, 78, 88], []]
    first, third = sorted(twins, key=lambda t: accuracies(t, 0.78)[0])
    gave = [accuracies(t, off)[0] for off in (0.58, 0.78) for t in (first, third)]
    told = f"gave `taylor` {gave[0]} and {gave[1]} with 58 % off, and with 78 % {gave[2]} and {gave[3]} instead of "
    assert told + accuracies(own, 0.78)[0] in re.sub(r" \(\[cell\].*?\)\)", "", said)
    assert len({c["digest"] for c in (own, random, gates, thesis, ablation)}) == 1
    assert own["digest"] not in {t["digest"] for t in twins}
    rte = cells["prune-mpnet-rte-0-one-importance-gates"]
    assert f"all heads have {rte['full']['accuracy']:.3f}".replace("0.", ".") in said
    assert [*ahead(leads(rte, "rte"))] == [39, 49, 58]


def test_the_finding_about_training_again_is_the_cells(study: ModuleType) -> None:
    from findings_tables import over_seeds

    cells, said = study.read(), findings(study)
    of = {
        score: [cells[f"retrain-minilm-mrpc-{seed}-one-shot-isp-{score}"] for seed in range(3)]
        for score in ("random", "taylor", "thesis-2024")
    }
    shares = [round(100 * step["sparsity"]) for step in of["taylor"][0]["steps"]]
    assert shares == [31, 51, 65, 76, 83, 89]

    def ahead(score: str) -> list[tuple[float, float, float]]:
        return [over_seeds(np.array([c["ahead"][at]["mean"] for c in of[score]])) for at in range(6)]

    def changes(score: str) -> list[tuple[float, float, float]]:
        def change(cell: dict[str, Any], at: int) -> float:
            return float(cell["steps"][at]["metrics"]["accuracy"] - cell["full"]["accuracy"])

        return [over_seeds(np.array([change(c, at) for c in of[score]])) for at in range(6)]

    assert [low > 0 for _, low, _ in ahead("taylor")] == [share > 70 for share in shares]
    points = [f"{100 * mean:.1f}" for mean, low, _ in ahead("taylor") if low > 0]
    assert "by {}, {} and {} points of balanced accuracy with 76, 83 and 89 % off".format(*points) in said
    assert all(low < 0 < high for _, low, high in ahead("thesis-2024"))
    assert all(high > 0 for _, _, high in changes("taylor"))
    less = [f"{-100 * mean:.1f}" for mean, _, _ in changes("taylor")]
    assert (
        f"`taylor` loses {min(less)} to {max(less)} points of accuracy, told apart from 0 over the seeds at no" in said
    )
    assert [high < 0 for _, _, high in changes("thesis-2024")] == [share > 70 for share in shares]
    lost = [f"{-100 * mean:.1f}" for mean, _, high in changes("thesis-2024") if high < 0]
    assert f"loses {lost[0]} to {lost[-1]} from 76 % on" in said
    of_all = {score: np.array([np.mean([a["mean"] for a in c["ahead"]]) for c in of[score]]) for score in of}

    def ends(values: np.ndarray) -> str:
        mean, low, high = (100 * v for v in over_seeds(values))
        return f"{mean:.1f} [{low:.1f}, {high:.1f}]"

    taylor, thesis = of_all["taylor"], of_all["thesis-2024"]
    assert f"ahead by {ends(thesis)}, `taylor` by {ends(taylor)}, and `taylor` of the thesis's score by " in said
    assert f"thesis's score by {ends(taylor - thesis)}." in said
    assert len({c["digest"] for seed in zip(*of.values(), strict=True) for c in seed}) == 3
    wnli = [c for name, c in cells.items() if name.startswith("retrain-minilm-wnli-")]
    full = {c["seed"]: c["full"]["accuracy"] for c in wnli}
    assert f"({sum(full.values()) / len(full):.3f} in the mean of three".replace("0.", ".") in said
    assert {round(s["constant"]["accuracy"], 3) for c in wnli for s in c["steps"]} == {0.563}
    assert all(value < 0.563 for value in full.values())


def test_the_finding_about_other_tasks_is_the_cells(study: ModuleType) -> None:
    page = study.TARGET.read_text(encoding="utf-8").split("## E5")[1].split("\n## ")[0]
    assert page.count("With all its heads, the model of mrpc would not be told apart from random masks") == 2
    assert page.count("With all its heads, the model of rte would not be told apart from random masks") == 2
    assert page.count("the model of wnli is no better than one class") == 2
    assert "39% of the heads off" in page
    assert "58% of the heads off" in page


def test_the_finding_about_agreement_is_the_pages(study: ModuleType) -> None:
    page = study.TARGET.read_text(encoding="utf-8")
    said = findings(study)
    found = re.findall(r"- (\w+) on (\w+), (\w+): (\S+) \[.*?\] over (\d) seeds: (.*)\.", page)
    assert {int(seeds) for *_, seeds, _ in found} == {5}
    what = {(encoder, task, kind): told for encoder, task, kind, _, _, told in found}
    changes = {(encoder, task, kind): change for encoder, task, kind, change, _, _ in found}
    apart, tasks = "no direction is told apart", ("mrpc", "sst2", "cola")
    assert [what["minilm", task, "signed"] for task in tasks] == ["rises", "rises", apart]
    assert [what["minilm", task, "absolute"] for task in tasks] == ["falls"] * 3
    assert [what["mpnet", task, "signed"] for task in tasks] == ["rises"] * 3
    assert [what["mpnet", task, "absolute"] for task in tasks] == [apart, apart, "falls"]
    kinds = {"signed": "signed", "without signs": "absolute"}
    written = table(study, "encoder | mean | MRPC | SST-2 | CoLA")
    assert [row[:2] for row in written] == [[e, k] for e in ("MiniLM", "MPNet") for k in kinds]
    for encoder, kind, *values in written:
        of = [(encoder.lower(), task, kinds[kind]) for task in tasks]
        assert values == ["–" if what[one] == apart else changes[one] for one in of]
    told = [abs(float(changes[one].replace("−", "-"))) for one in what if one[2] == "signed" and what[one] != apart]
    assert f"hardly: by {min(told):.2f} to {max(told):.2f}, or not at all" in said


def test_the_finding_about_single_heads_is_the_cells(study: ModuleType) -> None:
    cells = {name: cell for name, cell in study.read().items() if cell["experiment"] == "M"}
    of = {t: [c for n, c in cells.items() if f"-{t}-" in n] for t in ("mrpc", "sst2", "cola")}
    assert [len(found) for found in of.values()] == [3, 3, 3]
    assert {study.told(c)[1] for c in of["mrpc"]} == {2, 3}
    assert not any(study.told(c)[1] or study.told(c)[2] for t in ("sst2", "cola") for c in of[t])
    worst = [max(v for row in c["cost"] for v in row if v is not None) for c in of["mrpc"]]
    assert [f"{100 * f(worst):.0f}" for f in (min, max)] == ["11", "15"]
    assert {c["heads"] for c in cells.values()} == {72}
