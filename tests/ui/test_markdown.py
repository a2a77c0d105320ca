"""Texts from models, data, links and runs reach Streamlit only escaped: every call that reads Markdown is walked."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from headviz.ui.shell.show import plain

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = (
    (ROOT / "src/headviz", "ui/**/*.py"),
    (ROOT / "src/headviz", "extras/*/pages/*.py"),
    (ROOT / "pages", "*.py"),
)
FILES = [*(path for folder, files in FOLDERS for path in sorted(folder.glob(files))), ROOT / "app.py"]

# Streamlit's calls that read Markdown -> how many of the first arguments do
READS = {
    **dict.fromkeys(
        "badge button caption checkbox dialog download_button error expander exception file_uploader "
        "form_submit_button header info latex link_button markdown menu_button number_input page_link pills popover "
        "progress radio "
        "segmented_control select_slider selectbox slider spinner status subheader success tabs text_area text_input "
        "title toast toggle warning write multiselect date_input time_input color_picker audio_input camera_input "
        "chat_input feedback".split(),
        1,
    ),
    "metric": 3,
    "html": 1,
}
KEYWORDS = {"help", "label", "body", "text", "value", "delta", "captions"}
# these draw their options as Markdown, not only their label
OPTIONS = {"radio", "pills", "segmented_control", "tabs"}
# of these only the help is Markdown
HELPS = set(
    "Column TextColumn NumberColumn SelectboxColumn CheckboxColumn ProgressColumn LinkColumn ListColumn".split()
)
# what else has methods of these names
OTHERS = set("go page np show re charts json state table numbers".split())
ESCAPES = {"plain", "escaped", "escape"}  # the last is of html
# functions of ours whose text is made of numbers and fixed words only
NUMBERS = set(
    "less _million span size len int round abs sum min max number metric points signed p_text p_cell title_of".split()
)


class Walk:
    """One file: which of its calls hand Streamlit a text that may be somebody else's."""

    def __init__(self, path: Path, text: str | None = None) -> None:
        self.path = path
        self.tree = ast.parse(path.read_text(encoding="utf-8") if text is None else text)
        self.parents = {child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)}

    def bare(self) -> Iterator[str]:
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                for text in self.texts(node):
                    if not self.safe(text, set()) and not self.known(text):
                        yield f"{self.path.relative_to(ROOT)}:{text.lineno}: {ast.unparse(text)[:90]}"

    def known(self, text: ast.expr) -> bool:
        name = self.path.relative_to(ROOT).as_posix().removeprefix("src/headviz/")
        if ast.unparse(text) in LOOKED_AT.get(name.removeprefix("ui/"), ()):
            return True
        return name in WRAPPERS and ast.unparse(text) in ("label", "labels", "options")

    def texts(self, call: ast.Call) -> Iterator[ast.expr]:
        name = call.func.attr  # type: ignore[attr-defined]
        owner = ast.unparse(call.func.value)  # type: ignore[attr-defined]
        for wrapper, places in next((w for f, w in WRAPPERS.items() if f.endswith(f"/{owner}.py")), {}).items():
            if wrapper == name:
                yield from (call.args[i] for i in places if i < len(call.args))
        if name in HELPS:
            yield from (k.value for k in call.keywords if k.arg == "help")
        if name not in READS or owner in OTHERS:
            return
        yield from call.args[: READS[name]]
        if name in OPTIONS:
            written = next((k.value for k in call.keywords if k.arg == "format_func"), None)
            if written is not None:
                yield written
            else:
                yield from call.args[1:2]
                yield from (k.value for k in call.keywords if k.arg == "options")
        yield from (k.value for k in call.keywords if k.arg in KEYWORDS)

    def safe(self, node: ast.expr, seen: set[str]) -> bool:
        """Whether an expression holds no text but the file's own words, numbers, and what has been escaped."""
        match node:
            case ast.Constant():
                return True
            case ast.JoinedStr():
                return all(self.safe(part, seen) for part in node.values)
            case ast.FormattedValue():
                spec = "" if node.format_spec is None else ast.unparse(node.format_spec)
                return bool(re.search(r"[,.%]|[gdfe]'?$", spec)) or self.safe(node.value, seen)
            case ast.IfExp():
                return self.safe(node.body, seen) and self.safe(node.orelse, seen)
            case ast.BinOp():
                return self.safe(node.left, seen) and self.safe(node.right, seen)
            case ast.BoolOp():
                return all(self.safe(part, seen) for part in node.values)
            case ast.Compare() | ast.UnaryOp():
                return True
            case ast.Tuple() | ast.List():
                return all(self.safe(part, seen) for part in node.elts)
            case ast.Dict():
                return all(self.safe(part, seen) for part in node.values)
            case ast.Starred():
                return self.safe(node.value, seen)
            case ast.Subscript():
                return self.safe(node.value, seen)
            case ast.DictComp():
                return self.safe(node.value, seen)
            case ast.GeneratorExp() | ast.ListComp():
                return self.safe(node.elt, seen)
            case ast.Call():
                return self.safe_call(node, seen)
            case ast.Name():  # the first: a function that writes options
                return self.escapes(node) or self.safe_name(node, seen)
            case ast.Attribute():  # the last two: a function that writes options
                return node.attr.isupper() or node.attr in NUMBERS_OF or self.escapes(node)
            case ast.Lambda():
                return self.safe(node.body, seen)
        return False

    def escapes(self, function: ast.expr) -> bool:
        """Whether a function named as ``format_func`` gives no text but the file's own words and escaped ones."""
        if isinstance(function, ast.Name):
            return function.id in ESCAPES
        if isinstance(function, ast.Attribute):
            return function.attr in ESCAPES or (function.attr == "get" and self.safe(function.value, set()))
        return False

    def safe_call(self, node: ast.Call, seen: set[str]) -> bool:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name in ESCAPES or name in NUMBERS:
            return True
        if name in "join removesuffix capitalize lower upper title replace get format strip".split():
            own = self.safe(node.func.value, seen) if isinstance(node.func, ast.Attribute) else True
            given = node.args[1:] if name == "get" else node.args  # a key is looked up, not shown
            return own and all(self.safe(a, seen) for a in given)
        if name in ("list", "tuple", "sorted", "str", "filter", "dict"):
            return all(self.safe(a, seen) for a in node.args)
        made = [f for f in ast.walk(self.tree) if isinstance(f, ast.FunctionDef) and f.name == name]
        if isinstance(node.func, ast.Name) and made and name not in seen:
            returns = [r.value for r in ast.walk(made[0]) if isinstance(r, ast.Return) and r.value is not None]
            return all(self.safe(r, seen | {name}) for r in returns)
        return False

    def safe_name(self, node: ast.Name, seen: set[str]) -> bool:
        if node.id.isupper() or node.id.lstrip("_").isupper():
            return True
        if node.id in seen:
            return True
        inside: ast.AST = node
        while inside in self.parents and not isinstance(inside, ast.FunctionDef):
            inside = self.parents[inside]
            if isinstance(inside, ast.Lambda) and node.id in {a.arg for a in inside.args.args}:
                return False
        if not isinstance(inside, ast.FunctionDef):
            return False
        seen = seen | {node.id}
        values: list[ast.expr] = []
        for part in ast.walk(inside):
            if isinstance(part, ast.Assign) and any(_binds(t, node.id) for t in part.targets):
                values.append(part.value)
            elif isinstance(part, ast.AugAssign | ast.NamedExpr | ast.AnnAssign) and _binds(part.target, node.id):
                values.append(part.value)  # type: ignore[arg-type]
            elif isinstance(part, ast.For | ast.comprehension) and _binds(part.target, node.id):
                values.append(part.iter)
        return bool(values) and all(self.safe(v, seen) for v in values)


