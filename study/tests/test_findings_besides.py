"""Figures of docs/findings.md about everything but scores: retraining, agreement, single heads, other tasks."""

from __future__ import annotations

import re
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm, ttest_1samp

from study.tests.findings import DOCS, ends, findings, plain, table


def test_the_finding_about_training_again_is_the_cells(study: ModuleType) -> None:
    from study.tables import over_seeds

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
    at_once = [over_seeds(np.array([c["ahead"][at]["mean"] for c in of["taylor"]]), 1 - 0.05 / 6) for at in range(6)]
    assert [share for share, (_, low, _) in zip(shares, at_once, strict=True) if low > 0] == [76, 83]
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

    def over(values: np.ndarray) -> str:
        return ends(*(100 * v for v in over_seeds(values)))

    taylor, thesis = of_all["taylor"], of_all["thesis-2024"]
    assert (
        f"`taylor` is ahead by {over(taylor)}, the thesis's score by {over(thesis)}, and `taylor` is ahead of" in said
    )
    assert f"the thesis's score by {over(taylor - thesis)}." in said
    close = [f"{100 * of.min():.1f} to {100 * of.max():.1f}" for of in (taylor, thesis)]
    assert f"they lie close together: {' and '.join(close)}." in said
    assert len({c["digest"] for seed in zip(*of.values(), strict=True) for c in seed}) == 3
    anew = {way: [cells[f"retrain-minilm-mrpc-{seed}-{way}-taylor"] for seed in range(3)] for way in ("igspf", "isp")}
    means = [np.array([np.mean([a["mean"] for a in c["ahead"]]) for c in found]) for found in anew.values()]
    assert "is ahead of their random orders by {} and {} in the mean of the six".format(*map(over, means)) in said
    both = [[c["digest"] for c in found] for found in anew.values()]
    assert both[0] == both[1]
    assert not {*both[0]} & {c["digest"] for c in of["taylor"]}
    gates = [cells[f"retrain-minilm-mrpc-{seed}-one-shot-isp-gates"] for seed in range(3)]
    led = np.array([np.mean([a["mean"] for a in c["ahead"]]) for c in gates])
    assert "random orders by {:.1f}, {:.1f} and {:.1f} points in the mean of the six".format(*(100 * led)) in said
    assert f"sizes: {over(led).replace('-', '−')}. So the lead that they have without retraining is not shown" in said
    assert not {c["digest"] for c in gates} & {c["digest"] for found in (of["taylor"], *anew.values()) for c in found}
    again = study.read(study.TWINS)
    beside = [again[f"retrain-minilm-mrpc-{c['seed']}-one-shot-isp-taylor-{c['digest'][:8]}"] for c in gates]
    assert [c["digest"] for c in beside] == [c["digest"] for c in gates]
    of_taylor = np.array([np.mean([a["mean"] for a in c["ahead"]]) for c in beside])
    assert f"On the same models `taylor` is ahead of those orders by {over(of_taylor)} (" in said
    assert f"and of gates by {over(of_taylor - led)}, so the two are not told apart".replace("[-", "[−") in said

    fresh = [cells[f"retrain-minilm-mrpc-{seed}-igspf-thesis-2024"] for seed in range(3)]
    rounds = [cells[f"retrain-minilm-mrpc-{seed}-isp-thesis-2024"] for seed in range(3)]
    assert [c["digest"] for c in rounds] == [c["digest"] for c in gates]
    assert [f["digest"] == c["digest"] for f, c in zip(fresh, rounds, strict=True)] == [False, True, True]
    leads = []
    for found, before in ((rounds, "of their random orders by"), (fresh, "it is ahead by")):
        led = np.array([np.mean([a["mean"] for a in c["ahead"]]) for c in found])
        each = [over_seeds(np.array([c["ahead"][at]["mean"] for c in found])) for at in range(6)]
        assert all(low < 0 < high for _, low, high in [*each, over_seeds(led)])
        assert f"{before} {{:.1f}}, {{:.1f}} and {{:.1f}}".format(*(100 * led)) in said
        assert f": {over(led).replace('-', '−')}." in said
        leads.append(led[1:])
    assert f"rounds are ahead of sizes by {over(leads[0] - leads[1])}: two numbers" in said

    def right(found: list[dict[str, Any]]) -> str:
        means = [np.mean([c["steps"][at]["metrics"]["accuracy"] for c in found]) for at in (3, 4, 5)]
        return "{}, {} and {}".format(*(plain(float(mean)) for mean in means))

    assert f"With 76, 83 and 89 % off its means there are {right(beside)}, those of gates {right(gates)}." in said
    wnli = [c for name, c in cells.items() if name.startswith("retrain-minilm-wnli-")]
    full = {c["seed"]: c["full"]["accuracy"] for c in wnli}
    every = [c["full"]["accuracy"] for name, c in cells.items() if "minilm-wnli" in name and "steps" in c]
    assert f"({min(every):.3f} to {max(every):.3f}) than one".replace("0.", ".") in said
    assert {round(s["constant"]["accuracy"], 3) for c in wnli for s in c["steps"]} == {0.563}
    assert all(value < 0.563 for value in full.values())
    table_of = (
        study.TARGET.read_text(encoding="utf-8").split("### minilm on wnli, trained again")[1].split("A star:")[0]
    )
    means = re.findall(r"\d\.\d{3} ± \d\.\d{3}( \*)?", table_of.split("| algorithm")[1])
    assert set(means) == {" *"}
    assert f"in our table all {len(means)} means do" in said


