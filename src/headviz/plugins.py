"""Plugins: scores, algorithms, tasks, … from a Python file, an installed package, or a room of headviz itself.

A plugin is a module with lists of entries under fixed names, such as ``SCORES = [Score(...)]`` (``docs/plugins.md``).
Loading one adds its entries to headviz's own tables, so commands, forms and runs treat them as any other. If one of its
names is taken already, the whole plugin is refused. A *room* is a package of ``headviz.extras`` and declares the same
lists, or says where they are, as "module:name". Its entries are in the tables from the start, and nothing outside the
room imports it. Files come from ``--plugin`` or ``$HEADVIZ_PLUGINS``, never from a link or an upload: a plugin is code
and may do anything.

A run's spec names the plugins it needs by source and digest. A worker of this machine loads them from the same files; a
worker of a cluster is sent the text of the files.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from .errors import OptionError, UserError, unknown_choice

ROOMS = f"{__package__}.extras"
FILES = "HEADVIZ_PLUGINS"  # environment: files, separated as in PATH
SPEC = "plugins"  # the key under which a run's spec names the plugins it needs


@dataclass(frozen=True)
class RunKind:
    """A kind of run. ``make`` gives an ``engine.Job`` from a spec: a function, or its "module:function"."""

    name: str
    title: str
    about: str
    make: Callable[[dict[str, Any]], Any] | str
    draw: Callable[[Any], None] | str | None = None  # (view): what the Runs page shows of it; None = its numbers
    # (view): what the Runs page asks to start one; gives Python and a command, or None. None = no form
    form: Callable[[Any], tuple[str, str] | None] | str | None = None
    side_by_side: bool = False  # its steps are models side by side, not the course of one


@dataclass(frozen=True)
class Executor:
    """Where runs are executed other than in processes of this machine. Functions, or their "module:function"."""

    name: str
    about: str
    check: Callable[[], Any] | str  # refuses an executor that cannot be used now
    drive: Callable[..., None] | str  # (registry, record, heartbeat): executes a run, or all runs of a sweep


@dataclass(frozen=True)
class ModelFolder:
    """A format of saved models besides that of transformers. ``load`` is a function, or its "module:function"."""

    file: str  # the file by which a folder is known to have it
    # (folder, name, device, dtype, and what else the caller asked of ``headviz.load``): the model
    load: Callable[..., Any] | str


@dataclass(frozen=True)
class Command:
    """A command of ``headviz``. Its module has ``add_arguments(parser)``, ``run(args)`` and ``show(result)``."""

    name: str
    about: str  # one line of help
    module: str  # its whole name, imported when the command runs
    after: str = ""  # the command that it stands after in the help


@dataclass(frozen=True)
class Section:
    """A part of the summary and report of pruning runs. Functions, or their names."""

    name: str
    title: str
    summary: Callable[[Any], dict[str, Any]] | str  # (state) -> fields of the summary; empty where it does not apply
    # (summary) -> header, rows and a note; None where it does not apply
    report: Callable[[Mapping[str, Any]], tuple[Sequence[str], Sequence[Sequence[Any]], str] | None] | str


@dataclass(frozen=True)
class Page:
    """A page of the dashboard, at an address of its name."""

    name: str
    title: str
    draw: Callable[[], None] | str = ""  # draws the page, or its "module:function"; empty for headviz's own files
    after: str = ""  # the page that it stands after in the navigation
    shown_by: str = ""  # fields of the view, besides model and data, that it depends on; empty = all
    without_data: bool = False  # whether it works while the view's data do not exist


@dataclass(frozen=True)
class Tab:
    """A tab below a run on the Runs page. Functions, or their names."""

    name: str
    title: str
    of: str  # the kind of run
    draw: Callable[..., Any] | str  # (views): of a sweep those of its runs, else the one of the run
    shown: Callable[[Any], bool] | str | None = None  # (view): whether the run has this tab; None = always
    recipe: Callable[[], tuple[str, str] | None] | str | None = None  # Python and command of what it has just drawn


@dataclass(frozen=True)
class Table:
    """One of headviz's tables that plugins may add to. Its module is imported when an entry comes."""

    what: str
    declared: str  # the name of the list in a plugin, and of the table in headviz
    module: str
    entry: str  # the class of its entries
    key: str = "name"  # the field that names an entry

    def entries(self) -> Entries:
        entries: Entries = getattr(import_module(self.module, __package__), self.declared)
        return entries

    def declared_in(self, module: ModuleType) -> list[Any]:
        return list(function(getattr(module, self.declared)))

    def kind(self) -> type:
        kind: type = getattr(import_module(self.module, __package__), self.entry)
        return kind


