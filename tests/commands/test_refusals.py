"""What can be refused without torch is refused before torch is imported, which takes seconds."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from headviz.errors import NO_ROOM
from support.loaded import loaded_by

DEMO = "evaluate --model demo --task demo"
REFUSED = [
    "info --model ./nowhere",
    "info --model empty",
    "info --model someone/not-there",
    "evaluate --model ./nowhere --task sst2",
    "evaluate --model demo --task sst3",
    "evaluate --model demo --task sst2 --data ./nowhere",
    "evaluate --model demo --task custom --data empty",
    "evaluate --model demo --task custom --data full/dev.csv",
    "score --model demo --task custom --data full/dev.csv --score taylor",
    "ablate --model demo --task custom --data full/dev.csv",
    f"{DEMO} --split nine",
    f"{DEMO} --off 3.x",
    f"{DEMO} --mask nothing.json",
    f"{DEMO} --device tpu",
    f"{DEMO} --dtype int8",
    f"{DEMO} --off 3.5 --ablation nothing",
    "score --model demo --task demo --score tailor",
    "score --model demo --task demo --score taylor --set abs_level=word",
    "score --model demo --task demo --length-filter long",
    "ablate --model demo --task demo --metric f9",
    "analyse speed --model ./nowhere",
    "analyse pruning-curves --model demo --task demo --scores tailor",
    "grade --model demo --task demo --scores tailor",
    "roles --model ./nowhere --task demo",
    "tokens --model demo --text a --methods none",
    "conductance --model demo --text a --rule none --out maps.npz",
    "conductance --model demo --text a --target none --out maps.npz",
    "conductance --model demo --text a --target gold --label none --out maps.npz",
    "tokens --model demo --text a --target none",
    "patch --model demo --text a --donor b --target none",
    "patch --model ./nowhere --text a --donor b",
    "finetune --model ./nowhere --task sst2 --out x",
    "finetune --model demo --task demo --out full",
    "finetune --model demo --task custom --data ./nowhere --out x",
    "prune --model ./nowhere --off 1.1 --out x",
    "prune --model demo --faster 2 --out x",
    "prune --model demo --out x",
    "prune --model demo --task custom --data ./nowhere --off 1.1 --out x",
    "prune --model demo --task custom --data ./nowhere --faster 2 --out x",
    "prune --model demo --task custom --data full --faster 2 --out x",
    "export --model demo --out x --precision int4",
    "convert ./nowhere --out x",
    "run start --model ./nowhere --task demo --algorithm iterative",
    "run start --model demo --task demo --algorithm none",
    "run start --model demo --task demo --algorithm iterative --score tailor",
    "run show nothing",
    "distill --model ./nowhere --task demo --remove layers:1 --out x",
]


def test_refusals_come_before_torch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All in one process: what one of them imports would be seen at the next."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "dev.csv").write_text("a,b,label\na dog,a cat,0\na cat,a dog,1\n")  # not the demo's classes
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HEADVIZ_HOME", str(tmp_path / "home"))
    code = (
        "import json, sys; from headviz.cli import main\n"
        f"for line in json.loads({json.dumps(json.dumps(REFUSED))}):\n"
        "    assert main(line.split()) == 2, line\n"
        "    assert 'torch' not in sys.modules and 'transformers' not in sys.modules, line"
    )
    assert loaded_by(code, "torch", "transformers", "streamlit", "pandas", "narwhals") == []  # plotly's slow part


@pytest.mark.slow
@pytest.mark.parametrize("command", ["evaluate", "score", "tokens", "conductance", "prune", "distill"])
def test_help_comes_before_torch(command: str) -> None:
    code = f"from headviz.cli import main\ntry: main(['{command}', '--help'])\nexcept SystemExit: pass"
    assert loaded_by(code, "torch", "transformers", "streamlit", "pandas") == []


@pytest.mark.slow
def test_too_little_memory_is_refused_before_torch_is_imported() -> None:
    """Under 0.9 GB the import of scipy hung for minutes, under 0.55 GB the process aborted."""
    for limit in (9 * 10**8, 5 * 10**8):
        done = subprocess.run(
            [sys.executable, "-m", "headviz", "info", "--model", "demo", "--device", "cpu"],
            capture_output=True,
            text=True,
            timeout=60,
            preexec_fn=lambda most=limit: resource.setrlimit(resource.RLIMIT_AS, (most, most)),
        )
        assert (done.returncode, done.stderr) == (2, f"headviz: {NO_ROOM}\n")