# fields that hold numbers wherever they occur in the interface
NUMBERS_OF = set(
    "at_once count done evaluations expected finetunings heads length n num_heads num_layers runs samples scorings "
    "seconds seeds share_done share steps total updates position".split()
)
# functions of ours that hand a label or options on: their calls are walked like Streamlit's own
WRAPPERS = {
    "ui/shell/state.py": {"choose": (1,), "switch": (1,), "tabs": (0,), "tick": (1,), "number": (1,), "text": (1,)},
    "ui/shell/frame.py": {"link": (1,)},
}
# places that were looked at by hand, each with the reason
LOOKED_AT = {
    "pages/analyses.py": {"f'pages/{analysis.page}.py'"},  # a file of ours
    "extras/distillation/pages/distil.py": {"_place_name"},  # layers of a model
    "pages/runs/listing.py": {"[_caption(r) for r in shown]", "sentence"},  # states and numbers; escaped by _describe
    "pages/masklab/cost.py": {"hint"},  # written by the two callers, whose names of heads are numbers
    "shell/frame.py": {"_page(name)"},  # a page, no text
    "pages/compare/answers.py": {"label"},
    "pages/scores.py": {"table"},  # not Streamlit's status
    "parts/pair.py": {"bars(clf.labels, full, masked)"},  # escapes the labels
    "parts/result_bar.py": {'f"""<div class="result" role="status" aria-live="polite">{\'\'.join(parts)}</div>"""'},
    "shell/show.py": {"formula"},  # LaTeX of the catalogues
    "shell/controls.py": {"value"},  # a number
}


