"""Command lines with hostile options."""

from __future__ import annotations

import argparse
import random
from importlib import import_module
from typing import Any

from headviz import cli

from .case import Case
from .place import Place
from .values import WORDS

COMMANDS = [name for name in cli.COMMANDS if name != "serve"]  # a server that starts would stay
LOADS = {"info", "conductance", "prune", "evaluate"}  # with the tiny model they are quick


def options_of(command: str) -> list[tuple[tuple[str, ...], argparse.Action]]:
    """Every option of a command and of its actions: the words that lead to it, and argparse's description."""
    parser = cli._Parser(prog=command, allow_abbrev=False)
    import_module(cli.COMMANDS[command].module).add_arguments(parser)
    result: list[tuple[tuple[str, ...], argparse.Action]] = []

    def walk(one: argparse.ArgumentParser, words: tuple[str, ...]) -> None:
        for action in one._actions:
            if isinstance(action, argparse._SubParsersAction):
                for name, inner in action.choices.items():
                    walk(inner, (*words, name))
            elif action.dest != "help":
                result.append((words, action))

    walk(parser, (command,))
    return result


def usual(action: argparse.Action, place: Place, real: bool, draw: random.Random) -> list[str]:
    """A sound value of an option that is needed."""
    name = action.option_strings[0] if action.option_strings else ""
    value = {
        "--model": str(place.model) if real else str(place.folder / "missing"),
        "--task": "custom",
        "--data": str(place.data),
        "--out": str(place.out / f"o{draw.randrange(10**9)}"),
        "--text": "a dog sleeps",
        "--remove": "heads:0.0",
        "--algorithm": "one-importance",
        "--score": "random",
        "--text-columns": "text",
        "--label-column": "label",
    }.get(name)
    if value is None:
        value = next(iter(action.choices)) if action.choices else "x"
    if name == "--out" and draw.random() < 0.3:
        value += ".npz"
    return [name, str(value)] if name else [str(value)]


def command_case(draw: random.Random, place: Place, options: dict[str, list[Any]]) -> Case:
    """A command with what it needs, one to three values of which are hostile."""
    command = draw.choice(COMMANDS)
    given = options[command]
    leads = sorted({words for words, _ in given})
    words = draw.choice(leads)
    own = [a for w, a in given if w == words]
    real = command in LOADS and draw.random() < 0.15
    named = {a.option_strings[0] if a.option_strings else a.dest: a for a in own}
    wanted = [n for n, a in named.items() if a.required]
    if "--task" in named:
        wanted += [n for n in ("--data", "--text-columns", "--label-column") if n in named]
    if command == "run" and words[-1] in ("start", "sweep"):
        wanted += ["--model", "--task", "--algorithm", "--score"]
    hostile = draw.sample(sorted(named), min(len(named), draw.choice((1, 1, 2, 3))))
    line = list(words)
    for name in dict.fromkeys([*wanted, *hostile]):
        action = named[name]
        if name in hostile:
            value = draw.choice(place.special) if draw.random() < 0.2 else draw.choice(WORDS)
            if name == "--data" and real:
                value = draw.choice(place.special)
            if action.nargs == 0:
                line.append(name)
            else:
                line += [f"{name}={value}"] if action.option_strings else [value]
        else:
            line += usual(action, place, real, draw)
    if command == "run" and words[-1] in ("start", "sweep"):
        line.append("--plan")  # a run that is started would go on after the test
    if draw.random() < 0.05:
        line.append(draw.choice(WORDS))
    if draw.random() < 0.03:
        line[0] = draw.choice(WORDS)
    if command == "cache" and "clear" in line:
        line = ["cache", "show"]
    return Case("command", " ".join(map(repr, line))[:1500], lambda: cli.main(line), command=True)
