"""Figures of docs/findings.md, and of the pages that repeat its main result, are those of the recorded cells."""

from __future__ import annotations

import re
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from study.tests.findings import DOCS, ends, findings, mean_at, plain, signed, table

TASKS = ("sst2", "mrpc", "cola")


def _boards(study: ModuleType) -> list[dict[str, Any]]:
    from headviz.analyses.board import recorded

    cells = study.read()
    names = ("minilm-sst2", "minilm-mrpc", "mpnet-mrpc")
    return [recorded().grades.to_dict(), *(cells[f"board-{name}-0"]["grades"] for name in names)]


def _behind(board: dict[str, Any], score: str) -> dict[str, Any]:
    return next(g for g in board["scores"] if g["score"] == score)


def test_boards(study: ModuleType) -> None:
    boards = _boards(study)
    for row, *values in table(study, "score | demo | MiniLM, SST-2 | MiniLM, MRPC | MPNet, MRPC"):
        known = [_behind(board, row.strip("`").removesuffix(" orders"))["behind"] for board in boards]
        assert values == ["best" if value is None else f"{value:.3f}" for value in known], row
    worst = {s: max((_behind(b, s) for b in boards), key=lambda g: g["behind"] or 0) for s in ("gates", "gim")}
    low, high = (f"{worst['gates'][k]:.3f}".replace("-", "−") for k in ("behind_low", "behind_high"))
    text = findings(study)
    assert f"(95 %: {low} to {high})" in text
    assert ends(*(worst["gim"][k] for k in ("behind", "behind_low", "behind_high")), 3) in text
    for page in ("findings.md", "../README.md", "howto.md", "pruning.md", "scores.md"):
        text = " ".join((DOCS / page).read_text(encoding="utf-8").split())
        for score in worst:
            assert f"{worst[score]['behind']:.3f}" in text, page


def _whole_ranges(study: ModuleType) -> dict[tuple[str, str], str]:
    """What the study's page says of each score scored once: task and score -> points and their interval."""
    parts = study.TARGET.read_text(encoding="utf-8").split("## E3")[0].split("### minilm on ")[1:]
    found = {}
    for part in parts:
        task, rows = part.split("\n")[0], part.split("over the whole range:")[-1].split("Ahead of the thesis's")[0]
        for score, once in re.findall(r"^\| `([^`]+)` \| (.*?) \|", rows, re.M):
            found[task, score] = re.findall(r"[+−][\d.]+", once)
    return found


def test_orders_over_the_whole_range(study: ModuleType) -> None:
    known = _whole_ranges(study)
    names = {"sst2": "SST-2", "mrpc": "MRPC", "cola": "CoLA"}
    header = " | ".join(f"[{name}](../study/results.md#minilm-on-{task})" for task, name in names.items())
    for row, *values in table(study, f"score | {header}"):
        numbers = [[float(v.replace("−", "-")) for v in known[task, row.strip("`")]] for task in TASKS]
        assert values == [signed(*one) for one in numbers], row


def test_accuracy_of_gates_taylor_and_one_class(study: ModuleType) -> None:
    cells, text = study.read(), findings(study)
    for task, at in (("mrpc", 0.78), ("cola", 0.58)):
        gates, random = (
            [cells[f"prune-minilm-{task}-{seed}-one-importance-{score}"] for seed in range(3)]
            for score in ("gates", "random")
        )
        floor = gates[0]["steps"][0]["constant"]["accuracy"]
        assert f"{plain(mean_at(gates, at))}, {plain(floor)} and {plain(mean_at(random, at))}" in text


ONCE = "gates taylor anew thesis-2024 thesis-2024-code ablation"
ANEW = "gates shapley ablation thesis-2024-code"


