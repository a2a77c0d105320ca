"""What ``headviz`` exports: it can be read (signatures, types, examples), and the examples run."""

from __future__ import annotations

import ast
import doctest
import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import headviz
from headviz import plugins
from headviz.runs import reading, service
from support.marks import seeds
from support.plugin_files import nothing_stays

__all__ = ["nothing_stays"]

SRC = Path(headviz.__file__).parent
PUBLIC = {name: getattr(headviz, name) for name in headviz.__all__ if name not in ("UserError", "__version__")}
FUNCTIONS = {name: thing for name, thing in PUBLIC.items() if inspect.isfunction(inspect.unwrap(thing))}
# functions of modules that recipes import whole
BESIDE = {
    f"{module.__name__.rpartition('.')[2]}.{name}": getattr(module, name)
    for module, names in (
        (service, ("start", "wait_for", "cancel", "resume")),
        (reading, ("show", "overview")),
        (plugins, ("load",)),
    )
    for name in names
}
# members whose type only transformers knows: it differs between families
OF_TRANSFORMERS = {"config", "module", "attention_module"}
# results and protocols: made by functions whose examples show them
SHOWN_BY_OTHERS = set(
    "Ablation Classifier Comparison Dataset Delta Evaluation EvaluatorOptions Exported HeadScores MaskEvaluator Maps "
    "Model Paired RnnTranslator SampleReport Task TokenAttributions TranslationEvaluation Translator".split()
)
SHOWN = PUBLIC.keys() - SHOWN_BY_OTHERS
LONG = {"prune_faster", "grade"}  # tests/analyses and docs/faster.md run both


@pytest.fixture(scope="module", autouse=True)
def loaded_once() -> Iterator[None]:
    """The examples load the same few models again and again; models are never edited."""
    with pytest.MonkeyPatch.context() as patch:
        known: dict[str, object] = {}
        load: Callable[..., object] = headviz.load

        def once(*args: object, **options: object) -> object:
            key = repr((args, options))
            if key not in known:
                known[key] = load(*args, **options)
            return known[key]

        patch.setattr(headviz, "load", once)
        patch.setattr("headviz.analyses.grading.SEEDS", 1)  # random orders
        yield


def test_type_checkers_see_the_same_names_as_python() -> None:
    tree = ast.parse(Path(headviz.__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    seen = {alias.asname: node.module for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    rooms = {name: plugins.module_of(name).removeprefix("headviz.") for name in plugins.public_names()}
    assert seen == headviz._LAZY | rooms


@pytest.mark.slow
@pytest.mark.parametrize("name", seeds(sorted(SHOWN - LONG), sorted(LONG)))
def test_the_examples_run(name: str) -> None:
    thing = (PUBLIC | BESIDE)[name]
    (test,) = doctest.DocTestFinder(recurse=False).find(thing, name, globs={})
    assert test.examples, f"{name} has no example"
    said: list[str] = []
    result = doctest.DocTestRunner(verbose=False).run(test, out=said.append)
    assert not result.failed, "".join(said)


@pytest.mark.slow
@pytest.mark.usefixtures("nothing_stays")
@pytest.mark.parametrize("name", sorted(BESIDE))
def test_the_examples_of_what_recipes_import_run(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(SRC.parents[1])
    test_the_examples_run(name)


def members(kind: type) -> dict[str, Callable[..., object]]:
    """The public methods of a class, and the getters of its properties, that headviz itself defines."""
    result = {}
    for name in dir(kind):
        static = inspect.getattr_static(kind, name)
        made = getattr(static, "fget", None) or getattr(static, "func", None) or getattr(static, "__func__", static)
        ours = inspect.isfunction(made) and made.__module__.startswith("headviz")
        if ours and not name.startswith("_") and name not in OF_TRANSFORMERS:
            result[name] = made
    return result


def hides(thing: Callable[..., object]) -> list[str]:
    """What of a signature says nothing about its types."""
    signature = inspect.signature(thing)
    result = [] if signature.return_annotation not in ("Any", inspect.Signature.empty) else ["what it returns"]
    for parameter in signature.parameters.values():
        open_ended = parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)
        untyped = parameter.annotation is parameter.empty and parameter.name not in ("self", "cls")
        if untyped or (open_ended and "Any" in str(parameter.annotation)):
            result.append(str(parameter))
    return result


def test_no_signature_hides_behind_any() -> None:
    things = FUNCTIONS | BESIDE
    for name, thing in PUBLIC.items():
        if inspect.isclass(thing):
            things |= {f"{name}.{member}": method for member, method in members(thing).items()}
    assert "Maps.plot" in things
    assert not {name: wrong for name, thing in things.items() if (wrong := hides(thing))}


@pytest.mark.slow
def test_what_generated_recipes_call_is_exported() -> None:
    """Recipes import ``headviz`` and, for runs, modules; every function they call is ``headviz.name``."""
    sources = [path.read_text(encoding="utf-8") for path in SRC.rglob("*.py")]
    written = [node.value for text in sources for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Constant)]
    code = "\n".join(text for text in written if isinstance(text, str))
    called = set(re.findall(r"\bheadviz\.(\w+)\(", code)) | set(
        re.findall(r"""\bcall\(["']headviz\.(\w+)""", "".join(sources))
    )
    assert {"ablate", "conductance", "distil", "load_task", "prepare", "sample", "stack_report"} <= called
    assert called <= set(headviz.__all__)
    used = set(re.findall(r"^((?:service|reading|plugins)\.\w+)\(", code, re.M)) | {"plugins.load"}
    assert {"reading.show", "service.start"} <= used <= set(BESIDE)
