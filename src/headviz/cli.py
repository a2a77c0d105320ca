"""``headviz …``: the table of commands, and how their results and errors reach the terminal.

One line per command. Each names a module with ``add_arguments(parser)``,
``run(args) -> dict`` (the result, as ``--json`` prints it) and ``show(result) -> str`` (the same
for people). Modules are imported only when their command runs, so ``--help`` comes at once.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import sys
import traceback
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from importlib import import_module
from typing import Any, NoReturn

from . import __version__, plugins
from .errors import INTERNAL, NO_ROOM, Cancelled, UserError, one_line, unknown_choice
from .models import NAMED
from .models.fast.thread_spinning import wait_briefly
from .plugins import Command
from .results import to_json

# command -> one line of help; its module in headviz.commands has its name, but for those of ``_SHARED``
_OWN = {
    "info": "what a model is: layers, heads, labels, size, digest",
    "conductance": "attention and attribution maps of one text, for all heads",
    "patch": "what each head carries from one text to another",
    "tokens": "which words an answer comes from, by several methods side by side",
    "score": "how important each head is, over a sample",
    "evaluate": "metrics on a task, with heads switched off",
    "ablate": "what each head costs, with significance",
    "analyse": "the published analyses: all-but-one, pruning curves, speed, …",
    "grade": "which head score is right: every score graded on one model",
    "finetune": "train a pre-trained encoder on a task, whole or with heads removed",
    "prune": "really remove heads, or as much as a speed asks for, and save the smaller model",
    "export": "write a model as ONNX, in float32 or int8, and say what that changes and how fast it is",
    "convert": "rewrite a model's folder: pickled weights as safetensors, adapters merged, today's format",
    "run": "pruning runs in the background: start, list, show, cancel, resume, report",
    "cache": "what is kept on disk: show, clear",
    "serve": "open the dashboard in a browser",
}
_SHARED = {"grade": "analyse"}  # commands of another module
COMMANDS: Mapping[str, Command] = plugins.Entries(
    "commands", (Command(name, about, f"headviz.commands.{_SHARED.get(name, name)}") for name, about in _OWN.items())
)

DONE = 0
_NO_ROOM = re.compile("failed to map segment|annot allocate memory")  # when a library is loaded
HELP, VERSION = ("-h", "--help"), ("-V", "--version")
PLUGIN = "a Python file with scores, algorithms, tasks, … of your own (docs/plugins.md); repeatable"


class _Parser(argparse.ArgumentParser):
    """One clear line on stderr instead of a usage block; every help names the option that all commands have."""

    def error(self, message: str) -> NoReturn:
        for name in re.findall("^argument NAME: invalid choice: '(.*?)'", message):
            if absent := plugins.missing("analyses", name):
                raise UserError(absent)
        text = message if len(message) <= 400 else message[:400] + "…"
        unknown = message.split()[2:] if message.startswith("unrecognized arguments: ") else []
        question = _did_you_mean(unknown, self._option_string_actions)
        raise UserError(f"{text[0].upper()}{text[1:]}.{question} See: {self.prog} --help")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        for word in args or ():  # argparse would drop this value, and give the option an empty list
            name, _, value = word.partition("=")
            if value == "--" and name in self._option_string_actions:
                self.error(f"argument {name}: '--' is not a value")
        return super().parse_known_args(args, namespace)

    def format_help(self) -> str:
        return f"{super().format_help()}\nevery command:\n  --plugin FILE  {PLUGIN}\n"


def _did_you_mean(words: Sequence[str], options: Iterable[str]) -> str:
    """A question that names the nearest option of each misspelt one, after a space; empty where none is near."""
    options = list(options)
    flags = [word.partition("=")[0] for word in words if word.startswith("-")]
    near = [match for flag in flags for match in get_close_matches(flag[:60], options, n=1, cutoff=0.7)]
    return f" Did you mean {' and '.join(dict.fromkeys(near))}?" if near else ""


def _top_help() -> str:
    width = max(map(len, COMMANDS))
    rows = "\n".join(f"  {name:<{width}}  {command.about}" for name, command in COMMANDS.items())
    return (
        "usage: headviz COMMAND [options]\n"
        "       headviz MODEL [TASK [DATA]]     opens the dashboard on a model: demo, a hub id, or a folder\n\n"
        "Look into the attention heads of a fine-tuned BERT, switch them off, see what it costs, prune for real.\n\n"
        f"commands:\n{rows}\n\n"
        "headviz COMMAND --help   options of one command\n"
        "headviz --version        version\n"
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the exit status is 0, 2 for a user's mistake, 1 for a fault of headviz itself."""
    wait_briefly()
    words = list(sys.argv[1:] if argv is None else argv)
    if not words or words[0] in (*HELP, "help"):
        sys.stdout.write(_top_help())
        return DONE if words else UserError.exit_status
    if words[0] in VERSION:
        sys.stdout.write(f"headviz {__version__}\n")
        return DONE
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _short_notes(warnings.showwarning)
            return _run(words[0], words[1:])
    except UserError as error:
        return _say(str(error), error.exit_status)
    except (Cancelled, KeyboardInterrupt):
        return _say("Stopped.", Cancelled.exit_status)
    except BrokenPipeError:  # the reader of our output went away, as `| head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except Exception as error:
        if (message := _outside_cause(error)) is not None:
            return _say(message, UserError.exit_status)
        traceback.print_exc()
        return _say(
            f"internal error: {type(error).__name__}: {error} (the lines above belong in a bug report)", INTERNAL
        )