@pytest.mark.parametrize(
    ("first", "way", "scores", "random"),
    [
        ("order", "one-importance", ONCE, "one-importance-random"),
        ("order, measured anew", "iterative", ANEW, "iterative-random-bae01e20"),
    ],
)
def test_orders_on_mpnet(study: ModuleType, first: str, way: str, scores: str, random: str) -> None:
    read = {**study.read(study.TWINS), **study.read()}
    *rows, last = table(study, f"{first} | right | told apart from random orders")
    for (row, right, _), score in zip(rows, scores.split(), strict=True):
        name = "iterative-taylor" if score == "anew" else f"{way}-{score}"
        assert right == plain(mean_at([read[f"prune-mpnet-mrpc-0-{name}"]], 0.58)), row
    near = [
        s["metrics"]["accuracy"]
        for s in read[f"prune-mpnet-mrpc-0-{random}"]["steps"]
        if abs(s["sparsity"] - 0.58) < 0.01
    ]
    assert last[1] == f"{plain(float(np.mean(near)))} ({plain(min(near))} to {plain(max(near))})"


def test_retraining(study: ModuleType) -> None:
    from study.tables import over_seeds

    cells, text = study.read(), findings(study)
    of = {
        score: [cells[f"retrain-minilm-mrpc-{seed}-one-shot-isp-{score}"] for seed in range(3)]
        for score in ("taylor", "thesis-2024")
    }
    ahead = [over_seeds(np.array([c["ahead"][at]["mean"] for c in of["taylor"]])) for at in range(6)]
    assert "by {}, {} and {} points".format(*(f"{100 * m:.1f}" for m, low, _ in ahead if low > 0)) in text
    means = {s: np.array([np.mean([a["mean"] for a in c["ahead"]]) for c in of[s]]) for s in of}
    for values in (*means.values(), means["taylor"] - means["thesis-2024"]):
        assert ends(*(100 * v for v in over_seeds(values))) in text


def test_agreement(study: ModuleType) -> None:
    page = study.TARGET.read_text(encoding="utf-8")
    found = re.findall(r"- (\w+) on (\w+), (\w+): (\S+) \[.*?\] over \d seeds: (.*)\.", page)
    kinds = {"signed": "signed", "without signs": "absolute"}
    changes = {
        (encoder, task, kind): change if verdict in ("rises", "falls") else "–"
        for encoder, task, kind, change, verdict in found
    }
    for encoder, kind, *values in table(study, "encoder | mean | MRPC | SST-2 | CoLA"):
        assert values == [changes[encoder.lower(), task, kinds[kind]] for task in ("mrpc", "sst2", "cola")]


def test_single_heads(study: ModuleType) -> None:
    cells, text = study.read(), findings(study)
    mrpc = [c for n, c in cells.items() if c["experiment"] == "M" and "-minilm-mrpc-" in n]
    worst = [100 * max(v for row in c["cost"] for v in row if v is not None) for c in mrpc]
    assert f"{min(worst):.0f} to {max(worst):.0f} points" in text
    cross = cells["cross-minilm-mnli-0"]
    assert f"r = {ends(cross['r'], cross['low'], cross['high'], 2)}" in text


def test_gates_and_iterative_taylor(study: ModuleType) -> None:
    cells = study.read()
    rows = table(study, "model | gates are ahead | by")
    for (_, steps, points), name in zip(rows, ("demo-demo", "minilm-mrpc", "minilm-sst2"), strict=True):
        leads = cells[f"gates-{name}-0"]["ahead"]["gates"]
        ahead = [100 * at["mean"] for at in leads if at["low"] > 0]
        assert re.findall(r"\d+", steps) == [str(len(ahead)), str(len(leads))]
        assert points.startswith(f"{min(ahead):.1f} to {max(ahead):.1f}")


# figures that come from other pages, and where these have them
ELSEWHERE = (
    ("demo_pruning", "0.673 0.938 0.933 0.918"),
    ("pruning", "1.50 1.49 −0.8 +1.2 −0.5 +0.3"),
    ("distillation", "15.9 1.8"),
)


@pytest.mark.parametrize(("page", "figures"), ELSEWHERE)
def test_figures_of_other_pages(study: ModuleType, page: str, figures: str) -> None:
    (path,) = (p for p in (DOCS, DOCS.parent / "study") for p in p.glob(f"{page}.md"))
    for figure in figures.split():
        assert figure in findings(study)
        assert figure in path.read_text(encoding="utf-8")
