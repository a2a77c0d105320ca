"""Imports point one way and never in a circle, streamlit stays in the interface, module paths stay in models/."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

import headviz
from headviz.answers.answer import Answer
from support.loaded import loaded_by

ROOT = Path(__file__).resolve().parents[1]
SRC = ROOT / "src" / "headviz"

# Lowest first. A package imports only from packages named before it, in its own line as well; the lines are there to
# be read.
LEVELS = [
    "errors results options heads progress plugins",
    "storage reference demo engine",
    "attention statistics answers tasks",
    "models",
    "evaluation attribution",
    "scores display",
    "analyses pruning",
    "runs reports",
    "cli commands __main__ notebook transformers4",
    "ui",
    "extras",
]
PACKAGES = " ".join(LEVELS).split()
# the same inside ui/: a page may show parts of the pages before it; a page that is not named stands last
UI = (
    "widgets shell parts pages.head pages.analyses pages.orders pages.scores pages.masklab pages.runs pages.data "
    "pages.compare pages.workbench"
).split()
TOP = set("heads options attention results errors progress cli plugins transformers4 __init__ __main__".split())
# who may know the demo by name: the tables of models and of tasks
KNOWS_DEMO = set("models.hub tasks.catalogue tasks.loading commands ui demo analyses.grading analyses.grades".split())
KNOWS_DEMO |= {"", "extras.translation.tasks"}
PICKLES = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"}
UNSAFE = ("torch.load(", "allow_pickle=True", "weights_only=False", "trust_remote_code=True")
INNER = re.compile(
    r"\bencoder\.layer\b|\battention\.self\b|\boutput\.dense\b|\btransformer\.layer\b|\b[qkv]_lin\b|\bWqkv\b|albert_layer"
)

# Nothing outside models/, answers/ and extras/ may ask of which kind a model or a task is.
MODEL_CLASSES = {"Classifier", "Embedder", "Network", "TransformerModel", "Translator", "RnnTranslator"}
MODEL_CLASSES |= {"Evaluator", "TranslationEvaluator"}
# what a model is called where it is asked for its classes; other things have classes, too
MODEL_NAMES = {"clf", "model", "base", "full", "small", "teacher", "student"}
KIND_FLAGS = {"is_regression", "is_translation", "is_translator", "is_recurrent", "translates"}
KINDS = {"CLASSIFICATION", "MASKED_LM", "TRANSLATION", "classification", "translation"}


def modules(folder: Path) -> dict[str, Path]:
    """Dotted name below the folder -> file; a package stands under its own name, the folder itself under ""."""
    result = {}
    for path in sorted(folder.rglob("*.py")):
        parts = path.relative_to(folder).with_suffix("").parts
        result[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return result


MODULES = modules(SRC)
TEXTS = {name: path.read_text(encoding="utf-8") for name, path in MODULES.items()}


@cache
def parsed(text: str) -> ast.Module:
    return ast.parse(text)


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """Every statement below, without the expressions, which are many."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt | ast.excepthandler | ast.match_case):
            yield child
            yield from statements(child)


def imports(name: str, text: str, is_package: bool) -> Iterator[tuple[str, int]]:
    """Every name a module imports, with the line: at the top, in a function or for types. Its own package's names
    start with ``headviz.``."""
    package = [p for p in name.split(".") if p]
    if not is_package:
        package = package[:-1]
    for node in statements(parsed(text)):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            inside = ["headviz", *package[: len(package) - node.level + 1]] if node.level else []
            base = ".".join([*inside, *filter(None, [node.module])])
            yield from ((f"{base}.{alias.name}", node.lineno) for alias in node.names)


@cache
def imported(name: str) -> list[tuple[str, int]]:
    return list(imports(name, TEXTS[name], MODULES[name].name == "__init__.py"))


@cache
def graph() -> dict[str, dict[str, int]]:
    """Module -> the modules of headviz it imports, each with the line. The version alone is no import."""
    edges: dict[str, dict[str, int]] = {name: {} for name in MODULES}
    for name, result in edges.items():
        for target, line in imported(name):
            if target.split(".")[0] != "headviz" or target == "headviz.__version__":
                continue
            inner = target.removeprefix("headviz").strip(".")
            module = inner if inner in MODULES else inner.rpartition(".")[0]
            assert module in MODULES, f"{where(name, line)}: there is no {target}"
            if module != name:
                result.setdefault(module, line)
    return edges


def circles(graph: dict[str, dict[str, int]]) -> list[set[str]]:
    """The largest sets of modules of which each can be reached from each other."""

    def reached(start: str) -> set[str]:
        seen, todo = set(), [start]
        while todo:
            for target in graph[todo.pop()]:
                if target not in seen:
                    seen.add(target)
                    todo.append(target)
        return seen

    reach = {name: reached(name) for name in graph}
    result = {frozenset(m for m in reach[name] if name in reach[m]) for name in graph if name in reach[name]}
    return sorted(map(set, result), key=sorted)


