"""A page says what cannot be done without the command line's and Python's spelling of options."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

import headviz
from headviz.errors import OptionError, TaskError
from headviz.ui.shell.messages import on_page

SOURCE = Path(headviz.__file__).parent
# what only the command line says, and what only developers read
ELSEWHERE = ("cli.py", "commands", "demo", "reports", "ui")
FLAG = re.compile(r"(?<![\w-])--[a-z]")
ARGUMENT = re.compile(r"\b[a-z_]+=(?![=>])")


def test_a_missing_column_is_told_without_option_names(tmp_path: Path) -> None:
    (tmp_path / "dev.csv").write_text("left,right,label\na,b,0\nc,d,1\n")
    with pytest.raises(TaskError) as caught:
        headviz.load_task("custom", data=tmp_path)
    assert "(--text-columns, text_columns=)" in str(caught.value)
    said = on_page(caught.value)
    assert said.endswith("Name one or two of: left, right, label."), said


@pytest.mark.parametrize(
    "text",
    ["A share (30 %) of the heads is off.", "Column 'a (b)' is missing.", "There is no folder 'bert (lr=2e-5)'."],
)
def test_other_brackets_stay(text: str) -> None:
    assert on_page(text) == text


def test_a_refusal_is_drawn_escaped_and_in_its_tone() -> None:
    def page() -> None:
        from headviz.errors import OptionError
        from headviz.ui.shell.messages import refused

        for tone in ("error", "warning", "info"):
            refused(OptionError("Keep *one* head (--keep-per-layer 1, keep_per_layer=1)."), tone)

    app = AppTest.from_function(page).run()
    assert [one.value for one in (*app.error, *app.warning, *app.info)] == [r"Keep \*one\* head\."] * 3


def _sentences(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """The texts of errors: what is raised, and constants, which are raised elsewhere."""
    raised = [node for node in ast.walk(tree) if isinstance(node, ast.Raise)]
    named = [node.value for node in tree.body if isinstance(node, ast.Assign)]
    constants = [value for value in named if isinstance(value, ast.Constant | ast.JoinedStr)]
    for top in (*raised, *constants):
        inside: set[ast.AST] = set()
        for node in ast.walk(top):
            if isinstance(node, ast.JoinedStr):
                inside.update(node.values)
                yield (
                    node.lineno,
                    "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values),
                )
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in inside:
                yield node.lineno, node.value


def _messages() -> Iterator[tuple[str, str]]:
    """Where each sentence stands that a page may have to say; an option's bare name is none."""
    for path in sorted(SOURCE.rglob("*.py")):
        where = path.relative_to(SOURCE)
        if where.parts[0] not in ELSEWHERE:
            for line, text in _sentences(ast.parse(path.read_text(encoding="utf-8"))):
                if " " in text and "\n" not in text:  # an error is one line; a page of a model card is none
                    yield f"{where}:{line}", text


@pytest.mark.slow
def test_messages_name_flags_and_pythons_arguments_in_brackets_alone() -> None:
    messages = list(_messages())
    for spelling in (FLAG, ARGUMENT):
        named = [(where, text) for where, text in messages if spelling.search(text)]
        assert len(named) > 15
        assert [f"{where}: {text[-80:]}" for where, text in named if spelling.search(on_page(text))] == []


def test_an_option_named_bare_is_found() -> None:
    tree = ast.parse('raise OptionError(f"Leave {name} out, or give --base.")')
    ((_, text),) = _sentences(tree)
    assert FLAG.search(on_page(text))
    assert not FLAG.search(on_page(OptionError("Leave it out, or name it (--base, base=).")))


def test_a_list_that_is_refused_is_shown_with_values_that_would_do() -> None:
    """Speeds must be above 1; the example was 0, 1, 2."""
    from headviz.pruning.options import TARGETS
    from headviz.ui.shell.controls import _read

    with pytest.raises(OptionError) as refused:
        _read(TARGETS, "Times as fast", "abc")
    example = str(refused.value).partition("such as ")[2].partition(", not")[0]
    assert _read(TARGETS, "Times as fast", example)