TABLES = {
    "answers": Table("job", "ANSWERS", ".answers.catalogue", "Answer", "job"),
    "models": Table("model folder", "MODELS", ".models.hub", "ModelFolder", "file"),
    "scores": Table("score", "SCORES", ".scores.catalogue", "Score"),
    "sweeps": Table("sweep of examples", "SWEEPS", ".scores.score", "Sweep"),
    "algorithms": Table("algorithm", "ALGORITHMS", ".pruning.algorithms", "Algorithm"),
    "tasks": Table("task", "TASKS", ".tasks.catalogue", "Task"),
    "analyses": Table("analysis", "ANALYSES", ".analyses.catalogue", "Analysis"),
    "families": Table("family", "FAMILIES", ".models.families", "Family", "model_type"),
    "runs": Table("kind of run", "RUNS", ".runs.kinds", "RunKind"),
    "commands": Table("command", "COMMANDS", ".cli", "Command"),
    "pages": Table("page", "PAGES", ".ui.shell.view", "Page"),
    "tabs": Table("tab", "TABS", ".ui.shell.view", "Tab"),
    "sections": Table("section", "SECTIONS", ".pruning.baselines", "Section"),
    "executors": Table("executor", "EXECUTORS", ".runs.kinds", "Executor"),
}


def function(value: Any) -> Any:
    """A function or list itself, or that which "module:name" names; the module is imported now."""
    if not isinstance(value, str):
        return value
    module, _, name = value.partition(":")
    return getattr(import_module(module), name)


class Entries(MutableMapping[str, Any]):
    """One of headviz's tables: its own entries, those of the rooms, and those of plugins, by name.

    Rooms are imported when the table is first read, so a room may import the module of the table.
    """

    def __init__(self, group: str, entries: Iterable[Any]) -> None:
        self._group, self._complete = group, False
        self._entries: dict[str, Any] = {}
        for entry in entries:
            self.add(entry)

    def add(self, entry: Any) -> None:
        """Add an entry at the end, or after the one that it names."""
        entries, after = self._entries, getattr(entry, "after", "")
        later = list(entries)[list(entries).index(after) + 1 :] if after in entries else []
        entries[getattr(entry, TABLES[self._group].key)] = entry
        for name in later:
            entries[name] = entries.pop(name)

    def unknown(self, name: object) -> str:
        """One line for a name that is none of the table's."""
        return unknown(TABLES[self._group].what, name, self)

    def _all(self) -> dict[str, Any]:
        if not self._complete:
            self._complete = True
            for room, brings in _rooms().items():
                if self._group in brings and (module := _room(room)) is not None:
                    for entry in TABLES[self._group].declared_in(module):
                        self.add(entry)
        return self._entries

    def __getitem__(self, name: str) -> Any:
        return self._all()[name]

    def __setitem__(self, name: str, entry: Any) -> None:
        self._all()[name] = entry

    def __delitem__(self, name: str) -> None:
        del self._all()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())


def _rooms() -> Mapping[str, Mapping[str, Sequence[str]]]:
    """Room -> table -> names of what it brings."""
    try:
        rooms: Mapping[str, Mapping[str, Sequence[str]]] = import_module(ROOMS).ROOMS
    except ModuleNotFoundError as error:
        if error.name != ROOMS:
            raise
        return {}
    return rooms