def where(name: str, line: int) -> str:
    return f"{MODULES[name].relative_to(ROOT)}:{line}"


def top(name: str) -> str:
    return name.split(".")[0]


def page(name: str) -> str:
    """A module's place in ``UI``."""
    parts = name.split(".")[1:]
    return ".".join(parts[: 2 if parts[0] == "pages" else 1])


def test_every_package_has_a_level_and_nothing_else_lies_on_top() -> None:
    assert len(PACKAGES) == len(set(PACKAGES))
    assert {path.stem for path in SRC.glob("*.py")} <= TOP
    assert {top(name) for name in MODULES} - {""} <= set(PACKAGES)
    inside = {page(name) for name in MODULES if name.count(".") > 1 and top(name) == "ui"}
    assert {part for part in inside if not part.startswith("pages.")} <= set(UI)


def test_at_most_thirteen_packages_stand_on_each_other() -> None:
    """The longest chain in which each package imports the next one."""
    below: dict[str, set[str]] = {name: set() for name in PACKAGES}
    for name, targets in graph().items():
        if name:  # the front door names what it exports
            below[top(name)] |= {top(target) for target in targets if target} - {top(name)}
    floors: dict[str, int] = {}
    for name in PACKAGES:  # what a package imports stands before it
        floors[name] = 1 + max((floors[target] for target in below[name]), default=0)
    assert max(floors.values()) <= 13


def test_imports_point_one_way() -> None:
    place = {name: i for i, name in enumerate(PACKAGES)}
    wrong = [
        f"{where(name, line)}: {target}"
        for name, targets in graph().items()
        for target, line in targets.items()
        if name and target and place[top(target)] > place[top(name)]
    ]
    assert not wrong


def test_imports_point_one_way_inside_the_interface() -> None:

    def level(name: str) -> int:
        return UI.index(page(name)) if page(name) in UI else len(UI)

    wrong = [
        f"{where(name, line)}: {target}"
        for name, targets in graph().items()
        for target, line in targets.items()
        if name.startswith("ui.") and target.startswith("ui.") and level(target) > level(name)
    ]
    assert not wrong


def test_no_circles_not_even_in_functions_or_for_types() -> None:
    result = circles(graph())
    lines = [f"{where(a, graph()[a][b])}: {b}" for c in result for a in sorted(c) for b in graph()[a] if b in c]
    assert not result, "\n".join(lines)


def test_the_demo_is_known_to_few() -> None:
    wrong = [
        where(name, line)
        for name, targets in graph().items()
        for target, line in targets.items()
        if top(target) == "demo" and not {name, top(name)} & KNOWS_DEMO
    ]
    assert not wrong


def test_nothing_imports_the_study() -> None:
    folders = ("src", "tests", "bench", "tools", "docs", "examples", "pages")
    files = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    wrong = [path for path in files if re.search(r"^\s*(from|import) study\b", path.read_text(encoding="utf-8"), re.M)]
    assert wrong == []


def test_rooms_do_not_know_each_other_and_nothing_knows_them() -> None:
    """The front door names what it exports; the plugins' door names the folder."""
    wrong = [
        f"{where(name, line)}: {target}"
        for name, targets in graph().items()
        for target, line in targets.items()
        if top(target) == "extras" and name and name.split(".")[:2] != target.split(".")[:2]
    ]
    assert not wrong


def test_streamlit_stays_in_the_interface() -> None:
    wrong = [
        where(name, line)
        for name in MODULES
        if top(name) != "ui" and name.split(".")[2:3] != ["pages"]  # extras.ROOM.pages
        for target, line in imported(name)
        if top(target) == "streamlit"
    ]
    assert not wrong


def test_transformers_is_taken_from_one_module() -> None:
    """Threads that load it at once would meet half-loaded modules, see ``headviz.attention``."""
    own = re.compile(r"^\s*(import transformers|from transformers)\b", re.MULTILINE)
    result = {name for name, path in MODULES.items() if own.search(path.read_text(encoding="utf-8"))}
    # the second runs while transformers is being imported, the others only write such a line
    assert result == {"attention", "models.uneven", "models.saving"}


def test_module_paths_stay_in_models() -> None:
    """Names of modules inside a transformers model, such as ``encoder.layer``, are known in one place."""
    wrong = [
        f"{where(name, i)}: {line.strip()}"
        for name, text in TEXTS.items()
        if top(name) != "models"
        for i, line in enumerate(text.splitlines(), 1)
        if INNER.search(line)
    ]
    assert not wrong


