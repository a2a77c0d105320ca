"""What ``headviz`` exports: it can be read (signatures, types, examples), and the examples run."""

from __future__ import annotations

import ast
import doctest
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import headviz
from support.marks import all_in_ci

SRC = Path(headviz.__file__).parent
PUBLIC = {name: getattr(headviz, name) for name in headviz.__all__ if name not in ("UserError", "__version__")}
FUNCTIONS = {name: thing for name, thing in PUBLIC.items() if inspect.isfunction(inspect.unwrap(thing))}
# results and protocols: made by functions whose examples show them
SHOWN_BY_OTHERS = set(
    "Ablation Classifier Comparison Dataset Delta Evaluation EvaluatorOptions HeadScores MaskEvaluator Maps Model "
    "Paired RnnTranslator SampleReport Task TokenAttributions TranslationEvaluation Translator".split()
)
SHOWN = PUBLIC.keys() - SHOWN_BY_OTHERS
TAKE_LONG = {"grade", "prune_faster"}  # all heads one by one, and timings: examples of half a minute


@pytest.fixture(scope="module", autouse=True)
def loaded_once() -> Iterator[None]:
    """The examples load the same few models again and again; models are never edited."""
    with pytest.MonkeyPatch.context() as patch:
        known: dict[str, object] = {}
        load = headviz.load
        patch.setattr(headviz, "load", lambda *a, **k: known.setdefault(repr((a, k)), load(*a, **k)))
        yield


def test_type_checkers_see_the_same_names_as_python() -> None:
    tree = ast.parse(Path(headviz.__file__).read_text(encoding="utf-8"))
    (block,) = [n for n in tree.body if isinstance(n, ast.If)]
    seen = {alias.name: node.module for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert seen == headviz._LAZY


@pytest.mark.parametrize("name", all_in_ci(sorted(SHOWN), sorted(SHOWN - TAKE_LONG)))
def test_the_examples_run(name: str) -> None:
    thing = PUBLIC[name]
    (test,) = doctest.DocTestFinder(recurse=False).find(thing, name, globs={})
    assert test.examples, f"{name} has no example"
    said: list[str] = []
    found = doctest.DocTestRunner(verbose=False).run(test, out=said.append)
    assert not found.failed, "".join(said)


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_no_signature_hides_behind_any(name: str) -> None:
    signature = inspect.signature(FUNCTIONS[name])
    assert signature.return_annotation not in ("Any", inspect.Signature.empty)
    for parameter in signature.parameters.values():
        open_ended = parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)
        assert parameter.annotation is not parameter.empty
        assert not (open_ended and "Any" in str(parameter.annotation)), parameter


def test_every_public_thing_says_what_it_is() -> None:
    assert not [name for name, thing in PUBLIC.items() if not (inspect.getdoc(thing) or "").strip()]


def test_what_generated_recipes_call_is_exported() -> None:
    """Recipes import ``headviz`` and, for runs, modules; every function they call is ``headviz.name``."""
    sources = [path.read_text(encoding="utf-8") for path in SRC.rglob("*.py")]
    called = {name for text in sources for name in re.findall(r'(?:Call|found_by)\("(?:headviz\.)?(\w+)"', text)}
    imported = {names for text in sources for names in re.findall(r'Import\("(headviz[^)]*)\)', text)}
    own = {"dict", "len", "print", "range", "zip"}
    assert called & {"ablate", "conductance", "distil", "prepare", "stack_report"}
    assert called - own <= set(headviz.__all__)
    assert imported == {'headviz"', 'headviz", ("plugins",', 'headviz.runs", ("reading",', 'headviz.runs", ("service",'}
