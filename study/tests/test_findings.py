"""Figures of docs/findings.md about scores and orders of heads are those of the study's cells and pages."""

from __future__ import annotations

import re
from types import ModuleType
from typing import Any

import numpy as np

from study.tests.findings import DOCS, ends, findings, mean_at, plain, range_leads, signed, table

NAMES = ("SST-2", "MRPC", "CoLA")
MORE = (("sst2", "thesis-2024-code"), ("mrpc", "shapley"), ("mrpc", "ablation"))  # may gain most by scoring anew


def test_the_finding_about_scores_is_the_boards(study: ModuleType) -> None:
    from headviz.analyses.board import recorded
    from study.page_shared import behind, most

    cells = {name: cell for name, cell in study.read().items() if cell["experiment"] == "B"}
    of = behind(list(cells.values()))
    said = findings(study)
    demo, mrpc, sst2, mpnet = boards = [recorded().grades.to_dict(), *(cell["grades"] for cell in cells.values())]
    assert [*cells] == ["board-minilm-mrpc-0", "board-minilm-sst2-0", "board-mpnet-mrpc-0"]
    best = [f"`{board['best']}`" for board in (demo, sst2, mrpc, mpnet)]
    assert f"The best of each board is {', '.join(best[:3])} and {best[3]}." in said
    assert [name for name in of if name != "random"][:2] == ["gates", "gim"]
    assert len(of) - ("random" in of) == 14

    def grade(board: dict[str, Any], score: str) -> dict[str, Any]:
        return next(g for g in board["scores"] if g["score"] == score)

    names = {f"`{name}`": name for name in of} | {"random orders": "random"}
    written = table(study, "score | demo | MiniLM, SST-2 | MiniLM, MRPC | MPNet, MRPC")
    for row, *values in written:
        known = [grade(board, names[row])["behind"] for board in (demo, sst2, mrpc, mpnet)]
        assert values == ["best" if value is None else f"{value:.3f}" for value in known]
    assert [row for row, *_ in written][-2:] == ["`conductance-spearman`", "random orders"]
    gates, gates_exact, taylor, random = (grade(mpnet, n) for n in ("gates", "gates-exact", "taylor", "random"))
    furthest = max((grade(board, "gates") for board in boards if board is not mpnet), key=lambda g: g["behind"])
    assert furthest is grade(mrpc, "gates")
    told = f"(95 %: {furthest['behind_low']:.3f} to {furthest['behind_high']:.3f})".replace("-", "−")
    assert (
        f"Gates are at most {most(of['gates']):.3f} behind, on MiniLM and MRPC, where they are not told apart" in said
    )
    next_one = max((grade(board, "gim") for board in boards), key=lambda g: g["behind"])
    second = ends(*(next_one[k] for k in ("behind", "behind_low", "behind_high")), 3)
    assert f"from the best {told}. Next comes `gim` with {second}. These intervals overlap" in said
    beside = ends(*(grade(mpnet, "gim")[k] for k in ("behind", "behind_low", "behind_high")), 3)
    assert f"compared on MPNet alone, where `gim` is behind gates by {beside}." in said
    assert next_one["behind_low"] < furthest["behind_high"]
    assert furthest["behind_low"] < 0
    others = [g for g in mpnet["scores"] if g["score"] != "random"]
    assert all(g["behind_low"] > 0 for g in others if g is not gates)
    kept = ends(gates["area"], gates["area_low"], gates["area_high"], 3)
    less = ends(*(gates_exact[k] for k in ("behind", "behind_low", "behind_high")), 3)
    areas = f"`gates-exact` {gates_exact['area']:.3f} ({less} less), `taylor` {taylor['area']:.3f}, random orders"
    areas += f" {random['area']:.3f}."
    assert f"they keep {kept} of what the model knows, {areas} Seven of the fourteen are not shown" in said
    assert [sum(g["lead_low"] <= 0 for g in others), sum(g["lead_high"] < 0 for g in others)] == [7, 3]
    times = [grade(board, "gates")["seconds"] / grade(board, "taylor")["seconds"] for board in boards[1:]]
    assert (
        f"Gates take {min(times):.0f} to {max(times):.0f} times the processor time of `taylor` for 100 examples" in said
    )
    assert {cell["grades"]["n"] for cell in cells.values()} == {2 * 100}
    assert f"for 2,000 it would be {min(times) / 20:.1f} to {max(times) / 20:.1f} times." in said

    thesis = [grade(board, "conductance-spearman") for board in (demo, sst2, mrpc, mpnet)]
    assert [(g["lead_low"] > 0, g["lead_high"] < 0) for g in thesis] == [
        (False,) * 2,
        (True, False),
        (False, True),
        (False,) * 2,
    ]
    ahead = ends(*(thesis[1][k] for k in ("lead", "lead_low", "lead_high")), 3)
    behind_random = ends(*(-thesis[2][k] for k in ("lead", "lead_high", "lead_low")), 3)
    assert (
        f"is ahead of random orders on SST-2, by {ahead}, and behind them on MiniLM and MRPC, by {behind_random}."
        in said
    )
    assert mrpc["best"] == "ablation"
    assert all(
        grade(board, "ablation")["lead_low"] <= 0 < grade(board, "ablation")["lead_high"] for board in (sst2, mpnet)
    )
    assert all(grade(board, "ablation-loss")["lead_high"] < 0 for board in (sst2, mpnet))
    guide = " ".join((DOCS / "howto.md").read_text(encoding="utf-8").split())
    up_to = np.ceil(100 * most(of["taylor"])) / 100
    assert f"`taylor` kept up to {up_to:.2f} less of what the model knows than the best score;" in guide
    assert "on the encoders there it takes about a hundredth of the time of `gates` for 100 examples" in guide
    at_worst = f"at worst {most(of['gates']):.3f} behind the best"
    docs, after = DOCS, f"the next score, `gim`, {most(of['gim']):.3f}. These intervals overlap"
    for page in ("../README.md", "howto.md", "pruning.md", "scores.md"):
        written = " ".join((docs / page).read_text(encoding="utf-8").split())
        assert f"were {at_worst}" in written, page
        assert after in written, page
    assert f"At worst, `gates` were {most(of['gates']):.3f} behind the best; {after}" in said
    assert f"`gates` were {most(of['gates']):.3f} behind the best, {after.split('. ')[0]}" in said
    assert "on one of the four models it is ahead of random orders, on one behind them, on two not told apart" in guide
    assert 60 < min(times) < max(times) < 150
    assert (
        "on two of the three boards of real encoders `ablation` is not shown to be better than random orders" in guide
    )
    size, gradient = (grade(mpnet, name) for name in ("magnitude", "taylor"))
    assert size["area_high"] < gradient["area_low"]
    assert "On MPNet and MRPC it is the other way round." in " ".join((DOCS.parent / "README.md").read_text().split())
    unsure = grade(mrpc, "attattr-max")
    assert unsure["lead_low"] < 0 < unsure["lead_high"]
    two = [cells["board-mpnet-mrpc-0"], study.read()["prune-mpnet-mrpc-0-one-importance-gates"]]
    assert len({cell["digest"] for cell in two}) == 2  # the board is of another training


