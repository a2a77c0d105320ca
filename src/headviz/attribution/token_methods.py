"""The methods of ``headviz.token_explanations``, as a table that imports no torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import OptionError, is_one_of, seed_number, unknown_choice, whole_number

ORDERS = 20  # random ones


@dataclass(frozen=True)
class Method:
    """One way to explain. ``signed``: it says for or against the class; the others only say how much."""

    name: str
    title: str
    meaning: str
    source: str
    signed: bool
    values: Callable[[Any], np.ndarray]  # of a question: a text, a class and a mask


METHODS: Mapping[str, Method] = {
    m.name: m
    for m in (
        Method(
            "rollout",
            "attention rollout",
            "how much attention flows from the word to [CLS], over all layers; not for a class",
            "Abnar and Zuidema 2020 (arXiv 2005.00928)",
            False,
            lambda question: question.flow.rollout(),
        ),
        Method(
            "value-norm",
            "value-weighted norm",
            "the same with the size of what the heads write of each word; not for a class",
            "Kobayashi et al. 2020 (arXiv 2004.10102), rolled out over layers",
            False,
            lambda question: question.flow.norms(),
        ),
        Method(
            "integrated-gradients",
            "integrated gradients",
            "what the word adds to the logit, on a straight path from padding",
            "Sundararajan, Taly, Yan 2017 (arXiv 1703.01365), by Captum",
            True,
            lambda question: question.integrated(),
        ),
        Method(
            "attnlrp",
            "AttnLRP",
            "the word's relevance; with what the biases have, relevance sums to the logit",
            "Achtibat et al. 2024 (arXiv 2402.05602)",
            True,
            lambda question: question.relevance[0],
        ),
    )
}


def chosen_methods(methods: Sequence[str] | None, orders: int = ORDERS, seed: int = 0) -> tuple[str, ...]:
    """The names asked for, each once; all without any. ``OptionError`` for what is not valid."""
    whole_number(orders, "orders", 1, 1000)
    seed_number(seed)
    if isinstance(methods, str) or not isinstance(methods, Sequence | None):
        raise OptionError(f"methods are a list of names: {', '.join(METHODS)}.")
    names = tuple(METHODS) if methods is None else tuple(methods)
    for name in names:
        if not is_one_of(name, METHODS):
            raise OptionError(unknown_choice("method", name, METHODS))
    if not names:
        raise OptionError(f"Name at least one method: {', '.join(METHODS)}.")
    return tuple(dict.fromkeys(names))
