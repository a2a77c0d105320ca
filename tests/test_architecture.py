"""Imports point one way, streamlit stays in the interface, module paths stay in models/."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SRC = ROOT / "src" / "headviz"

# Lowest first. A module imports from its own level or below; a new module is added here, once.
LEVELS: list[str] = [
    "errors heads home palette tables results connections waiting progressbar",
    "attention tasks store strictdisk significance resampling comparison maskedit reference",
    "models",
    "fastlinear rules path maps inputs explaining conductance_maps attattr_maps tokens "
    "evaluation translating statecache evaluator restore attentionshift",
    "scores",
    "analyses pruning demo distillation",
    "runs",
    "charts charts_maps charts_parts charts_heads charts_curves charts_analyses charts_runs charts_distil htmlpage "
    "report report_heads report_steps",
    "commands cli __main__",
    "ui",
]
LEVEL = {name: level for level, names in enumerate(LEVELS) for name in names.split()}
# who may know the demo by name: the tables of models and of tasks
KNOWS_DEMO = {"models.loading", "tasks.table", "tasks.loading", "commands", "ui", "demo"}


def modules() -> dict[str, Path]:
    """Dotted name below headviz -> file; a package stands under its own name."""
    found = {}
    for path in sorted(SRC.rglob("*.py")):
        parts = path.relative_to(SRC).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        if name:
            found[name] = path
    return found


MODULES = modules()


def imports(name: str) -> Iterator[tuple[str, int]]:
    """What a module imports when it runs, as dotted names below headviz or as outside names, with the line."""
    path = MODULES[name]
    tree = ast.parse(path.read_text(encoding="utf-8"))
    package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    for_types = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
        for statement in node.body
        for inner in ast.walk(statement)
    }
    for node in ast.walk(tree):
        if id(node) in for_types:
            continue
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            inside = package[: len(package) - node.level + 1] if node.level else []
            base = ["headviz", *inside] if node.level else []
            target = ".".join([*base, *(node.module or "").split(".")]).strip(".")
            yield from ((f"{target}.{alias.name}", node.lineno) for alias in node.names)


def test_every_module_has_a_level() -> None:
    assert {name.split(".")[0] for name in MODULES} == set(LEVEL)


@pytest.mark.parametrize("name", MODULES)
def test_imports_point_one_way(name: str) -> None:
    own = name.split(".")[0]
    for target, line in imports(name):
        if not target.startswith("headviz."):
            continue
        other = target.split(".")[1]
        if other == own or other not in LEVEL:
            continue
        if other == "demo":
            assert own in KNOWS_DEMO or name in KNOWS_DEMO, f"{name}, line {line}: knows the demo"
        else:
            assert LEVEL[other] <= LEVEL[own], f"{name}, line {line}: {target} stands above {own}"


@pytest.mark.parametrize("name", [n for n in MODULES if n.split(".")[0] != "ui"])
def test_streamlit_stays_in_the_interface(name: str) -> None:
    for target, line in imports(name):
        assert target.split(".")[0] != "streamlit", f"{name}, line {line}"


@pytest.mark.parametrize("name", [n for n in MODULES if n.split(".")[0] != "models"])
def test_module_paths_stay_in_models(name: str) -> None:
    """Names of modules inside a transformers model, such as ``encoder.layer``, are known in one place."""
    text = MODULES[name].read_text(encoding="utf-8")
    inner = re.compile(
        r"\bencoder\.layer\b|\battention\.self\b|\boutput\.dense\b|\btransformer\.layer\b|\b[qkv]_lin\b|\bWqkv\b|albert_layer"
    )
    lines = [i for i, line in enumerate(text.splitlines(), 1) if inner.search(line)]
    assert not lines, f"{name}: lines {lines}"


@pytest.mark.parametrize("name", MODULES)
def test_no_pickle(name: str) -> None:
    forbidden = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"}
    for target, line in imports(name):
        assert target.split(".")[0] not in forbidden, f"{name}, line {line}: {target}"
    text = MODULES[name].read_text(encoding="utf-8")
    for call in ("torch.load(", "allow_pickle=True", "weights_only=False", "trust_remote_code=True"):
        assert call not in text, f"{name}: {call}"


def test_the_command_line_starts_without_heavy_imports() -> None:
    code = (
        "import sys, headviz.cli; headviz.cli.main(['--help']); "
        "print([m for m in ('torch', 'transformers', 'numpy', 'streamlit', 'pandas') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.strip().splitlines()[-1] == "[]"