def test_the_finding_about_orders_is_the_pages(study: ModuleType) -> None:
    from study.leads import balanced
    from study.tables import over_seeds

    sections = study.TARGET.read_text(encoding="utf-8").split("## E3")[0].split("### minilm on ")
    told = {part.split("\n")[0]: part for part in sections[1:]}
    known, said = ("sst2", "mrpc", "cola"), findings(study)

    cells = study.read()

    def range_of(task: str, seed: int, score: str) -> float:
        cell = cells[f"prune-minilm-{task}-{seed}-one-importance-{score}"]
        return float(np.mean([balanced(step, task) for step in cell["steps"] if 0.05 < step["sparsity"] < 0.9]))

    for score, words in (("thesis-2024", "more than `thesis-2024`"), ("taylor", "more than `taylor`")):
        more = [np.array([range_of(t, s, "gates") - range_of(t, s, score) for s in range(3)]) for t in known]
        one, two, three = (ends(*(100 * v for v in over_seeds(of))).replace("-", "−") for of in more)
        assert re.search(re.escape(f"{one}, {two} and {three} ") + "(points )?" + re.escape(words), said)
        assert [over_seeds(of)[1] > 0 for of in more] == (
            [True] * 3 if score == "thesis-2024" else [False, False, True]
        )

    whole: dict[tuple[str, str], list[tuple[float, ...]]] = {}
    for task, text in told.items():
        part = text.split("over the whole range:")[-1].split("Ahead of the thesis's")[0]
        for score, *columns in re.findall(r"^\| `([^`]+)` \| (.*?) \| (.*?) \| (.*?) \|$", part, re.M):
            numbers = [re.findall(r"[+−][\d.]+", column) for column in columns]
            whole[task, score] = [tuple(float(v.replace("−", "-")) for v in one) for one in numbers]
    header = " | ".join(f"[{name}](../study/results.md#minilm-on-{name.lower().replace('-', '')})" for name in NAMES)
    for row, *values in table(study, f"score | {header}"):
        assert values == [signed(*whole[task, row.strip("`")][0]) for task in known]
    thesis = [whole[task, "thesis-2024"] for task in known]
    assert all(once[1] < 0 < once[2] for once, _, _ in thesis)
    assert [anew[1] > 0 for _, anew, _ in thesis] == [True, False, False]
    assert f"(measured anew at each step it is, on SST-2, by {ends(*thesis[0][1])}, and at no single step)" in said

    anew = {key: values[2] for key, values in whole.items() if values[2]}
    three = [anew[task, score] for task in known for score in ("taylor", "gates", "thesis-2024")]
    assert all(low < 0 < high for _, low, high in three)
    most = "from −{:.1f} to +{:.1f} points of balanced accuracy over the whole range"
    assert most.format(-min(a[0] for a in three), max(a[0] for a in three)) in said
    more_of = [anew[key][2] for key in MORE]
    up_to = [max(high for _, _, high in three), *more_of]
    told_gains = "for these three of up to {} points (MRPC), for `thesis-2024-code` of up to {} (SST-2)"
    told_gains += ", for `shapley` of up to {} and for `ablation` of up to {} (MRPC)"
    assert told_gains.format(*up_to) in said
    assert max(three, key=lambda v: v[2]) == anew["mrpc", "gates"]
    for task, score in MORE:
        assert anew[task, score][2] == max(values[2] for (_, other), values in anew.items() if other == score)
    apart = {key: values for key, values in anew.items() if values[1] > 0 or values[2] < 0}
    assert list(apart) == [("rte", "gates")]
    told_of = f"Of all {len(anew)} comparisons one is told apart, gates on RTE, by {ends(*apart['rte', 'gates'])}"
    assert told_of in said

    own = [x for task in known for x in told[task].splitlines() if x.startswith("- ") and "`thesis-2024" in x]
    own = [x for x in own if "random" in x]
    assert len(own) >= 10
    assert not any(": ahead" in x for x in own)
    behind = [x for x in own if "behind random" in x]
    assert behind == [x for x in told["sst2"].splitlines() if x.startswith("- One importance, `thesis-2024-code`")]
    assert "behind random with 88% off" in behind[0]
    assert not [x for x in told["rte"].splitlines() if x.startswith("- ") and "ahead of random" in x]
    assert "no score is told apart from random orders there" in said


