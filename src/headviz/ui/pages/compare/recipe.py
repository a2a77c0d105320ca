"""What Compare's open tab shows, as a call of the library and as a command."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ....attribution.alignment import ALL
from ....display.recipes import Code, Options, call, command
from ...parts import measure
from ...parts.texts import Text
from ...shell import recipes, state
from ...shell.view import View
from . import patching

if TYPE_CHECKING:
    from ....models.classifier import Classifier

CLF, MASK = Code("clf"), Code("mask")
PRINTED = "print(found.to_json())"


def recipe(view: View, clf: Classifier, shown: Text) -> tuple[str, str]:
    """Python and the command of the open tab. The command is empty where it has no word for what was chosen."""
    if not shown.empty and view.tab == "Explanations":
        return _explanations(view, clf, shown)
    given = None if shown.empty or view.tab != "Patching" else patching.given(clf, shown)
    return _answers(view, clf, shown) if given is None else _patching(view, clf, shown, given)


def _answers(view: View, clf: Classifier, shown: Text) -> tuple[str, str]:
    """The answer from the library; the command explains the same text."""
    texts = ([shown.text],) if shown.pair is None else ([shown.text], [shown.pair])
    logits = "clf.logits(batch, mask)"
    lines = (
        f"batch = clf.collate({call('clf.encode', *texts)})",
        f"print(clf.labels, {logits}.softmax(-1))" if clf.answer.decides else f"print({logits})",
    )
    return _recipe(view, clf, lines, "conductance", (*_text("text", _one(shown)), ("out", "maps.npz")))


def _explanations(view: View, clf: Classifier, shown: Text) -> tuple[str, str]:
    texts = (shown.text,) if shown.pair is None else (shown.text, shown.pair)
    found = call("headviz.token_explanations", CLF, *texts, mask=MASK)
    return _recipe(view, clf, (f"found = {found}", PRINTED), "tokens", _text("text", _one(shown)))


def _patching(view: View, clf: Classifier, shown: Text, given: patching.Pair) -> tuple[str, str]:
    """Patching heads, or the paths between them once these have been asked for."""
    asked, many = patching.paths_asked(given.memory)
    words: dict[str, Any] = {} if view.positions == ALL else {"positions": view.positions}
    if given.edited is not None and not (asked and many):
        words["alignment"] = given.edited
    lines: tuple[str, ...] = (f"text = {given.one!r}", f"donor = {given.other!r}")
    if asked:
        if many:
            one = "((a.premise, a.hypothesis), (b.premise, b.hypothesis))"
            lines = (f"pairs = [{one} for a, b in headviz.minimal_pairs({shown.slice!r}, {patching.DRAWN})]",)
        pairs = Code("pairs" if many else "[(text, donor)]")
        found = call("headviz.paths", CLF, pairs, **words, mask=MASK)
    else:
        found = call("headviz.patch", CLF, Code("text"), Code("donor"), **words, mask=MASK)
    options = (*_text("text", given.one), *_text("donor", given.other), *command_words(words))
    lines = (*lines, f"found = {found}", PRINTED)
    python, line = _recipe(view, clf, lines, "patch --paths" if asked else "patch", options)
    return python, "" if asked and many else line


def command_words(words: dict[str, Any]) -> Options:
    """The same for the command, which writes an alignment as 0:0,1:2."""
    written = {"alignment": ",".join(f"{i}:{j}" for i, j in words["alignment"].items())} if "alignment" in words else {}
    return tuple({**words, **written}.items())


def _one(shown: Text) -> Any:
    return shown.text if shown.pair is None else (shown.text, shown.pair)


def _text(name: str, given: Any) -> Options:
    first, second = (given, None) if isinstance(given, str) else given
    return (name, first), (f"{name}-pair", second)


def _recipe(view: View, clf: Classifier, lines: tuple[str, ...], words: str, options: Options) -> tuple[str, str]:
    mask = state.mask(clf.present)
    filled, told = recipes.model_filled(view, measure.stand_in_of_model(mask))
    start = (recipes.HEADVIZ, recipes.load(view), *filled, recipes.mask_of(mask))
    all_options = (*recipes.model_options(view), *options, *recipes.mask_options(mask), *told)
    return "\n".join((*start, *lines)), command(words, all_options)