def _room(name: str) -> ModuleType | None:
    """The package of a room; None where this installation does not have it."""
    full = f"{ROOMS}.{name}"
    try:
        return import_module(full)
    except ModuleNotFoundError as error:
        if error.name != full:
            raise
        return None


def _absent(room: str) -> str:
    return f" is part of {ROOMS}.{room}, which this installation does not have."


def public_names() -> list[str]:
    """The names that the rooms of this installation bring to ``headviz`` itself."""
    return [
        name
        for room, brings in _rooms().items()
        if importlib.util.find_spec(f"{ROOMS}.{room}") is not None
        for name in brings.get("names", ())
    ]


def module_of(name: str) -> str:
    """The module of one of these names; an ``AttributeError`` for any other."""
    for room, brings in _rooms().items():
        if name in brings.get("names", ()):
            if (module := _room(room)) is None:
                raise AttributeError(f"headviz.{name}{_absent(room)}")
            return str(module.NAMES[name])
    raise AttributeError(f"module 'headviz' has no attribute '{name}'")


def missing(group: str, name: object) -> str:
    """One line for a name of a room that this installation does not have; empty for other names."""
    for room, brings in _rooms().items():
        if name in brings.get(group, ()) and _room(room) is None:
            return f"The {TABLES[group].what} '{name}'{_absent(room)}"
    return ""


def missing_among(group: str, names: Iterable[object]) -> str:
    """The same for the first of these names that is one of a missing room."""
    return next(filter(None, (missing(group, name) for name in names)), "")


def unknown(what: str, name: object, valid: Iterable[str]) -> str:
    """One line for a name that stands in none of the tables."""
    group = next(group for group, table in TABLES.items() if table.what == what)
    return missing(group, name) or f"{unknown_choice(what, name, valid)} One of a plugin needs its file: --plugin FILE."


class PluginWarning(UserWarning):
    """A plugin of the environment that could not be loaded; the others work."""


@dataclass(frozen=True)
class Plugin:
    """A plugin that has been loaded."""

    source: str  # the file's full path, or "package:NAME" for an entry point
    digest: str  # SHA-256 of the file that was executed
    names: Mapping[str, tuple[str, ...]]  # what it added: "score" -> names
    code: bytes = field(default=b"", repr=False)  # the file's content; empty for a package

    def to_dict(self) -> dict[str, str]:
        return {"source": self.source, "digest": self.digest}


_lock = threading.RLock()  # sessions of the dashboard load at the same time
_loaded: dict[str, Plugin] = {}  # by source
_refused: dict[str, str] = {}  # by source: the line that says why


def loaded() -> tuple[Plugin, ...]:
    return tuple(_loaded.values())


def refused() -> tuple[str, ...]:
    """One line for each plugin of the environment that could not be loaded."""
    return tuple(_refused.values())


def load(files: Iterable[str | Path]) -> None:
    """Load plugin files; a broken one is a ``UserError`` that names its file and line.

    >>> import headviz
    >>> from headviz import plugins
    >>> plugins.load(["examples/my_score.py"])
    >>> [names for plugin in plugins.loaded() for names in plugin.names.values()]
    [('loss-spread',)]
    """
    for file in files:
        _load_source(_full_path(file))


def _full_path(file: str | Path) -> str:
    try:
        return str(Path(file).expanduser().resolve())
    except (RuntimeError, ValueError, OSError) as error:  # an unknown user's home, NUL, a name that is too long
        raise OptionError(f"The plugin {str(file)[:80]!r} cannot be found: {error}.") from error


def _load_source(source: str) -> Plugin:
    with _lock:
        return _load_point(source) if source.startswith("package:") else _load_file(source)