def _binds(target: ast.expr, name: str) -> bool:
    return any(isinstance(part, ast.Name) and part.id == name for part in ast.walk(target))


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.relative_to(ROOT).as_posix().removeprefix("src/headviz/ui/"))
def test_no_call_that_reads_markdown_is_given_a_bare_text(path: Path) -> None:
    assert list(Walk(path).bare()) == [], "write plain(…) around a text that is not the file's own"


def test_every_file_that_draws_is_walked() -> None:
    """Streamlit is imported by the files above alone, so that no page is forgotten."""
    draws = {p for p in (ROOT / "src").rglob("*.py") if re.search(r"^\s*(import|from) streamlit", p.read_text(), re.M)}
    assert draws <= {*FILES}
    assert len(draws) > 30


# pages, and what a careless line in them would draw: each must be found where it stands
CARELESS = {
    "ui/pages/compare/patching.py": "st.markdown(found.from_label)",
    "ui/pages/head.py": "st.caption(run.title)",
    "ui/pages/data.py": "st.metric('label', 1, delta=view.a)",
    "ui/shell/frame.py": "st.page_link('pages/x.py', label=state.view().model)",
    "ui/pages/runs/faster.py": "st.expander(f'of {view.record.title}')",
}


def test_a_careless_line_is_found_in_a_page() -> None:
    for name, line in CARELESS.items():
        path = ROOT / "src/headviz" / name
        text = path.read_text(encoding="utf-8") + f"\n\ndef careless(view, found, run):\n    {line}\n"
        (found,) = Walk(path, text).bare()
        assert name in found


MARKDOWN = [
    "![x](http://host.example/x.png)",
    "[x](http://host.example)",
    "<img src=http://host.example/x.png>",
    "http://host.example",
    "www.host.example",
    "me@host.example",
    "**bold** _it_ `code` ~~gone~~ $x^2$ :red[red] :material/home: # title",
    "| a | b |\n|---|---|",
    "1. one",
    "title\n===",
    "\\![x](http://host.example/x.png)",
]


@pytest.mark.parametrize("text", MARKDOWN)
def test_plain_text_keeps_its_words_and_nothing_that_markdown_reads(text: str) -> None:
    escaped = plain(text)
    assert re.sub(r"\\(.)|\u200b", r"\1", escaped) == text
    unescaped = re.sub(r"\\.", "", escaped)
    assert not re.search(r"[\\`*_{}\[\]()#+.!|<>$~:^=&-]", unescaped)
    seen = re.sub(r"\\(.)", r"\1", escaped)  # what a browser has after reading the escapes
    assert not re.search(r"https?://|www\.|\w@\w|:[a-z]+:", seen)
