"""What Compare's open tab shows, as a call of the library and as a command."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ....attribution.alignment import ALL
from ....recipes.structure import Call, Command, Each, Get, Let, Name, Recipe
from ...parts import reference
from ...parts.texts import Text
from ...shell import recipes, state
from ...shell.view import View
from . import patching, paths

if TYPE_CHECKING:
    from ....models.classifier import Classifier

PRINTED = Call("print", (Call("found.to_json"),))
OF_A_PAIR = Name("((a.premise, a.hypothesis), (b.premise, b.hypothesis))")


def recipe(view: View, clf: Classifier, shown: Text) -> tuple[str, str]:
    """Python and the command of the open tab. The command is empty where it has no word for what was chosen."""
    if not shown.empty and view.tab == "Explanations":
        return _explanations(view, clf, shown).written()
    given = None if shown.empty or view.tab != "Patching" else patching.given(clf, shown)
    return _answers(view, clf, shown).written() if given is None else _patching(view, clf, shown, given)


def _answers(view: View, clf: Classifier, shown: Text) -> Recipe:
    """The answer from the library; the command explains the same text."""
    texts = ([shown.text],) if shown.pair is None else ([shown.text], [shown.pair])
    logits = Call("clf.logits", (Name("batch"), Name("mask")))
    lines = (
        Let("batch", Call("clf.collate", (Call("clf.encode", texts),))),
        Call("print", (logits,) if clf.is_regression else (Name("clf.labels"), Call(Get(logits, "softmax"), (-1,)))),
    )
    return _recipe(view, clf, lines, ("conductance",), (*_text("text", _one(shown)), ("out", "maps.npz")))


def _explanations(view: View, clf: Classifier, shown: Text) -> Recipe:
    texts = (shown.text,) if shown.pair is None else (shown.text, shown.pair)
    found = Call("headviz.token_explanations", (Name("clf"), *texts), {"mask": Name("mask")})
    return _recipe(view, clf, (Let("found", found), PRINTED), ("tokens",), _text("text", _one(shown)))


def _patching(view: View, clf: Classifier, shown: Text, given: paths.Given) -> tuple[str, str]:
    """Patching heads, or the paths between them once these have been asked for."""
    asked, many = paths.asked(given.memory)
    words: dict[str, Any] = {} if view.positions == ALL else {"positions": view.positions}
    if given.edited is not None and not (asked and many):
        words["alignment"] = given.edited
    lines: tuple[Any, ...] = (Let("text", given.one), Let("donor", given.other))
    if asked:
        pairs = Name("[(text, donor)]")
        if many:
            drawn = Call("headviz.minimal_pairs", (shown.slice, paths.DRAWN))
            lines = (Let("pairs", Each(OF_A_PAIR, "a, b", drawn)),)
            pairs = Name("pairs")
        found = Call("headviz.paths", (Name("clf"), pairs), {**words, "mask": Name("mask")})
    else:
        found = Call("headviz.patch", (Name("clf"), Name("text"), Name("donor")), {**words, "mask": Name("mask")})
    options = (*_text("text", given.one), *_text("donor", given.other), *command_words(words))
    made = _recipe(
        view, clf, (*lines, Let("found", found), PRINTED), ("patch", *(["--paths"] if asked else [])), options
    )
    python, command = made.written()
    return python, "" if asked and many else command


def command_words(words: dict[str, Any]) -> recipes.Options:
    """The same for the command, which writes an alignment as 0:0,1:2."""
    written = {"alignment": ",".join(f"{i}:{j}" for i, j in words["alignment"].items())} if "alignment" in words else {}
    return tuple({**words, **written}.items())


def _one(shown: Text) -> Any:
    return shown.text if shown.pair is None else (shown.text, shown.pair)


def _text(name: str, given: Any) -> recipes.Options:
    first, second = (given, None) if isinstance(given, str) else given
    return (name, first), (f"{name}-pair", second)


def _recipe(
    view: View, clf: Classifier, lines: tuple[Any, ...], words: tuple[str, ...], options: recipes.Options
) -> Recipe:
    mask = state.mask(clf.present)
    filled, told = recipes.model_filled(view, reference.of_model(mask))
    start = (recipes.HEADVIZ, recipes.load(view), *filled, recipes.mask_of(mask))
    command = Command(words, (*recipes.model_given(view), *options, *recipes.mask_given(mask), *told))
    return Recipe((*start, *lines), command)
