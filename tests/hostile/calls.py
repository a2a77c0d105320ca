"""Links with hostile parameters, and Python calls with a wrong argument."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from .case import Case
from .place import Place
from .values import THINGS, WORDS


def link_case(draw: random.Random, place: Place) -> Case:
    from headviz.ui.shell.view import FIELDS

    names = draw.sample([*sorted(FIELDS), "long", "nonsense"], draw.randrange(1, 6))
    address = {n: draw.choice([*WORDS, *place.special]) for n in names}

    def run() -> None:
        from headviz.ui.shell import loaders
        from headviz.ui.shell.view import from_address, to_address

        view, complaints = from_address(address)
        assert all("\n" not in line for line in complaints)
        assert from_address(to_address(view))[0] == view or any(len(t) > 1500 for t in (view.a, view.b))
        if "model" in names:
            loaders.model_name(view.model)
            if loaders.is_path(view.model):
                loaders.shape(view)
        if "data" in names and view.data:
            loaders.confined(view.data)

    return Case("link", repr(address)[:1500], run)


def call_case(draw: random.Random, place: Place, clf: Any, data: Any) -> Case:
    import headviz
    from headviz.heads import HeadMask

    def some() -> Any:
        return draw.choice(THINGS)

    def in_block(model: Any, mask: Any) -> None:
        with headviz.masked(model, mask):
            pass

    def ablated(data: Any, **options: Any) -> None:
        headviz.ablate(headviz.Evaluator(clf, data), **options)

    calls: dict[str, tuple[Callable[..., Any], list[Any], dict[str, list[Any]]]] = {
        "HeadMask.full": (HeadMask.full, [2, 2], {}),
        "without": (HeadMask.full(2, 2).without, [[(0, 0)]], {}),
        "with_": (HeadMask.full(2, 2).with_, [[(0, 0)]], {}),
        "toggled": (HeadMask.full(2, 2).toggled, [[(0, 0)]], {}),
        "from_hex": (HeadMask.from_hex, ["f", 2, 2], {}),
        "from_array": (HeadMask.from_array, [[[1, 0], [0, 1]]], {}),
        "without_random": (HeadMask.full(2, 2).without_random, [1], {}),
        "load": (headviz.load, [place.model], {"device": ["cpu"], "dtype": ["float32"], "revision": [None]}),
        "load_task": (
            headviz.load_task,
            ["custom"],
            {
                "split": ["dev"],
                "data": [place.data],
                "limit": [4],
                "text_columns": ["text"],
                "label_column": ["label"],
                "slice_column": [None],
                "metrics": [None],
                "job": [None],
            },
        ),
        "sample": (headviz.sample, [data, 4], {"length_filter": ["none"]}),
        "evaluate": (
            headviz.evaluate,
            [clf, data],
            {"mask": [None], "label_order": [None], "beams": [1], "ablation": ["zero"], "reference": [None]},
        ),
        "conductance": (
            headviz.conductance,
            [clf, "a dog"],
            {"steps": [2], "rule": ["trapezoid"], "target": ["predicted"], "mask": [None], "tolerance": [None]},
        ),
        "score_heads": (
            headviz.score_heads,
            [clf, data],
            {"score": ["random"], "preset": [None], "mask": [None], "label_order": [None]},
        ),
        "grade": (headviz.grade, [clf, data], {"scores": [["random"]]}),
        "patch": (headviz.patch, [clf, "a dog", "no dog"], {"positions": ["all"], "target": ["predicted"]}),
        "patch_pairs": (headviz.patch_pairs, [clf, [("a dog", "no dog"), ("two birds", "no birds")]], {}),
        "paths": (headviz.paths, [clf, [("a dog", "no dog")]], {"receivers": [1], "depth": [0], "edges": [4]}),
        "token_explanations": (
            headviz.token_explanations,
            [clf, "two red birds", "no birds"],
            {"methods": [["rollout"]], "target": ["predicted"], "orders": [2], "seed": [0], "mask": [None]},
        ),
        "roles": (headviz.roles, [clf, data], {}),
        "ablate": (ablated, [data], {"metric": [None], "ablation": ["zero"]}),
        "masked": (in_block, [clf.model, {0: [0]}], {}),
        "prune_faster": (headviz.prune_faster, [clf, data], {"faster": [1.2], "remove": ["both"], "repair": ["refit"]}),
        "prune": (headviz.prune, [clf, HeadMask.full(2, 2)], {}),
        "paired": (headviz.paired, [[0, 1], [0, 1], [1, 1]], {"metric": ["accuracy"], "level": [0.95]}),
        "wrap": (headviz.wrap, [None, None], {}),
    }
    name = draw.choice(sorted(calls))
    function, positional, keywords = calls[name]
    args = list(positional)
    kwargs = {k: v[0] for k, v in keywords.items() if k in ("data", "text_columns", "label_column")}
    wrong = draw.sample([*range(len(args)), *keywords], 1)
    for place_of in wrong:
        if isinstance(place_of, int):
            args[place_of] = some()
        else:
            kwargs[place_of] = some()
    shown = ", ".join([*map(_short, args), *(f"{k}={_short(v)}" for k, v in kwargs.items())])
    return Case("call", f"{name}({shown})", lambda: function(*args, **kwargs))


def _short(value: Any) -> str:
    try:
        return repr(value)[:60]
    except ValueError:
        return "10**5000"
