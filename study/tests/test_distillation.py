"""The figures of study/distillation.md are those of the files in study/students."""

from __future__ import annotations

import json
import re
from pathlib import Path

import headviz
from study import distillation

PAGE = distillation.PAGE.read_text(encoding="utf-8")


def test_the_measured_sections_are_made_from_the_files() -> None:
    assert PAGE.split(distillation.BEGIN)[1].split(distillation.END)[0].strip() == distillation.sections().strip()


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
    result = {"students": [{"init": "copy", "curve": curve}], "teacher": {"metrics": {"bleu": 3.0}}}
    drawn = distillation.picture(result, distillation.LOSS)
    assert "copy 2" in drawn
    assert "teacher" not in drawn
    assert distillation.points(result["students"][0], distillation.LOSS) == [
        (5, 4.0, None, None),
        (10, 2.0, None, None),
    ]


def test_the_pictures_are_what_the_files_say() -> None:
    shown = re.findall(r"\(students/([^)]*\.svg)\)", PAGE)
    assert sorted(shown) == sorted(path.name for path in distillation.FILES.glob("*.svg"))
    for name in shown:
        part = name.removesuffix(".svg").removesuffix("-loss")
        record = json.loads((distillation.FILES / f"{part}.json").read_text(encoding="utf-8"))
        metric = distillation.LOSS if name.endswith("-loss.svg") else distillation.PARTS[part].metric
        assert (distillation.FILES / name).read_text(encoding="utf-8") == distillation.picture(record, metric)