def test_the_leads_of_gates_over_the_whole_range(study: ModuleType) -> None:
    from study.leads import balanced

    cells, said = study.read(), findings(study)

    def leads(task: str, plainly: bool, level: float = 0.95) -> tuple[float, float, float]:
        own, random = (
            [cells[f"prune-minilm-{task}-{s}-one-importance-{o}"] for s in range(3)] for o in ("gates", "random")
        )
        return range_leads(own, random, lambda s: s["metrics"]["accuracy"] if plainly else balanced(s, task), level)[0]

    sst2, mrpc, cola = (leads(task, True) for task in ("sst2", "mrpc", "cola"))
    behind = ends(-cola[0], -cola[2], -cola[1])
    told = f"on SST-2, by {ends(*sst2)}, not told apart on MRPC ({signed(*mrpc)}), and behind on CoLA, by {behind}."
    assert f"In plain accuracy gates are ahead of random orders {told}" in said
    at_once = [leads(task, False, 1 - 0.05 / 3) for task in ("sst2", "cola", "mrpc")]
    parts = [f"[{low:.1f}, {high:.1f}]".replace("-", "−") for _, low, high in at_once]
    assert "SST-2 {} and CoLA {} stay told apart, MRPC {} does not.".format(*parts) in said
    assert [low > 0 for _, low, _ in at_once] == [True, True, False]


