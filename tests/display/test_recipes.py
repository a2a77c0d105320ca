"""A recipe is written as Python and as a command; what a user wrote is quoted in both."""

import shlex

import pytest

from headviz.display.recipes import Code, call, command

NASTY = 'it\'s "quoted" $HOME `ls`; rm -rf\n)'


def test_values_are_quoted_and_code_stands_as_it_is() -> None:
    assert call("f", Code("clf"), "a'b", [Code("*names"), 1], mask=Code("mask"), n=None) == (
        'f(clf, "a\'b", [*names, 1], mask=mask, n=None)'
    )


@pytest.mark.parametrize("folded", [False, True])
def test_what_a_user_wrote_stays_one_value(folded: bool) -> None:
    options = (("text", NASTY), ("off", ["3.5", "7.0"]), ("data", ""), ("pair", None), ("steps", 0))
    line = command("conductance", options, folded)
    assert shlex.split(line.replace(" \\\n", " ")) == (
        ["headviz", "conductance", "--text", NASTY, "--off", "3.5,7.0", "--steps", "0"]
    )
    made: dict[str, str] = {}
    exec(f"text = {call('str', NASTY)}", made)
    assert made["text"] == NASTY
