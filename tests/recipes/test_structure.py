"""A recipe is written as Python and as a command; what a user wrote is quoted in both."""

import shlex

import pytest

from headviz.recipes.structure import Call, Command, Each, Get, Import, Item, Lambda, Let, Name, Recipe, Shown, python

NASTY = 'it\'s "quoted" $HOME `ls`; rm -rf\n)'


@pytest.mark.parametrize(
    ("part", "written"),
    [
        (Import("headviz"), "import headviz"),
        (Import("headviz.runs", ("reading", "service")), "from headviz.runs import reading, service"),
        (Let("clf", Call("load", ("demo",), {"dtype": "float16"})), "clf = load('demo', dtype='float16')"),
        (Call("print", (Get(Call("f", (Name("x"),)), "metrics"),)), "print(f(x).metrics)"),
        (Call(Get(Call("full", (2, 3)), "without"), ([(0, 1)],)), "full(2, 3).without([(0, 1)])"),
        (Shown((Item(Name("a.b"), (3, 5)), Name("c"))), "a.b[3, 5], c"),
        (Each(Call("f", (Name("s"),)), "s", Call("range", (3,))), "[f(s) for s in range(3)]"),
        (Lambda("m", Call("f", (Name("m"),))), "lambda m: f(m)"),
        (Call("g", (), {"a": 1, "b": "x"}, folded=True), "g(\n    a=1,\n    b='x',\n)"),
    ],
)
def test_every_part_is_written(part: object, written: str) -> None:
    assert python(part) == written
    compile(written, "recipe", "exec")


@pytest.mark.parametrize("folded", [False, True])
def test_what_a_user_wrote_stays_one_value(folded: bool) -> None:
    command = Command(("conductance",), (("text", NASTY), ("off", ["3.5", "7.0"]), ("data", ""), ("pair", None)))
    lines, line = Recipe((Let("said", NASTY),), command, folded).written()
    assert shlex.split(line.replace(" \\\n", " ")) == ["headviz", "conductance", "--text", NASTY, "--off", "3.5,7.0"]
    made: dict[str, str] = {}
    exec(lines, made)
    assert made["said"] == NASTY


def test_options_are_replaced_where_they_stand() -> None:
    command = Command(("run",), (("task", "rte"), ("model", "m"))).with_options(task=["a", "b"], dev_limit=5)
    assert command.parts() == ["headviz run", "--task a,b", "--model m", "--dev-limit 5"]