def _outside_cause(error: Exception) -> str | None:
    """One line where the cause of an error is a full or forbidden disk or too little memory; None for a fault here."""
    if isinstance(error, ImportError | OSError) and _NO_ROOM.search(str(error)):
        return NO_ROOM
    try:
        from .runs.carrier import is_out_of_memory, outcome_of
        from .storage.writing import disk_error
    except (MemoryError, ImportError, OSError):
        return NO_ROOM

    if (message := disk_error(error)) is not None:
        return str(message)
    return str(outcome_of(error)["error"]) if is_out_of_memory(error) else None


def _run(name: str, words: list[str]) -> int:
    for word in (name, *words):
        if not word.isascii() and any("\ud800" <= c <= "\udfff" for c in word):
            raise UserError(f"The argument {word[:40]!a} is not UTF-8. Write it as UTF-8.")
    plugins.load_environment()
    files, words = _plugin_files(name, words)
    plugins.load(files)  # before the options are declared: their names are in the command's help
    if name not in COMMANDS:
        if not (name in NAMED or "/" in name or os.path.isdir(name)):
            if name.startswith("-"):
                question = _did_you_mean([name], (*HELP, *VERSION))
                raise UserError(f"A command comes first, not {name[:60]}.{question} See: headviz --help")
            if absent := plugins.missing("commands", name):
                raise UserError(absent)
            unknown = unknown_choice("command", name[:60], COMMANDS)
            raise UserError(f"{unknown} To open a model of this name: headviz serve {name[:60]}")
        name, words = "serve", [name, *words]  # `headviz MODEL` opens the dashboard on it
    about = COMMANDS[name].about
    module = import_module(COMMANDS[name].module)
    parser = _Parser(prog=f"headviz {name}", description=f"{about[0].upper()}{about[1:]}.", allow_abbrev=False)
    module.add_arguments(parser)
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    args = parser.parse_args(words)
    args.line = shlex.join(("headviz", name, *words))
    if "check" in args:  # what is wrong whatever the model and the data are
        args.check(args)
    result = module.run(args)
    if result is not None:
        sys.stdout.write((to_json(result) if args.json else module.show(result)).rstrip() + "\n")
    return DONE


def _plugin_files(name: str, words: list[str]) -> tuple[list[str], list[str]]:
    """The files that every ``--plugin`` names, and the other words. Every command takes them, wherever they stand."""
    parser = _Parser(prog=f"headviz {name}", add_help=False, allow_abbrev=False)
    parser.add_argument("--plugin", action="append", default=[])
    args, others = parser.parse_known_args(words)
    return args.plugin, others


def _short_notes(show: Callable[..., None]) -> Callable[..., None]:
    """Show headviz's own warnings in one line without file and line number, others as ``show`` does."""

    def note(message: Warning | str, category: type[Warning], *location: Any, **options: Any) -> None:
        if category.__module__.partition(".")[0] == __package__:
            sys.stderr.write(f"headviz: note: {message}\n")
        else:
            show(message, category, *location, **options)

    return note


def _say(line: str, status: int) -> int:
    sys.stderr.write(f"headviz: {one_line(line)}\n")
    return status