def kind_checks(text: str) -> Iterator[int]:
    """The lines that ask for a kind: ``isinstance`` or ``type`` of a model, a flag, a comparison with a kind's name or
    of a job with a text, and whether a model has classes.

    A property that hands a flag on under the same name asks nothing, and ``clf.classes or ()`` neither.
    """

    def of_model(node: ast.AST) -> bool:
        if not (isinstance(node, ast.Attribute) and node.attr == "classes"):
            return False
        owner = node.value
        name = owner.attr if isinstance(owner, ast.Attribute) else owner.id if isinstance(owner, ast.Name) else ""
        return name in MODEL_NAMES

    def asked(node: ast.AST) -> list[ast.expr]:
        """What a node asks for being true, or None."""
        if isinstance(node, ast.If | ast.IfExp | ast.While | ast.Assert):
            return [node.test]
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return [node.operand]
        if isinstance(node, ast.BoolOp):
            return node.values if isinstance(node.op, ast.And) else []
        if isinstance(node, ast.Compare):
            return [node.left]
        if isinstance(node, ast.comprehension):
            return node.ifs
        return node.args if isinstance(node, ast.Call) and ast.unparse(node.func) == "bool" else []

    def words(node: ast.AST) -> set[str]:
        inside = list(ast.walk(node))
        named = {n.id for n in inside if isinstance(n, ast.Name)} | {
            n.attr for n in inside if isinstance(n, ast.Attribute)
        }
        return named | {n.value for n in inside if isinstance(n, ast.Constant) and isinstance(n.value, str)}

    def of_kind(node: ast.Compare) -> bool:
        sides = [node.left, *node.comparators]
        named = {getattr(side, "attr", getattr(side, "id", "")) for side in sides}
        texts = {n.value for side in sides for n in ast.walk(side) if isinstance(n, ast.Constant)}
        is_model = any(ast.unparse(side).startswith("type(") for side in sides) and set().union(*map(words, sides))
        return bool(
            set().union(*map(words, sides)) & KINDS
            or ("job" in named and any(isinstance(text, str) for text in texts))
            or (is_model and is_model & MODEL_CLASSES)
        )

    def walk(node: ast.AST) -> Iterator[int]:
        if isinstance(node, ast.FunctionDef) and node.name in KIND_FLAGS:
            return
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            is_model = node.func.id in ("isinstance", "issubclass") and words(node.args[1]) & MODEL_CLASSES
            if is_model:
                yield node.lineno
        elif (isinstance(node, ast.Attribute) and node.attr in KIND_FLAGS) or (
            isinstance(node, ast.Compare) and of_kind(node)
        ):
            yield node.lineno
        yield from (test.lineno for test in asked(node) if of_model(test))
        for child in ast.iter_child_nodes(node):
            yield from walk(child)

    yield from walk(parsed(text))


def test_no_place_asks_for_the_kind_of_a_model() -> None:
    texts = {name: text for name, text in TEXTS.items() if top(name) not in ("models", "answers", "extras")}
    texts |= {f"pages/{path.name}": path.read_text(encoding="utf-8") for path in (ROOT / "pages").glob("*.py")}
    result = {name: lines for name, text in texts.items() if (lines := list(kind_checks(text)))}
    assert not result


def test_answers_are_asked_for_by_models_and_data() -> None:
    """``clf.answer`` and ``data.answer``: one job's own is imported by those who make models, and by no others."""
    modules = [import_module(f"headviz.{name}") for name in MODULES if top(name) == "answers"]
    single = {name for module in modules for name, value in vars(module).items() if isinstance(value, Answer)}
    assert len(single) == 9
    wrong = [
        where(name, line)
        for name in MODULES
        if top(name) not in ("models", "answers", "extras")
        for target, line in imported(name)
        if target.startswith("headviz.answers.") and target.rpartition(".")[2] in single
    ]
    assert not wrong


def test_no_pickle() -> None:
    wrong = [where(name, line) for name in MODULES for target, line in imported(name) if top(target) in PICKLES]
    wrong += [
        where(name, i)
        for name, text in TEXTS.items()
        for i, line in enumerate(text.splitlines(), 1)
        if any(call in line for call in UNSAFE) and "torch.load(path, weights_only=True" not in line
    ]
    assert not wrong