def _load_file(source: str) -> Plugin:
    """Read a file and add its entries, once per process."""
    code = _read(Path(source))
    plugin = _loaded.get(source)
    if plugin is None:
        return _execute(source, code)
    if plugin.code != code:
        raise OptionError(f"The plugin {source} has changed since it was loaded. Start headviz again.")
    return plugin


def _execute(source: str, code: bytes) -> Plugin:
    """Run a file's code as a module of its own, and add its entries."""
    digest = hashlib.sha256(code).hexdigest()
    name = f"headviz_plugin_{digest[:16]}"
    module = ModuleType(name)
    module.__file__ = source
    sys.modules[name] = module  # dataclasses look their module up
    try:
        exec(compile(code, source, "exec"), module.__dict__)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise OptionError(_broken(source, source, error)) from error
    return _add(source, digest, _declared(source, module), code)


def load_environment() -> None:
    """Load what ``$HEADVIZ_PLUGINS`` and installed packages bring, once per process; a broken one is a warning."""
    files = [f for f in os.environ.get(FILES, "").split(os.pathsep) if f]
    for source in [*files, *_installed()]:
        if source in _refused:
            continue
        try:
            _load_source(source if source.startswith("package:") else _full_path(source))
        except UserError as error:
            _refused[source] = str(error)
            warnings.warn(str(error), PluginWarning, stacklevel=2)


def salt() -> str:
    """The digests of plugins that add a model family: a part of every cache key."""
    return " ".join(p.digest for p in loaded() if "family" in p.names)


def key_part(what: str, *names: str) -> dict[str, str]:
    """The part of a cache key for plugins: the digests of those that add these entries, such as ``"score", "mine"``."""
    used = sorted(p.digest for p in loaded() if not set(names).isdisjoint(p.names.get(what, ())))
    return {"plugin": " ".join(used)} if used else {}


def used_by(spec: Mapping[str, Any]) -> dict[str, list[dict[str, str]]]:
    """What to add to a run's spec so that its worker loads the same plugins.

    These are the plugins whose names the spec uses, and all that add a family, since a spec names a model by its
    folder and not by its family.
    """
    used = set(words(spec))
    needed = [
        p.to_dict()
        for p in loaded()
        if ("family" in p.names and "model" in spec) or used & {n for names in p.names.values() for n in names}
    ]
    return {SPEC: needed} if needed else {}


def words(value: Any) -> Iterator[str]:
    """Every single value inside nested mappings and lists, as text, and the parts of values with commas."""
    if isinstance(value, Mapping):
        value = tuple(value.values())
    if isinstance(value, list | tuple):
        for item in value:
            yield from words(item)
    else:
        yield str(value)
        yield from (word.strip() for word in str(value).split(","))


def files_of(spec: Mapping[str, Any]) -> list[str]:
    """The plugin files that a run's spec names; packages are left out."""
    return [p["source"] for p in spec.get(SPEC) or () if not p["source"].startswith("package:")]


def codes_of(spec: Mapping[str, Any]) -> dict[str, bytes]:
    """The content of these files as this process has loaded them, for a worker that does not have the files."""
    return {source: _loaded[source].code for source in files_of(spec) if source in _loaded}


def without(spec: Mapping[str, Any]) -> dict[str, Any]:
    """A run's spec without the plugins it names, once they are loaded."""
    require(spec.get(SPEC) or ())
    return {name: value for name, value in spec.items() if name != SPEC}


def require(plugins: Sequence[Mapping[str, str]], codes: Mapping[str, bytes] | None = None) -> None:
    """Load the plugins that a run was written down with; one that has changed since is refused by name.

    ``codes`` holds the content of files sent by another machine. A sent file replaces an older version of itself.
    """
    for entry in plugins:
        source, digest = entry["source"], entry["digest"]
        with _lock:
            plugin = _loaded.get(source)
            if plugin is not None and plugin.digest == digest:
                continue
            if codes is not None and source in codes:
                if plugin is not None:
                    _remove(plugin)
                plugin = _execute(source, codes[source])
            else:
                plugin = _load_source(source)
        if plugin.digest != digest:
            raise OptionError(
                f"The plugin {source} has changed since this run was written down. Bring the old file back, or start "
                "a new run."
            )


