"""Which rooms of ``headviz.extras`` a test needs, read from the code: what it imports and names, and what that uses.

Where a room is missing, files that import it are not collected, and tests that need it are skipped.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from headviz.extras import ROOMS

TESTS = Path(__file__).resolve().parents[1]
MISSING = frozenset(room for room in ROOMS if find_spec(f"headviz.extras.{room}") is None)
# a name of a score, an analysis, a command, … or of ``headviz`` itself -> its room
NAMED = {name: room for room, tables in ROOMS.items() for names in tables.values() for name in names}
PUBLIC = {name for tables in ROOMS.values() for name in tables.get("names", ())}


class Parsed(NamedTuple):
    tree: ast.Module
    names: dict[str, ast.stmt]  # what the file defines
    imported: dict[str, tuple[Path, str]]  # what it takes from other files of the tests: the file and the name there


@cache
def parsed(file: Path) -> Parsed:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    names: dict[str, ast.stmt] = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names[node.name] = node
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names.update((n.id, node) for target in targets for n in ast.walk(target) if isinstance(n, ast.Name))
    return Parsed(tree, names, dict(taken(tree.body, file)))


def taken(nodes: Iterable[ast.AST], file: Path) -> Iterator[tuple[str, tuple[Path, str]]]:
    """The names that these statements import from files of the tests."""
    for node in nodes:
        if isinstance(node, ast.ImportFrom):
            module = "/".join((node.module or "").split("."))
            folder = file.parents[node.level - 1] / module if node.level else TESTS / module
            for alias in node.names:
                for source, name in ((folder.with_suffix(".py"), alias.name), (folder / f"{alias.name}.py", "")):
                    if source.is_file():
                        yield alias.asname or alias.name, (source, name)


def rooms_of(module: str | None) -> set[str]:
    parts = (module or "").split(".")
    return {parts[2]} & ROOMS.keys() if parts[:2] == ["headviz", "extras"] and len(parts) > 2 else set()


def direct(node: ast.AST) -> set[str]:
    """The rooms that one node imports or names."""
    if isinstance(node, ast.ImportFrom):
        return {room for alias in node.names for room in rooms_of(f"{node.module}.{alias.name}")}
    if isinstance(node, ast.Import):
        return {room for alias in node.names for room in rooms_of(alias.name)}
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return {NAMED[node.value]} if node.value in NAMED.keys() - PUBLIC else rooms_of(node.value.replace(":", "."))
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "headviz":
        return {NAMED[node.attr]} if node.attr in PUBLIC else set()
    return set()


@cache
def needed_to_import(file: Path) -> frozenset[str]:
    """The rooms without which a file cannot be imported: those of its imports, and of what it calls or looks up."""
    parts = parsed(file)
    rooms = set().union(*(needed_to_import(source) for source, _ in parts.imported.values()))
    for node in parts.tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            rooms |= direct(node)
        elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            for inner in walk(node.value, runs=True):
                if isinstance(inner, ast.Subscript):
                    rooms |= direct(inner.slice)
                elif isinstance(inner, ast.Call) and isinstance(inner.func, ast.Name):
                    rooms |= needed_by(*parts.imported.get(inner.func.id, (file, inner.func.id)))
    return frozenset(rooms)


def needed_by(file: Path, name: str, keys: frozenset[str] = frozenset()) -> set[str]:
    """The rooms that a function or value of a file needs; of a table only entries with these keys, if there are any."""
    rooms: set[str] = set()
    seen: set[tuple[Path, str]] = set()
    todo = [(file, name)]
    while todo:
        place = todo.pop()
        if place in seen or (node := parsed(place[0]).names.get(place[1])) is None:
            continue
        seen.add(place)
        parts = parsed(place[0])
        inside = [inner for part in read(node, keys) for inner in walk(part)]
        rooms.update(*map(direct, inside))
        imported = parts.imported | dict(taken(inside, place[0]))
        for inner in inside:
            if isinstance(inner, ast.Name):
                todo.append(imported.get(inner.id, (place[0], inner.id)))
            elif isinstance(inner, ast.Attribute) and isinstance(inner.value, ast.Name) and inner.value.id in imported:
                todo.append((imported[inner.value.id][0], inner.attr))
    return rooms


def walk(node: ast.AST, runs: bool = False) -> Iterator[ast.AST]:
    """A node and all below, without what runs only ``if "name" in TABLE``; with ``runs`` also without lambdas."""
    test = node.test if isinstance(node, ast.If | ast.IfExp) else None
    asks = isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.In)
    if asks or (runs and isinstance(node, ast.Lambda)):
        return
    yield node
    for inner in ast.iter_child_nodes(node):
        yield from walk(inner, runs)


def read(node: ast.stmt, keys: frozenset[str]) -> list[ast.AST]:
    """What counts of a definition: a function without its decorators, of a table the entries with these keys."""
    if isinstance(node, ast.FunctionDef):
        return [node.args, *node.body]
    value = getattr(node, "value", None)
    if isinstance(value, ast.Dict):
        pairs = zip(value.keys, value.values, strict=True)
        entries = [content for key, content in pairs if isinstance(key, ast.Constant) and key.value in keys]
        return entries or value.values
    return [node]


def needed_by_test(item: Any) -> set[str]:
    """The rooms that a collected test needs, its fixtures and its parameters included."""
    params = [*item.callspec.params.values(), *item.callspec.id.split("-")] if hasattr(item, "callspec") else []
    texts = frozenset(text for param in params for text in strings(param))
    functions = [(item.path, item.originalname or item.name)]
    for definitions in item._fixtureinfo.name2fixturedefs.values():
        source = inspect.getsourcefile(inspect.unwrap(definitions[-1].func))
        if source and Path(source).is_relative_to(TESTS):
            functions.append((Path(source), definitions[-1].func.__name__))
    rooms = {NAMED[text] for text in texts & NAMED.keys()}
    return rooms.union(*(needed_by(file, name, texts) for file, name in functions))


def strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | tuple | set | dict):
        for part in value:
            yield from strings(part)