def test_in_plain_accuracy_gates_fall_below_one_class(study: ModuleType) -> None:
    cells, said = study.read(), findings(study)
    told = []
    for task, first, at in (("mrpc", 68, 0.78), ("cola", 29, 0.58)):
        of = {
            s: [cells[f"prune-minilm-{task}-{seed}-one-importance-{s}"] for seed in range(3)]
            for s in ("gates", "taylor", "random")
        }
        shares = [step["sparsity"] for step in of["gates"][0]["steps"]]
        floor = of["gates"][0]["steps"][0]["constant"]["accuracy"]
        below = {s: [round(100 * x) for x in shares if mean_at(of[s], x) < floor - 1e-9] for s in ("gates", "taylor")}
        behind = [round(100 * x) for x in shares if mean_at(of["gates"], x) < mean_at(of["random"], x) - 1e-9]
        inner = [round(100 * x) for x in shares if first <= round(100 * x) <= 88]
        assert set(inner) <= set(below["gates"])
        assert set(inner) <= set(behind)
        assert set(below["taylor"]) & set(inner) == ({78} if task == "cola" else set())
        told.append(f"{plain(mean_at(of['gates'], at))}, {plain(floor)} and {plain(mean_at(of['random'], at))}")
    assert "from 68 to 88 % off ({} with 78 %), on CoLA from 29 to 88 % ({} with 58 %)".format(*told) in said


def test_ablation_is_no_order_for_the_model_of_its_best_board(study: ModuleType) -> None:
    from study.leads import balanced

    cells = study.read()
    pairs = [
        [cells[f"prune-minilm-mrpc-{s}-one-importance-{score}"] for score in ("ablation", "random")] for s in range(3)
    ]
    assert pairs[0][0]["digest"] == cells["board-minilm-mrpc-0"]["digest"]
    (one, (first,)), *others = [range_leads([own], [random], lambda s: balanced(s, "mrpc")) for own, random in pairs]
    assert one[0] == first
    told = "over the whole range: {} points [{}, {}]; the models of two other seeds have {} and {}."
    numbers = [f"{v:.1f}".replace("-", "−") for v in (*one, *(mean for (mean, _, _), _ in others))]
    assert told.format(*numbers) in findings(study)