def test_the_checks_see_what_they_look_for() -> None:
    text = """
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    from ..runs import record
def late():
    from .other import thing
    import streamlit.web
"""
    result = {target for target, _ in imports("tasks.one", text, False)}
    assert result == {"typing.TYPE_CHECKING", "headviz.runs.record", "headviz.tasks.other.thing", "streamlit.web"}
    assert {t for t, _ in imports("tasks", "from .one import x", True)} == {"headviz.tasks.one.x"}
    made = {"a": ["b"], "b": ["c"], "c": ["a", "d"], "d": ["e"], "e": [], "f": ["g"], "g": ["f"]}
    assert circles({k: dict.fromkeys(v, 1) for k, v in made.items()}) == [{"a", "b", "c"}, {"f", "g"}]
    asks = "if isinstance(a, Translator) or b.kind == TRANSLATION or c.is_translation: 'translation' in e"
    assert len(list(kind_checks(asks))) == 4
    asks = "if view.job == 'labels' or type(clf) is Classifier or isinstance(clf, Network): x = job in (None, 'rank')"
    assert len(list(kind_checks(asks))) == 4
    assert not list(kind_checks("x = job in (None, answer.job), type(x) is int, view.job in ANSWERS"))
    asks = "if clf.classes is None or not a.base.classes: x = 1 if teacher.classes else [k for k in y if clf.classes]"
    assert len(list(kind_checks(asks))) == 4
    assert not list(kind_checks("if walk.classes is None: x = clf.classes or ()"))
    assert not list(kind_checks("def is_translation(self): return self.task.is_translation"))
    assert page("ui.pages.runs.steps") == "pages.runs"
    assert page("ui.shell.state") == "shell"


def defined(text: str) -> set[str]:
    """The names that a module defines, those that it imports and hands on among them."""
    result: set[str] = set()
    for node in parsed(text).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            result.add(node.name)
        elif isinstance(node, ast.ImportFrom):
            result |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            result |= {target.id for target in targets if isinstance(target, ast.Name)}
    return result


def docstrings(text: str) -> Iterator[str]:
    for node in ast.walk(parsed(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and (words := ast.get_docstring(node)):
            yield words


def exists(path: str) -> bool:
    """Whether a dotted path is a module, or a name that its longest module defines."""
    module, rest = path, list[str]()
    while module not in MODULES:
        module, _, last = module.rpartition(".")
        rest.insert(0, last)
    if not rest:
        return True
    return rest[0] in (headviz.__all__ if not module else defined(TEXTS[module]))


def wrong_names(name: str, text: str, is_package: bool) -> list[str]:
    """What docstrings of a module name as a file, a module or a member of one, and is none.

    Checked are paths of files, ``headviz.…``, ``package.name``, and ``name`` in a package's own docstring.
    """
    package = name if is_package else name.rpartition(".")[0]
    inside = {n: t for n, t in TEXTS.items() if n == package or n.startswith(f"{package}.")}
    wrong = []
    for words in docstrings(text):
        paths = re.findall(r"\b(?:bench|docs|examples|study|tests|tools)/[\w/-]+\.(?:py|md)\b", words)
        wrong += [path for path in paths if not (ROOT / path).is_file()]
        for path in re.findall(r"``(\w+(?:\.(?:[a-z0-9_]+|[A-Z]\w*))+)``", words):
            first, _, rest = path.partition(".")
            places = {".".join(filter(None, [place, first])) for place in ("", package)} & MODULES.keys()
            if first == "headviz":
                places, rest = {""}, rest
            if places and not any(exists(f"{place}.{rest}".strip(".")) for place in places):
                wrong.append(path)
    if is_package and package and (own := ast.get_docstring(parsed(text))):
        known = {part for n in inside for part in n.split(".")} | {"headviz", *headviz.__all__}
        known.update(*map(defined, inside.values()))
        wrong += [word for word in re.findall(r"``([a-z_]+)``", own) if word not in known]
    return wrong


def test_what_docstrings_name_exists() -> None:
    result = {n: bad for n, text in TEXTS.items() if (bad := wrong_names(n, text, MODULES[n].name == "__init__.py"))}
    assert not result
    text = (
        "'''``states``, ``record``, ``scores.parts``, ``engine.Job``, ``headviz.load``, ``clf.job``, bench/gone.py'''"
    )
    assert wrong_names("runs", text, True) == ["bench/gone.py", "scores.parts", "states"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["attention", "models.uneven"])
def test_modules_that_import_transformers_can_be_the_first_import(name: str) -> None:
    """Those where an import hook of ours runs; for the others it is enough that no imports form a circle."""
    code = f"import headviz.{name}; from transformers.quantizers import auto; auto.AUTO_QUANTIZER_MAPPING['headviz']"
    assert loaded_by(code, "transformers") == ["transformers"]


def test_the_command_line_starts_without_heavy_imports() -> None:
    code = "import headviz.cli; headviz.cli.main(['--help'])"
    assert loaded_by(code, "torch", "transformers", "numpy", "streamlit", "pandas") == []