def _remove(plugin: Plugin) -> None:
    """Take a plugin's entries out of headviz's tables."""
    for table in TABLES.values():
        for name in plugin.names.get(table.what, ()):
            del table.entries()[name]
    del _loaded[plugin.source]


@cache
def _installed() -> dict[str, tuple[str, EntryPoint]]:
    """The entry points ``headviz.scores``, … of installed packages, by source."""
    points = entry_points()  # reads the files of all packages, so once for all tables
    return {
        f"package:{point.value} ({group})": (group, point)
        for group in TABLES
        for point in points.select(group=f"headviz.{group}")
    }


def _load_point(source: str) -> Plugin:
    """An entry point is one entry, a list of them, or a module that declares them."""
    if source in _loaded:
        return _loaded[source]
    if source not in _installed():
        raise OptionError(f"The plugin {source.removeprefix('package:')} is needed here and not installed.")
    group, point = _installed()[source]
    spec = importlib.util.find_spec(point.module)
    origin = str(spec.origin) if spec is not None else point.module
    try:
        content = point.load()
    except (Exception, SystemExit) as error:
        raise OptionError(_broken(source, origin, error)) from error
    if isinstance(content, ModuleType):
        entries = {group: _declared(source, content).get(group, [])}
    else:
        entries = {group: list(content) if isinstance(content, list | tuple) else [content]}
    return _add(source, hashlib.sha256(_read(Path(origin))).hexdigest(), entries)


def _read(path: Path) -> bytes:
    try:
        if path.exists() and not path.is_file():
            raise OptionError(f"The plugin {path} is not a plain file.")
        return path.read_bytes()
    except OSError as error:
        raise OptionError(f"The plugin {path} cannot be read ({error.strerror}).") from error


def _declared(source: str, module: ModuleType) -> dict[str, list[Any]]:
    tables = {group: table for group, table in TABLES.items() if hasattr(module, table.declared)}
    declared = {group: table.declared_in(module) for group, table in tables.items()}
    if not any(declared.values()):
        lists = ", ".join(table.declared for table in TABLES.values())
        raise OptionError(f"The plugin {source} declares nothing. Give it a list named one of: {lists}.")
    return declared


def _add(source: str, digest: str, groups: Mapping[str, Sequence[Any]], code: bytes = b"") -> Plugin:
    """Check every entry, then add them all."""
    names = {}
    for group, entries in groups.items():
        table = TABLES[group]
        for entry in entries:
            if not isinstance(entry, table.kind()):
                raise OptionError(
                    f"The plugin {source} lists in {table.declared} a {type(entry).__name__}, not a {table.entry}."
                )
        names[table.what] = tuple(str(getattr(entry, table.key)) for entry in entries)
        for i, name in enumerate(names[table.what]):
            if name in table.entries() or name in names[table.what][:i]:
                raise OptionError(
                    f"The plugin {source} declares the {table.what} '{name}', and there is one of that name already."
                )
    for group, entries in groups.items():
        table = TABLES[group]
        for entry in entries:
            table.entries().add(entry)
    plugin = _loaded[source] = Plugin(source, digest, names, code)
    return plugin


def _broken(source: str, file: str, error: BaseException) -> str:
    """What went wrong, with the last line of the plugin's own file that was reached."""
    line = error.lineno if isinstance(error, SyntaxError) else None
    for frame in traceback.extract_tb(error.__traceback__):
        if frame.filename == file:
            line = frame.lineno
    where = "" if line is None else f", line {line}"
    text = error.msg if isinstance(error, SyntaxError) else str(error)
    return f"The plugin {source}{where} is broken: {type(error).__name__}: {text}"
