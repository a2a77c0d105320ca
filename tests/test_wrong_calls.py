"""Wrong types and values in Python calls: a ``UserError`` in one line, never an error from inside."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import headviz
from headviz.errors import UserError
from headviz.evaluation.evaluator import EvaluatorOptions
from headviz.heads import HeadId, HeadMask
from headviz.pruning import FinetuneOptions
from headviz.scores.options import TaylorOptions
from headviz.tasks import Dataset
from support.tiny import tiny_classifier, tiny_model

MASKS: dict[str, Callable[[], Any]] = {
    "half a layer": lambda: HeadMask.full(1.5, 2),  # type: ignore[arg-type]
    "yes layers": lambda: HeadMask.full(True, 2),
    "words": lambda: HeadMask.full("2", 2),  # type: ignore[arg-type]
    "none": lambda: HeadMask.full(0, 2),
    "very many": lambda: HeadMask.full(10**5000, 2),
    "a truth value as a head": lambda: HeadMask.full(2, 2).without([(True, False)]),
    "half a head": lambda: HeadMask.full(2, 2).without([(0.5, 1)]),  # type: ignore[list-item]
    "a head of 5,000 digits": lambda: HeadMask.full(2, 2).without(["0." + "9" * 5000]),
    "no heads": lambda: HeadMask.full(2, 2).without(3),  # type: ignore[arg-type]
    "a number for hex": lambda: HeadMask.from_hex(3, 2, 2),  # type: ignore[arg-type]
    "hex of half a layer": lambda: HeadMask.from_hex("f", 1.5, 2),  # type: ignore[arg-type]
    "a row for a table": lambda: HeadMask.from_array([1, 0]),
    "uneven rows": lambda: HeadMask.from_array([[1, 0], [1]]),
    "an empty table": lambda: HeadMask.from_array([]),
    "rows without heads": lambda: HeadMask.from_array([[], []]),
    "shares for a table": lambda: HeadMask.from_array([[0.5, 1], [1, 1]]),
    "words for a table": lambda: HeadMask.from_array([["0", "False"]]),
    "a word for a table": lambda: HeadMask.from_array("x"),
    "heads for a table": lambda: HeadMask.from_array([(3, 5), (7, 0)]),
    "not a number in a table": lambda: HeadMask.from_array([[float("nan"), 1]]),
    "no list of heads": lambda: HeadMask(2, 2, None),  # type: ignore[arg-type]
    "a number for a head's text": lambda: HeadMask.full(2, 2).without([HeadId.parse(1.0)]),  # type: ignore[arg-type]
    "a count that is none": lambda: HeadMask.full(2, 2).without_random(1.5),  # type: ignore[arg-type]
    "another type": lambda: HeadMask.full(2, 2) | {(0, 0)},  # type: ignore[operator]
}


@pytest.fixture(scope="module")
def clf() -> Any:
    return tiny_classifier(layers=2, heads=2, hidden=8)


def line(call: Callable[[], Any]) -> str:
    with pytest.raises(UserError) as wrong:
        call()
    text = str(wrong.value)
    assert "\n" not in text
    assert len(text) < 500
    return text


@pytest.mark.parametrize("what", MASKS)
def test_a_mask_that_is_none(what: str) -> None:
    line(MASKS[what])


WRONG: list[Any] = [None, 3, "demo", object(), {"a": 1}, [[]], np.zeros(3)]
# kind of argument, by its annotation -> what the message names
NEEDED = {
    **dict.fromkeys(["Classifier", "Model", "M", "TransformerModel", "Translator"], "headviz.load"),
    "Dataset": "headviz.load_task",
    **dict.fromkeys(["MaskEvaluator", "Evaluator"], "headviz.evaluator_of"),
    **dict.fromkeys(["HeadMask", "MaskLike"], "mask"),
    "HeadScores": "headviz.score_heads",
    "PruningPlan": "headviz.PruningPlan",
    "DistillationPlan": "headviz.DistillationPlan",
}
PLACES = [
    (name, place)
    for name in headviz.__all__
    if inspect.isfunction(getattr(headviz, name))
    for place, given in inspect.signature(getattr(headviz, name)).parameters.items()
    if given.default is inspect.Parameter.empty and given.annotation in NEEDED
]


def used(made: Any) -> None:
    """Start what starts only when it is used: a generator, a ``with`` block."""
    if inspect.isgenerator(made):
        list(made)
    elif hasattr(made, "__enter__"):
        made.__enter__()


@pytest.mark.parametrize(("name", "place"), PLACES, ids=[f"{n}({p})" for n, p in PLACES])
def test_another_type_is_told_and_what_is_needed(name: str, place: str, clf: Any, tmp_path: Path) -> None:
    """Every function that is public, every argument that is a model, data, an evaluator, a mask or a plan."""
    function, wanted = getattr(headviz, name), good(name, clf, tmp_path)
    needed = NEEDED[inspect.signature(function).parameters[place].annotation]
    for wrong in WRONG:
        given = {**wanted, place: wrong}
        assert needed in line(lambda: used(function(**given)))  # noqa: B023


def good(name: str, clf: Any, tmp_path: Path) -> dict[str, Any]:
    """Arguments of their types for whatever a public function must be given."""
    data = headviz.load_task("demo", limit=4)
    evaluator = headviz.Evaluator(clf, data)
    kinds = {"Dataset": data, "MaskEvaluator": evaluator, "Evaluator": evaluator, "HeadMask": HeadMask.full(2, 2)}
    kinds["MaskLike"] = kinds["HeadMask"]
    kinds |= dict.fromkeys(["Classifier", "Model", "M", "TransformerModel"], clf)
    names = {"head": "0.0", "pair": None, "path": tmp_path / "x.npy", "folder": tmp_path, "score": "random"}
    names |= {"scores": np.zeros((2, 2)), "orders": {"x": np.zeros((2, 2))}, "texts": ["a"], "n": 3, "scorer": None}
    names["model"] = tiny_model(layers=2, heads=2, hidden=8)
    names |= {"pretrained": [clf], "measure": lambda _: np.zeros((2, 2)), "pairs": [("a dog", "no dog")]}
    return {
        p.name: kinds.get(p.annotation, names.get(p.name, "a dog"))
        for p in inspect.signature(getattr(headviz, name)).parameters.values()
        if p.default is p.empty and p.kind is not p.VAR_KEYWORD
    }


FUNCTIONS = [
    (name, option)
    for name in headviz.__all__
    if inspect.isfunction(getattr(headviz, name))
    for option in ("progress", "cancel")
    if option in inspect.signature(getattr(headviz, name)).parameters
]


@pytest.mark.parametrize(("name", "option"), FUNCTIONS, ids=[f"{n}({o})" for n, o in FUNCTIONS])
def test_what_is_no_function(name: str, option: str, clf: Any, tmp_path: Path) -> None:
    with suppress(UserError):  # where it is never called, nothing is said
        used(getattr(headviz, name)(**good(name, clf, tmp_path), **{option: "x"}))


CALLS: dict[str, Callable[[Any], Any]] = {
    "no text": lambda clf: headviz.conductance(clf, 3),
    "text of None": lambda clf: headviz.conductance(clf, None),
    "half of a character": lambda clf: headviz.conductance(clf, "a \udcff dog"),
    "positions that are none": lambda clf: headviz.patch(clf, "a dog", "no dog", positions=10**5000),
    "an ablation of 5,000 digits": lambda clf: headviz.evaluate(
        clf, headviz.load_task("demo", limit=4), ablation=10**5000
    ),
    "no steps": lambda clf: headviz.conductance(clf, "a dog", steps="many"),
    "a hundred million steps": lambda clf: headviz.conductance(clf, "a dog", steps=10**8),
    "a mask of words": lambda clf: headviz.conductance(clf, "a dog", mask="fff"),
    "a mask of another grid": lambda clf: headviz.conductance(clf, "a dog", mask=HeadMask.full(9, 9)),
    "no target": lambda clf: headviz.conductance(clf, "a dog", target=1.5),
    "a negative tolerance": lambda clf: headviz.conductance(clf, "a dog", tolerance=-1),
    "a tolerance of words": lambda clf: headviz.conductance(clf, "a dog", tolerance="small"),
    "pruned by words": lambda clf: headviz.prune(clf, "0.1"),
    "a task that is none": lambda clf: headviz.load_task(3),
    "a split that is none": lambda clf: headviz.load_task("demo", split=None),
    "columns that are none": lambda clf: headviz.load_task("custom", data=".", text_columns=3),
    "data that are none": lambda clf: headviz.load_task("custom", data=3),
    "a limit that is none": lambda clf: headviz.load_task("demo", limit="many"),
    "a limit of yes": lambda clf: headviz.load_task("demo", limit=True),
    "a job that is none": lambda clf: Dataset.of(["a dog", "a cat"], labels=["x", "y"], job="nonsense"),
    "a list of separators": lambda clf: headviz.load_task("demo", separator=[";"]),
    "a huge limit": lambda clf: headviz.load_task("demo", split="train", limit=10**12),
    "a model that is none": lambda clf: headviz.load(3),
    "a model of bytes": lambda clf: headviz.load(b"demo"),
    "a device that is none": lambda clf: headviz.load("demo", device=3.5),
    "the device meta": lambda clf: headviz.load("demo", device="meta"),
    "a precision that is none": lambda clf: headviz.load("demo", dtype=3),
    "half an example": lambda clf: headviz.sample(headviz.load_task("demo", limit=4), 1.5),
    "an unknown score": lambda clf: headviz.score_heads(clf, headviz.load_task("demo", limit=4), score=3),
    "an unknown option": lambda clf: headviz.score_heads(clf, headviz.load_task("demo", limit=4), nonsense=1),
    "a wrapped nothing": lambda clf: headviz.wrap(None, None),
    "a wrapped word": lambda clf: headviz.wrap("bert", "tokenizer"),
    "batches of no tokens": lambda clf: headviz.evaluate(clf, headviz.load_task("demo", limit=4), batch_tokens=0),
}


@pytest.mark.parametrize("what", CALLS)
def test_a_wrong_argument(what: str, clf: Any) -> None:
    line(lambda: CALLS[what](clf))


def shapley_options(**options: Any) -> Any:
    from headviz.extras.scores.options import ShapleyOptions

    return ShapleyOptions(**options)


def translation_options(**options: Any) -> Any:
    from headviz.extras.translation.evaluation import TranslationOptions

    return TranslationOptions(**options)


def recurrent_config(*sizes: int, **options: Any) -> Any:
    from headviz.extras.translation.recurrent import RnnConfig

    return RnnConfig(*sizes, **options)


COUNTS: dict[str, Callable[[Any], Any]] = {
    "budget": lambda n: EvaluatorOptions(budget=n),
    "chunk_tokens": lambda n: EvaluatorOptions(chunk_tokens=n),
    "beams": lambda n: translation_options(beams=n),
    "batch_tokens": lambda n: translation_options(batch_tokens=n),
    "batch_size": lambda n: TaylorOptions(batch_size=n),
    "permutations": lambda n: shapley_options(permutations=n),
    "units": lambda n: recurrent_config(9, 9, units=n),
}


@pytest.mark.parametrize("name", COUNTS)
def test_what_is_no_count(name: str) -> None:
    for wrong in ("a", 1.5, True, -1, [3], np.float64(2)):
        assert line(lambda: COUNTS[name](wrong)).startswith(name)  # noqa: B023
    COUNTS[name](np.int64(5))


def test_plans_with_numpys_numbers_are_the_plain_ones() -> None:
    made = []
    for number in (int, np.int64):
        training = FinetuneOptions(batch=number(8))
        made.append(headviz.PruningPlan("m", "demo", "iterative", samples=number(20), finetune=training))
    one, two = made
    assert one.digest == two.digest
    assert one.to_dict() == two.to_dict()


@pytest.mark.parametrize("kept", [np.ones((2, 3), bool), np.ones((2, 3)), [[1, True, 1.0]] * 2, torch.ones(2, 3)])
def test_tables_of_ones_and_zeros_are_masks(kept: Any) -> None:
    assert HeadMask.from_array(kept) == HeadMask.full(2, 3)


def some(**changes: Any) -> Dataset:
    given = {"texts": ("a dog", "a cat"), "pairs": ("b", "c"), "labels": [0, 1]}
    return Dataset(**({"task": headviz.load_task("demo", limit=2).task, "split": "dev"} | given | changes))


BAD: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "a column of labels": ("2 dimensions", lambda clf: some(labels=[[0], [1]])),
    "no text": ("is no text", lambda clf: some(texts=(None, "a"))),
    "a number for a pair": ("is no text", lambda clf: some(pairs=("a", 3))),
    "a name for a task": ("get_task", lambda clf: some(task="demo")),
    "no tokenizer": ("tokenizer", lambda clf: headviz.wrap(clf.model, None)),
    "a word for a tokenizer": ("tokenizer", lambda clf: headviz.wrap(clf.model, "x")),
    "a seed below 0": ("seed", lambda clf: headviz.sample(some(), 2, seed=-1)),
    "no seed": ("seed", lambda clf: headviz.sample(some(), 2, seed=None)),  # type: ignore[arg-type]
    "half a seed": ("seed", lambda clf: headviz.load_task("demo", limit=3, seed=1.5)),  # type: ignore[arg-type]
    "a number for a set": ("list of heads", lambda clf: headviz.patch(clf, *PAIR, sets=[5])),  # type: ignore[list-item]
    "half a head in a set": ("not a head", lambda clf: headviz.patch(clf, *PAIR, sets=[[(0.5, 1)]])),  # type: ignore
    "a list for an alignment": ("alignment", lambda clf: headviz.patch(clf, *PAIR, alignment=[0, 1])),  # type: ignore
    "a word for a budget": ("budget", lambda clf: headviz.conductance(clf, "a", pair="b", budget="x")),  # type: ignore
    "a class for a model": ("not the class", lambda clf: headviz.evaluate(type(clf), some())),
    "examples that are no numbers": ("whole numbers", lambda clf: some().subset([float("nan")])),  # type: ignore
    "no new classes": ("fresh_labels", lambda clf: headviz.load("demo-pretrained", fresh_labels=())),
    "equal classes": ("fresh_labels", lambda clf: headviz.load("demo-pretrained", fresh_labels=("a", "a"))),
    "classes that run out": ("class_names", lambda clf: headviz.load("demo", class_names=(c for c in "abc"))),  # type: ignore
    "a head of words": ("not a head", lambda clf: clf.present.without([headviz.HeadId("a", "b")])),  # type: ignore
    "a number for options": ("EvaluatorOptions", lambda clf: headviz.Evaluator(clf, some(), options=3)),  # type: ignore
    "a model that shows nothing": ("headviz.load", lambda clf: headviz.show(3)),  # type: ignore[arg-type]
    "a transfer of nothing": ("Mapping", lambda clf: headviz.transfer(None, None)),  # type: ignore[arg-type]
    "a billion random masks": ("random", lambda clf: headviz.transfer({"a": "f"}, {"b": {}}, random=10**9)),
    "a classifier that translates": ("translates", lambda clf: headviz.translate(clf, ["a"])),
    "a search with too many beams": ("beams", lambda clf: translation_options(beams=65)),
    **{
        f"{name} of 5,000 digits": ("digits", lambda clf, name=name: headviz.load_task("demo", **{name: 10**5000}))
        for name in ("split", "data", "metrics")
    },
    "a task of 5,000 digits": ("digits", lambda clf: headviz.load_task(10**5000)),  # type: ignore
    "a sample of 5,000 digits": ("digits", lambda clf: headviz.sample(some(), -(10**5000))),
    "a device of 5,000 digits": ("Device", lambda clf: headviz.load("demo", device=10**5000)),  # type: ignore
    "a precision of 5,000 digits": ("dtype", lambda clf: headviz.load("demo", dtype=10**5000)),  # type: ignore
    "a seed that is no number": ("seed", lambda clf: headviz.load("demo", seed=float("nan"))),  # type: ignore
    "a revision of the demo": ("no revisions", lambda clf: headviz.load("demo", revision="main")),
}
PAIR = ("a dog sleeps", "b"), ("a cat sleeps", "b")


@pytest.mark.parametrize("what", BAD)
def test_what_was_an_error_from_inside(what: str, clf: Any) -> None:
    says, call = BAD[what]
    assert says in line(lambda: call(clf))
