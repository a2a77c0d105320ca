"""No product of float32 matrices depends on what the caller has set for a GPU: each is made inside ``products``."""

from __future__ import annotations

import importlib
import pkgutil
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

import headviz
from headviz.attribution import text_under_mask
from headviz.models.fast import linear
from headviz.options import declared
from headviz.pruning.removal import repaired
from headviz.scores.catalogue import SCORES
from support.tiny import PAIRS, pairs_of_texts, tiny_classifier
from support.tiny_translation import SOURCES, tiny_translator

PRODUCTS = ("matmul", "addmm", "::mm", "bmm", "linear", "scaled_dot")
FOLDERS = ("analyses", "attribution", "evaluation", "extras", "models", "pruning", "scores")
N = 12
DATA = pairs_of_texts(N)
ONE, OTHER = ("a dog sleeps .", "the bird is blue ."), ("a cat sleeps .", "the bird is red .")
WITHOUT = ("magnitude", "random")  # without a product in float32
OFF = {0: [1], 1: [2]}


class Outside(TorchDispatchMode):
    """Counts products of float32 matrices that are made while no ``products`` is open, by the line that makes them."""

    def __init__(self, depth: list[int]) -> None:
        super().__init__()
        self.depth, self.inside, self.lines = depth, 0, Counter[str]()

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        tables = [t for t in torch.utils._pytree.tree_leaves(args) if isinstance(t, Tensor)]
        if any(name in func.name() for name in PRODUCTS) and any(t.dtype == torch.float32 for t in tables):
            self.inside += self.depth[0] > 0
            if self.depth[0] == 0:
                frames = [f for f in traceback.extract_stack() if "/headviz/" in f.filename]
                self.lines[f"{frames[-1].filename.split('/headviz/')[-1]}:{frames[-1].lineno}" if frames else "?"] += 1
        return func(*args, **(kwargs or {}))


@pytest.fixture
def outside(monkeypatch: pytest.MonkeyPatch) -> Outside:
    depth = [0]

    def counted(products: Callable[..., Any]) -> Callable[..., Any]:
        @contextmanager
        def within(*args: Any) -> Iterator[None]:
            depth[0] += 1
            try:
                with products(*args):
                    yield
            finally:
                depth[0] -= 1

        return within

    for folder in FOLDERS:
        package = importlib.import_module(f"headviz.{folder}")
        for module in pkgutil.walk_packages(package.__path__, f"headviz.{folder}."):
            if ".pages" not in module.name:  # they import Streamlit
                importlib.import_module(module.name)
    originals = {name: getattr(linear, name) for name in ("products", "gpu_products")}
    for module in [m for name, m in sys.modules.items() if name.startswith("headviz")]:
        for name, original in originals.items():
            if vars(module).get(name) is original:
                monkeypatch.setattr(module, name, counted(original))
    return Outside(depth)


def ablated(kind: str) -> Callable[[Any], Any]:
    return lambda clf: headviz.evaluate(clf, DATA, OFF, ablation=kind, reference=DATA)


def scored(name: str) -> Callable[[Any], Any]:
    few = {"steps": 2} if "steps" in declared(SCORES[name].options) else {}
    return lambda clf: headviz.score_heads(clf, DATA, name, cache=False, **few)


CALLS: dict[str, Callable[[Any], Any]] = {
    "logits": lambda clf: clf.logits(clf.collate(clf.encode(*map(list, (DATA.texts, PAIRS * 3)))), OFF),
    "conductance": lambda clf: headviz.conductance(clf, *ONE, steps=4, cache=False),
    "attattr": lambda clf: headviz.attattr(clf, *ONE, steps=2, cache=False),
    "evaluate": lambda clf: headviz.evaluate(clf, DATA, OFF),
    "agreement": lambda clf: headviz.Evaluator(clf, DATA).agreement(OFF),
    "ablate": lambda clf: headviz.ablate(clf, DATA),
    "contributions": lambda clf: headviz.contributions(clf, *ONE, mask=OFF),
    "head_reading": lambda clf: headviz.head_reading(clf, *ONE, (1, 1)),
    "token_attributions": lambda clf: headviz.token_attributions(clf, *ONE, steps=2),
    "token_explanations": lambda clf: headviz.token_explanations(clf, *ONE),
    "patch": lambda clf: headviz.patch(clf, ONE, OTHER, sets=[[(0, 0), (1, 1)]]),
    "paths": lambda clf: headviz.paths(clf, [(ONE, OTHER)]),
    "interactions": lambda clf: headviz.interactions(headviz.Evaluator(clf, DATA)),
    "roles": lambda clf: headviz.roles(clf, DATA),
    "toggled_each": lambda clf: text_under_mask.toggled_each(clf, *ONE, clf.full_mask),
    "attention_shift": lambda clf: text_under_mask.attention_shift(clf, *ONE, clf.under(OFF)),
    "attention_of": lambda clf: text_under_mask.attention_of(clf, *ONE, clf.under(OFF), headviz.HeadId(0, 0)),
    "tune": lambda clf: repaired(clf, clf.under(OFF), DATA, "tune"),
    "bias": lambda clf: repaired(clf, clf.under(OFF), DATA, "bias"),
    **{kind: ablated(kind) for kind in ("mean", "mean-by-place", "resample", "constant")},
    **{name: scored(name) for name in SCORES},
}


@pytest.mark.parametrize("name", CALLS)
def test_every_product_has_a_stated_precision(name: str, outside: Outside) -> None:
    clf = tiny_classifier(layers=2)
    with outside:
        CALLS[name](clf)
    assert outside.inside or name in WITHOUT
    assert not outside.lines


def test_patches_by_whole_passes(outside: Outside) -> None:
    clf = tiny_classifier("modernbert", layers=2)
    with outside:
        headviz.patch(clf, ONE, OTHER)
    assert outside.inside
    assert not outside.lines


def test_translations(outside: Outside) -> None:
    clf = tiny_translator()
    with outside:
        headviz.translate(clf, SOURCES)
    assert outside.inside
    assert not outside.lines