def test_the_finding_about_mpnet_is_the_cells(study: ModuleType) -> None:
    from study.leads import balanced, lead
    from study.page_pruned import leads_of

    cells, said = study.read(), findings(study)
    random, own, gates, thesis, code, ablation = (
        cells[f"prune-mpnet-mrpc-0-one-importance-{score}"]
        for score in ("random", "taylor", "gates", "thesis-2024", "thesis-2024-code", "ablation")
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
    assert f"With all 144 heads A has {plain(own['full']['accuracy'])} of the answers right, B and C" in said
    written = table(study, "order | right | told apart from random orders")
    anew = cells["prune-mpnet-mrpc-0-iterative-taylor"]
    shown = (gates, own, anew, thesis, code, ablation, random)
    assert [right for _, right, _ in written[:-1]] == [accuracies(cell, 0.58)[0] for cell in shown[:-1]]
    assert written[-1] == ["random orders", f"{mean} ({low} to {high})", "–"]
    of_gates, of_taylor = ahead(leads(gates)), ahead(leads(own))
    assert [*of_gates] == [29, 39, 49, 58, 68, 78, 88]
    assert f"29 to 88 % off, by {100 * min(of_gates.values()):.1f} to {100 * max(of_gates.values()):.1f} points" in said
    assert len(of_taylor) == 6
    assert [*ahead(leads(thesis))] == [29, 58]
    assert [share for share, (_, _, top) in leads(thesis).items() if top < 0] == [68]
    assert not ahead(leads(code))
    assert [share for share, (_, _, top) in leads(code).items() if top < 0] == [68]
    assert all(max(s["predicted"].values()) >= 0.95 * 408 for s in thesis["steps"] if s["sparsity"] > 0.7)
    assert [share for share, (_, _, top) in leads(ablation).items() if top < 0] == [10, 19, 29, 39, 49, 58, 68]
    assert f"ahead at six of eleven steps; with 78 % off by {100 * of_taylor[78]:.1f} points" in said
    assert anew["steps"][0]["seed"] == 0
    assert len(ahead(leads(anew))) == 8
    assert [sure(gates), sure(own), sure(thesis)] == [[49, 58, 68, 78, 88], [68, 78, 88], []]
    first, third = sorted(twins, key=lambda t: accuracies(t, 0.78)[0])
    gave = [accuracies(t, 0.58)[0] for t in (first, third)]
    assert "On two of the CPUs' `taylor` has {} and {} with 58 % off".format(*gave) in said

    def at(cell: dict[str, Any], off: float, orders: int = 10) -> float:
        near = [s for s in cell["steps"] if abs(s["sparsity"] - off) < 0.01 and s["seed"] < orders]
        return float(np.mean([balanced(s, "mrpc") for s in near]))

    twin, later = (
        next(t for t in study.read(study.TWINS).values() if (t["cell"], t["digest"]) == (random["cell"], digest))
        for digest in (first["digest"], cells["prune-mpnet-mrpc-0-one-importance-shapley"]["digest"])
    )
    over = {n: [100 * (at(c, 0.58) - at(r, 0.58, n)) for c, r in ((own, random), (first, twin))] for n in (3, 10)}
    over[3].append(next(100 * a["mean"] for a in third["ahead"] if abs(a["sparsity"] - 0.58) < 0.01))
    assert "orders" not in third  # so it was compared with three
    led = "Its lead over the same three random orders is {1:.1f} and {2:.1f} points there, {0:.1f} on A."
    assert led.format(*over[3]) in said
    led = "Over ten orders it is {1:.1f} on the first of them and {0:.1f} on A, where gates have {2:.1f}."
    assert led.format(*over[10], 100 * (at(gates, 0.58) - at(random, 0.58))) in said
    shares = [s["sparsity"] for s in own["steps"]]
    most = max(shares, key=lambda off: np.ptp([at(c, off) for c in (own, first, third)]))
    values = [plain(at(c, most)) for c in (own, first, third)]
    assert f"differ most with {most:.0%} off: {{}} on A, {{}} and {{}}.".replace("%", " %").format(*values) in said
    assert len({c["digest"] for c in (own, random, gates, thesis, code, ablation)}) == 1
    assert own["digest"] not in {t["digest"] for t in twins}
    assert f"B and C {plain(later['full']['accuracy'])}." in said
    assert later["digest"] == cells["prune-mpnet-mrpc-0-iterative-thesis-2024"]["digest"]
    lines = study.TARGET.read_text(encoding="utf-8").split("### mpnet on mrpc")[1].split("\n### ")[0].splitlines()
    once = "- One importance, `shapley`: ahead of random with 49%, 58%, 68%, 78%, 88% off; not told apart"
    measured_anew = "- Iterative, `thesis-2024`: behind random with 49%, 58% off; not told apart"
    assert all(any(line.startswith(told) for line in lines) for told in (once, measured_anew))
    assert "Model B. `shapley`, scored once, is ahead of random orders from 49 to 88 % off." in said
    assert "thesis's score measured anew is ahead nowhere, and behind with 49 and 58 %." in said
    rte = cells["prune-mpnet-rte-0-one-importance-gates"]
    assert f"On RTE MPNet has {plain(rte['full']['accuracy'])} with all heads" in said
    assert [*ahead(leads(rte, "rte"))] == [39, 49, 58]