def test_the_finding_about_other_tasks_is_the_cells(study: ModuleType) -> None:
    page = study.TARGET.read_text(encoding="utf-8").split("## E5")[1].split("\n## ")[0]
    assert "39 and 58 % off, against 20 random masks" in findings(study)
    assert page.count("the mean of 20 random masks") == 2
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
    rises = [float(changes[one]) for one in what if one[2] == "signed" and what[one] == "rises"]
    falls = [one for one in what if one[2] == "absolute" and what[one] == "falls"]
    assert [len(rises), len(falls), len(what)] == [5, 4, 12]
    cells, each = study.read(), {}
    for encoder, task, kind in what:
        of = [c for name, c in cells.items() if name.startswith(f"agree-{encoder}-{task}-")]
        each[encoder, task, kind] = ttest_1samp([c["after"][kind] - c["before"][kind] for c in of], 0).pvalue
    order = sorted(each, key=each.__getitem__)
    kept = [one for i, one in enumerate(order) if all(each[o] * (12 - j) < 0.05 for j, o in enumerate(order[: i + 1]))]
    assert {one[:2] for one in [*falls, *(o for o in what if what[o] == "rises")] if one not in kept} == {
        ("minilm", "mrpc")
    }
    assert [sum(one[2] == kind for one in kept) for kind in ("signed", "absolute")] == [4, 3]
    assert "MiniLM on MRPC drops out: four of six rise, three of six fall" in said
    assert f"the signed mean rises by {min(rises):.2f} to {max(rises):.2f} in five of six cases" in said


def test_the_finding_about_single_heads_is_the_cells(study: ModuleType) -> None:
    cells = {name: cell for name, cell in study.read().items() if cell["experiment"] == "M"}
    of = {t: [c for n, c in cells.items() if f"-minilm-{t}-" in n] for t in ("mrpc", "sst2", "cola")}
    assert [len(found) for found in of.values()] == [3, 3, 3]
    assert {study.told(c)[1] for c in of["mrpc"]} == {2, 3}
    assert not any(study.told(c)[1] or study.told(c)[2] for t in ("sst2", "cola") for c in of[t])
    worst = [max(v for row in c["cost"] for v in row if v is not None) for c in of["mrpc"]]
    assert [f"{100 * f(worst):.0f}" for f in (min, max)] == ["11", "15"]
    assert {c["heads"] for found in of.values() for c in found} == {72}
    mpnet = cells["michel-mpnet-mrpc-0"]
    assert (mpnet["heads"], study.told(mpnet)[1:]) == (144, (0, 0))
    page = study.TARGET.read_text(encoding="utf-8")
    assert re.search(r"\| mpnet \| mrpc \| \[.*michel-mpnet-mrpc-0.json\) \| 144 \|.*\| 6 of 12 \|", page)
    assert "none of the 144 is shown to be missed, and in six of the twelve layers one head alone" in findings(study)
    assert "two or three of them make each of three MRPC models worse at the 5 % level over all heads" in findings(
        study
    )
    assert "(Holm), the worst by {:.0f} to {:.0f} points".format(*(100 * f(worst) for f in (min, max))) in findings(
        study
    )


