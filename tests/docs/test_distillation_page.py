"""The figures of docs/distillation.md are those of the files beside it."""

from __future__ import annotations

import json
import re
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
TEXT = re.sub(r"\s+", " ", (DOCS / "distillation.md").read_text(encoding="utf-8"))


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """bench/distillation.py, under a name of its own: the tests have a folder of that name."""
    spec = spec_from_file_location("bench_distillation", ROOT / "bench" / "distillation.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    return module


def test_the_measured_sections_are_made_from_the_files(bench: ModuleType) -> None:
    page = (DOCS / "distillation.md").read_text(encoding="utf-8")
    assert page.split(bench.BEGIN)[1].split(bench.END)[0].strip() == bench.sections().strip()


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
    assert f"moves the weights by {moved('decoder'):.1f} %" in TEXT
    assert f"without a layer's heads, {moved('heads'):.1f} %" in TEXT
    assert f"moves them by {round(moved('rnn'), -1):.0f} %" in TEXT


def moved(part: str) -> float:
    found = json.loads((DOCS / f"distillation-{part}.json").read_text(encoding="utf-8"))
    return 100 * found["teacher"]["prior"]["moved"]
