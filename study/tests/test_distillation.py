"""The figures of docs/distillation.md are those of the files beside it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import headviz
from headviz.models.recurrent_network import RnnConfig
from study import distillation

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
TEXT = re.sub(r"\s+", " ", (DOCS / "distillation.md").read_text(encoding="utf-8"))


def test_the_measured_sections_are_made_from_the_files() -> None:
    page = (DOCS / "distillation.md").read_text(encoding="utf-8")
    assert page.split(distillation.BEGIN)[1].split(distillation.END)[0].strip() == distillation.sections().strip()


def ends(part: str) -> dict[str, tuple[float, float, float]]:
    """Mean and interval at the end, for each start; accuracy in per cent."""
    found = json.loads((DOCS / f"distillation-{part}.json").read_text(encoding="utf-8"))
    metric, scale = found["part"]["metric"], 100 if found["part"]["metric"] == "accuracy" else 1
    rows = {
        s["init"]: [s[k][metric] * scale for k in ("metrics", "interval_low", "interval_high")]
        for s in found["students"]
    }
    rows["teacher"] = [found["teacher"]["metrics"][metric] * scale] * 3
    return {init: (mean, low, high) for init, (mean, low, high) in rows.items()}


def said(row: tuple[float, float, float], digits: int = 1) -> str:
    return f"{row[0]:.{digits}f} [{row[1]:.{digits}f}, {row[2]:.{digits}f}]"


def test_the_claims_about_the_recurrent_model_are_the_files() -> None:
    rnn, total = ends("rnn"), ends("rnn-total")["random"]
    assert f"{said(rnn['copy'])} BLEU from copied weights and at {said(rnn['random'])} from random ones" in TEXT
    assert f"the teacher has {rnn['teacher'][0]:.1f}" in TEXT
    assert f"({rnn['copy'][0] / rnn['random'][0]:.1f} times, the paper's is {17.73 / 13.35:.2f} times)" in TEXT
    assert f"end at {said(total)}: still below copied weights" in TEXT
    assert total[2] < rnn["copy"][1]
    assert f"the teacher's logits end at {said(rnn['kd'])} BLEU" in TEXT
    assert rnn["kd"][2] < rnn["random"][1]
    assert f"{rnn['variational'][0]:.2f} against {rnn['conditional'][0]:.1f} BLEU without attention" in TEXT


def test_the_claims_under_the_papers_conditions_are_the_file() -> None:
    paper = ends("rnn-paper")
    assert f"copied weights end at {said(paper['copy'])} BLEU, random ones at {said(paper['random'])}" in TEXT
    assert f"teacher, with 8,000 updates, at {paper['teacher'][0]:.1f}." in TEXT
    assert paper["copy"][1] > paper["random"][2]
    assert f"Copying is {paper['copy'][0] / paper['random'][0]:.1f} times as good" in TEXT
    assert paper["conditional"] == paper["copy"]  # it was declined


def test_the_claims_about_heads_and_layers_are_the_files() -> None:
    heads, decoder = ends("heads"), ends("decoder")
    assert (
        f"{heads['copy'][0]:.1f} % [{heads['copy'][1]:.1f}, {heads['copy'][2]:.1f}] of {heads['teacher'][0]:.1f} %"
        in TEXT
    )
    assert f"({said(heads['random'], 0).replace(' [', ' % [')}, where one class alone gives 33 %)" in TEXT
    assert heads["conditional"][1] < heads["copy"][0] < heads["conditional"][2]  # not told apart
    assert f"{heads['variational'][0]:.0f} against {heads['conditional'][0]:.0f} % without a layer's heads" in TEXT
    assert f"{decoder['variational'][0]:.0f} against {decoder['conditional'][0]:.1f} BLEU" in TEXT
    assert decoder["conditional"][0] < decoder["copy"][0]
    assert decoder["copy"][1] < decoder["conditional"][2]
    assert f"{decoder['copy'][0] - decoder['conditional'][0]:.0f}" == "1"  # BLEU point
    assert f"moves the weights by {moved('decoder'):.1f} %" in TEXT
    assert f"without a layer's heads, {moved('heads'):.1f} %" in TEXT
    assert f"moves them by {round(moved('rnn'), -1):.0f} %" in TEXT


def test_every_table_stands_beside_its_budget_and_says_who_chose_the_shrinkage() -> None:
    for path in sorted(DOCS.glob("distillation-*.json")):
        found = json.loads(path.read_text(encoding="utf-8"))
        had, given = found["teacher_updates"], found["part"]["training"]["steps"]
        assert f"the teacher had {had:,} updates, every student gets {given:,} (" in TEXT
    decoder = json.loads((DOCS / "distillation-decoder.json").read_text(encoding="utf-8"))
    by_hand = decoder["part"]["posterior"]["shrinkage"] is not None
    assert ("given by hand" in TEXT.split("## What the figures show")[0]) == by_hand


def test_no_table_of_the_page_lacks_a_file() -> None:
    """Figures stand between the marks, which the files fill; the two tables behind them had no file."""
    behind = (DOCS / "distillation.md").read_text(encoding="utf-8").split("<!-- measured: end -->")[1]
    rows = [line for line in behind.splitlines() if line.lstrip().startswith("|")]
    assert [r for r in rows if "distance from the copied weights" in r] == []
    assert len([r for r in rows if set(r.strip()) <= set("|-")]) == 1  # that of what differs from the paper


def test_what_differs_from_the_paper_is_what_the_parts_say() -> None:
    said = {
        row.split("|")[1].strip(): [cell.strip() for cell in row.split("|")[2:-1]]
        for row in (DOCS / "distillation.md")
        .read_text(encoding="utf-8")
        .split("## Not as in the paper")[1]
        .splitlines()
        if row.startswith("|")
    }
    for column, name in ((1, "rnn"), (2, "rnn-paper")):
        part, network = distillation.PARTS[name], distillation.PARTS[name].network
        config = RnnConfig(9, 9, **network)
        state = {"state": "the decoder's state", "state-and-context": "state and context"}[config.reads]
        assert said["output layer reads"][column] == state
        assert said["first weights"][column].startswith("uniform") == (config.initialisation == "uniform")
        assert said["dropout"][column] == (f"{config.dropout:g}" if config.dropout else "none")
        beams = "greedy" if part.beams == 1 else f"beam search, {part.beams} beams"
        assert said["translations"][column] == beams
        forced = {1.0: "the reference's", 0.5: "half the reference's, half its own"}
        assert said["target words while learning"][column] == forced[part.training.forcing]
        assert part.teaching.forcing == part.training.forcing
        assert part.teaching.steps == part.training.steps
        sizes = f"{config.embedding}, {config.hidden}, {config.units}"
        assert said["embedding, hidden, attention"][column] == sizes
    assert f"the longest {distillation.PARTS['rnn-paper'].longest:,} of these" in TEXT


def test_the_longest_pairs_are_the_longest(tmp_path: Path) -> None:
    folder = distillation.long_pairs(50, tmp_path)
    pairs = {}
    for split in ("train", "dev"):
        data = headviz.load_task("demo-translation", split=split)
        sizes = sorted(len(f"{s} {t}".split()) for s, t in zip(data.texts, data.references, strict=True))
        long = headviz.load_task("custom-translation", split=split, data=str(folder))
        pairs[split] = list(zip(long.texts, long.references, strict=True))
        assert set(pairs[split]) <= set(zip(data.texts, data.references, strict=True))
        least = min(len(f"{s} {t}".split()) for s, t in pairs[split])
        assert least >= sizes[-(50 if split == "train" else 5 * distillation.DEV)]
    assert (len(pairs["train"]), len(pairs["dev"])) == (50, distillation.DEV)


def test_training_losses_are_drawn_where_there_are_some() -> None:
    curve = [{"step": 0, "loss": None}, {"step": 5, "loss": 4.0}, {"step": 10, "loss": 2.0}]
    found = {"students": [{"init": "copy", "curve": curve}], "teacher": {"metrics": {"bleu": 3.0}}}
    drawn = distillation.picture(found, distillation.LOSS)
    assert "copy 2" in drawn
    assert "teacher" not in drawn
    assert distillation.points(found["students"][0], distillation.LOSS) == [(5, 4.0, None, None), (10, 2.0, None, None)]


def test_the_pictures_are_what_the_files_say() -> None:
    shown = re.findall(r"\((distillation-[^)]*\.svg)\)", TEXT)
    assert sorted(shown) == sorted(path.name for path in DOCS.glob("distillation-*.svg"))
    for name in shown:
        part = name.removeprefix("distillation-").removesuffix(".svg").removesuffix("-loss")
        record = json.loads((DOCS / f"distillation-{part}.json").read_text(encoding="utf-8"))
        metric = distillation.LOSS if name.endswith("-loss.svg") else distillation.PARTS[part].metric
        assert (DOCS / name).read_text(encoding="utf-8") == distillation.picture(record, metric)


def moved(part: str) -> float:
    found = json.loads((DOCS / f"distillation-{part}.json").read_text(encoding="utf-8"))
    return 100 * found["teacher"]["prior"]["moved"]