def test_the_finding_about_two_halves_is_the_cells(study: ModuleType) -> None:
    cell, said = study.read()["cross-minilm-mnli-0"], findings(study)
    page = study.TARGET.read_text(encoding="utf-8").split("## M: the same heads")[1].split("\n## ")[0]
    rank, without, more = re.findall(r"\+(0\.\d\d) (?=\|)", page)
    assert f"correlate with r = {ends(cell['r'], cell['low'], cell['high'], 2)}" in said
    told = f"costliest on both together with {without}, without the four costliest with {more}"
    assert f"{told}; the rank correlation is {rank}." in said
    assert f"which has {np.mean(cell['full']):.2f} of the answers right" in said


def test_the_finding_about_gates_and_iterative_taylor_is_the_cells(study: ModuleType) -> None:
    cells = study.read()
    written, at_once = table(study, "model | gates are ahead | by"), []
    for (_, steps, points), name in zip(written, ("demo-demo", "minilm-mrpc", "minilm-sst2"), strict=True):
        leads = cells[f"gates-{name}-0"]["ahead"]["gates"]
        ahead = [100 * at["mean"] for at in leads if at["low"] > 0]
        assert not [at for at in leads if at["high"] < 0]
        assert steps == f"at {len(ahead)} of {len(leads)} steps"
        assert points == f"{min(ahead):.1f} to {max(ahead):.1f} points"
        wider = norm.ppf(1 - 0.025 / len(leads)) / norm.ppf(0.975)
        at_once.append(sum(at["mean"] - wider * (at["high"] - at["low"]) / 2 > 0 for at in leads))
    assert "as if normal) {}, {} and {} of these remain".format(*at_once) in findings(study)
    (plainly,) = [
        a["accuracy"] for a in cells["gates-minilm-mrpc-0"]["ahead"]["gates"] if abs(a["sparsity"] - 0.78) < 0.01
    ]
    told = "{:.1f} points behind [{:.1f}, {:.1f}]".format(*(-100 * plainly[k] for k in ("mean", "high", "low")))
    assert f"gates are {told} on MRPC with 78 % off" in findings(study)


# what the page says of other pages, and where these have it
BESIDE = (
    (
        "is 1.50 times as fast; no change is measured (95 %: −1.3 to +1.3)",
        "pruning",
        "1.50× (1.49 to 1.52) | .8784 | 0.0 (−1.3 to +1.3)",
    ),
    ("loses 0.5 points (0.0 to 1.1) at 1.43 times", "pruning", "1.43× (1.34 to 1.57) | .9885 | −0.5 (−1.1 to 0.0)"),
    (
        "keeps 0.939 of the answers right if it is measured once",
        "demo_pruning",
        "| `taylor` | 0.959 [0.937, 0.990] | 0.939",
    ),
    ("and 0.938 if it is measured anew", "demo_pruning", "| `taylor` | 0.959 [0.937, 0.990] | 0.938"),
    ("random orders keep 0.673 on average", "demo_pruning", "| `random` | 0.734 [0.695, 0.784] | 0.673"),
    (
        "`taylor`'s lead of 27 points",
        "demo_pruning",
        "One importance (no retraining) | +0.225 [+0.161, +0.290] (3) | +0.267",
    ),
    (
        "does as well there as `taylor` (0.933 and 0.918, one seed)",
        "demo_pruning",
        "`taylor` 0.918, `conductance-spearman` 0.933",
    ),
    (
        "After four times the training it is 13",
        "demo_pruning",
        "`taylor` 0.918, `conductance-spearman` 0.933, `random` 0.792",
    ),
    (
        "Copied weights reach 15.9 BLEU, random ones 1.8.",
        "distillation",
        "copied weights end at 15.9 [15.0, 16.8] BLEU, random ones at 1.8",
    ),
    (
        "patching finds one of the planted heads for 5 of 13 kinds",
        "causal",
        "A planted head comes first in 5 of 13 phenomena",
    ),
    (
        "28 to 60 points are lost in these five kinds, 2 to 21 in the other",
        "causal",
        "costs 28.2 to 60.2 points in the 5 phenomena in which a planted head comes first above, and 2.4 to 20.6",
    ),
)


@pytest.mark.parametrize(("said", "page", "there"), BESIDE)
def test_what_is_said_of_another_page_is_on_it(study: ModuleType, said: str, page: str, there: str) -> None:
    assert said in findings(study)
    (path,) = (p for p in (DOCS, DOCS.parent / "study") for p in p.glob(f"{page}.md"))
    text = path.read_text(encoding="utf-8")
    assert there in " ".join(text.split())
