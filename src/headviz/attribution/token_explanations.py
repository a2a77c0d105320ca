"""``headviz.token_explanations``: which words an answer comes from, by several methods side by side.

The methods disagree, and no truth says which is right. So each comes with its curves of deletion and insertion next to
those of random orders, and their rank correlations are shown; none is declared the best.

These curves are what the model answers while the words of an order go, or come back, one by one. A word that is gone is
padding, as at the start of integrated gradients' path; [CLS] and [SEP] stay.

Shapes: T tokens, n words, K steps of a curve, M orders.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy
import torch
from torch import Tensor, nn

from ..errors import ModelError, OptionError
from ..heads import HeadMask
from ..models.fast.linear import products
from ..models.network import require_model
from ..progress import Cancel, Progress, tracked
from ..results import Result
from ..storage.exchange import MaskLike
from .conductance import encode_one, resolve_target
from .contributions import Flow
from .integration import TOKENS_AT_ONCE
from .rules import check_steps
from .token_methods import METHODS, ORDERS, chosen_methods
from .walk import Walk, baseline_ids

if TYPE_CHECKING:
    from ..models.classifier import Classifier, Encoding


# -----------------------------------------------------------------------------------------------
# ``headviz.token_attributions``: how much each token spoke for the class, by Captum's integrated gradients.
#
# Captum does the integration (``LayerIntegratedGradients`` on the word embeddings) along the same path as
# ``conductance`` uses. It hooks the layer it looks at; here that is a private module around the embeddings made for
# the call, so that other threads that use the model are not touched.


DEFAULT_STEPS = 32
_ROWS = 32  # embeddings in one pass


@dataclass(frozen=True, eq=False)
class TokenAttributions(Result):
    """One number per token, signed: positive = it spoke for the class. [CLS] and [SEP] are 0 by construction."""

    values: np.ndarray  # [T]
    tokens: tuple[str, ...]
    types: tuple[int, ...]
    special: tuple[bool, ...]
    target: int | tuple[int, ...]
    target_label: str
    error: float  # |F(x) − F(x') − sum of the values| / |F(x) − F(x')|

    @property
    def total(self) -> float:
        return float(self.values.sum())

    def records(self) -> list[dict[str, Any]]:
        """One row for each token."""
        rows = zip(self.tokens, self.types, self.special, self.values.tolist(), strict=True)
        return [dict(zip(("token", "type", "special", "value"), row, strict=True)) for row in rows]


class _Model(nn.Module):
    """From token ids to the number to explain, with an embedding module of its own."""

    def __init__(self, walk: Walk) -> None:
        super().__init__()
        source: Any = walk.clf.model.get_input_embeddings()  # type: ignore[operator]
        self.words = nn.Sequential(source)  # the module itself: some scale what they look up
        self.walk = walk

    def forward(self, ids: Tensor) -> Tensor:
        walk = self.walk
        return walk.pick(walk.clf.forward(walk.rows(self.words(ids)), walk.clf.call(walk.mask, "eager")))


def token_attributions(
    clf: Classifier,
    text: str,
    pair: str | None = None,
    *,
    steps: int = DEFAULT_STEPS,
    target: str | int = "predicted",
    word: int | None = None,
    label: str | int | None = None,
    mask: MaskLike | None = None,
) -> TokenAttributions:
    """Signed attributions of the tokens of one text or pair; they sum to F(x) − F(x'), up to ``error``.

    >>> import headviz
    >>> clf = headviz.load("demo", device="cpu")
    >>> result = headviz.token_attributions(clf, "the small dog runs .", "the dog sleeps .", steps=4)
    >>> result.tokens[:4], len(result.values) == len(result.tokens)
    (('[CLS]', 'the', 'small', 'dog'), True)
    """
    from captum.attr import LayerIntegratedGradients

    require_model(clf)
    check_steps(steps)
    if not isinstance(text, str):
        raise OptionError("token_attributions takes one text, or one text and its pair.")
    output = resolve_target(clf, target, label, word)
    encoding = encode_one(clf, text, pair)
    clf.answer.check_word(encoding, word)
    walk = Walk(clf, [encoding], [output], mask)
    with products(clf.device):
        logits, _ = walk.at_input(keep=False)
    assert walk.chosen is not None
    chosen = clf.answer.target_of(walk.chosen[0].cpu().numpy())
    model = _Model(walk)
    ids = torch.tensor([encoding.ids], device=clf.device)
    baseline = baseline_ids(clf, [encoding], ids)
    with products(clf.device):
        parts, delta = LayerIntegratedGradients(model, model.words).attribute(
            ids, baseline, target=0, n_steps=steps, internal_batch_size=_ROWS, return_convergence_delta=True
        )
        with torch.no_grad():
            change = float(walk.pick(logits)[0, 0] - model(baseline)[0, 0])
    missing = abs(float(delta[0]))
    return TokenAttributions(
        values=parts[0].sum(dim=-1).detach().float().cpu().numpy(),
        tokens=tuple(clf.tokens(encoding)),
        types=tuple(encoding.types),
        special=tuple(encoding.special),
        target=chosen,
        target_label=clf.answer.explained_name(chosen, clf.labels),
        error=missing / abs(change) if change else (0.0 if missing == 0 else float("inf")),
    )


# -----------------------------------------------------------------------------------------------


LEAST_WORDS = 3


@dataclass
class _Question:
    """One text and class; the pass that three of the methods read is run once."""

    clf: Classifier
    texts: tuple[str, str | None]
    encoding: Encoding
    target: Any
    mask: HeadMask

    @cached_property
    def flow(self) -> Flow:
        return Flow(self.clf, self.encoding, self.mask)

    @cached_property
    def relevance(self) -> tuple[np.ndarray, float, float]:
        return self.flow.relevance(self.target)

    def integrated(self) -> np.ndarray:
        return token_attributions(self.clf, *self.texts, target=self.target, mask=self.mask).values


@dataclass(frozen=True, eq=False)
class TokenExplanations(Result):
    """M methods on one text, T tokens, curves of K + 1 points, R random orders.

    ``deletion`` falls fast for an order that finds what the answer needs, ``insertion`` rises fast.
    ``rank_correlation`` is Spearman's over words; where one of two methods has no sign, sizes are compared.
    ``refused`` says of each method that this model does not have, why.
    """

    methods: tuple[str, ...]
    values: np.ndarray  # [M, T]
    rank_correlation: np.ndarray  # [M, M]
    shares: np.ndarray  # [K + 1] of the words gone, or back
    deletion: np.ndarray  # [M, K + 1]
    insertion: np.ndarray
    random_deletion: np.ndarray  # [R, K + 1]
    random_insertion: np.ndarray
    measured: str
    target: int | tuple[int, ...]
    target_label: str
    tokens: tuple[str, ...]
    special: tuple[bool, ...]
    refused: Mapping[str, str]
    logit: float  # of the class; NaN without AttnLRP
    constants: float  # what biases have of it, by AttnLRP
    mask: HeadMask

    def areas(self) -> dict[str, dict[str, float]]:
        """Of each method the areas under its curves, and the share of random orders that they beat."""
        areas = {
            "deletion": (self.deletion, self.random_deletion),
            "insertion": (self.insertion, self.random_insertion),
        }
        out: dict[str, dict[str, float]] = {name: {} for name in self.methods}
        for kind, (curves, random) in areas.items():
            random_areas = area(random, self.shares)
            for name, value in zip(self.methods, area(curves, self.shares), strict=True):
                beaten = random_areas > value if kind == "deletion" else random_areas < value
                out[name] |= {kind: float(value), f"{kind}_beats": float(beaten.mean())}
        return out

    def extra(self) -> dict[str, Any]:
        return {"areas": self.areas()}

    def records(self) -> list[dict[str, Any]]:
        """One row for each token, with a column for each method."""
        columns = {"token": self.tokens, "special": self.special}
        columns |= dict(zip(self.methods, self.values.tolist(), strict=True))
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def token_explanations(
    clf: Classifier,
    text: str,
    pair: str | None = None,
    *,
    methods: Sequence[str] | None = None,
    target: str | int = "predicted",
    label: str | int | None = None,
    orders: int = ORDERS,
    seed: int = 0,
    mask: MaskLike | None = None,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
) -> TokenExplanations:
    """Explain one answer by several methods, each with deletion and insertion curves against random orders.

    ``methods`` are names of ``token_methods.METHODS``; by default all that the model has. A method that is asked for by
    name and that the model does not have raises ``ModelError``.

    >>> import headviz
    >>> clf = headviz.load("demo", device="cpu")
    >>> result = headviz.token_explanations(clf, "The dog is not sleeping.", "The dog is sleeping.", orders=4)
    >>> result.methods
    ('rollout', 'value-norm', 'integrated-gradients', 'attnlrp')
    >>> at = result.methods.index("attnlrp")
    >>> bool(abs(result.values[at].sum() + result.constants - result.logit) < 1e-4)
    True
    """
    require_model(clf)
    clf.check_classes()
    names = chosen_methods(methods, orders, seed)
    encoding = encode_one(clf, text, pair)
    words = words_of(encoding)
    if len(words) < LEAST_WORDS:
        raise OptionError(f"Explanations are compared on at least {LEAST_WORDS} words; this text has {len(words)}.")
    present = clf.under(mask)
    walk = Walk(clf, [encoding], [resolve_target(clf, target, label)], present)
    with products(clf.device):
        walk.at_input(keep=False)
    assert walk.chosen is not None
    question = _Question(clf, (text, pair), encoding, clf.answer.target_of(walk.chosen[0].cpu().numpy()), present)
    values, refused = _values(question, names, methods is not None)
    rng = np.random.default_rng(seed)
    ranked = [words[np.argsort(-tokens[words], kind="stable")] for tokens in values.values()]
    random = [rng.permutation(words) for _ in range(orders)]
    deletion, insertion = curves(walk, np.array(ranked + random), question.target, progress, cancel)
    count = len(ranked)
    _, constants, logit = question.relevance if "attnlrp" in values else (None, np.nan, np.nan)
    target_label = clf.answer.explained_name(question.target, clf.labels)
    return TokenExplanations(
        tuple(values),
        np.array(list(values.values())),
        _correlations(values, words),
        counts_of(len(words)) / len(words),
        deletion[:count],
        insertion[:count],
        deletion[count:],
        insertion[count:],
        clf.answer.target_name(target_label),
        question.target,
        target_label,
        tuple(clf.tokens(encoding)),
        tuple(encoding.special),
        refused,
        float(logit),
        float(constants),
        present,
    )


def _values(question: _Question, names: Sequence[str], strict: bool) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    values, refused = {}, {}
    for name in names:
        try:
            values[name] = np.asarray(METHODS[name].values(question), dtype=np.float64)
        except ModelError as error:
            if strict:
                raise
            refused[name] = str(error)
    return values, refused


def _correlations(values: Mapping[str, np.ndarray], words: np.ndarray) -> np.ndarray:
    """Spearman's of every two methods over the words; NaN where one gives every word the same."""
    correlations = np.full((len(values), len(values)), np.nan)
    for i, a in enumerate(values):
        for j, b in enumerate(values):
            first, second = values[a][words], values[b][words]
            if not (METHODS[a].signed and METHODS[b].signed):
                first, second = np.abs(first), np.abs(second)
            if np.ptp(first) > 0 and np.ptp(second) > 0:
                correlations[i, j] = scipy.stats.spearmanr(first, second).statistic
    return correlations


STEPS = 10  # of a curve, at most


def counts_of(words: int) -> np.ndarray:
    """How many words are gone, or back, at each point of a curve: [K + 1] from 0 to all."""
    return np.round(np.linspace(0, words, min(words, STEPS) + 1)).astype(int)


def words_of(text: Encoding) -> np.ndarray:
    """The tokens that can go."""
    return np.flatnonzero(~np.array(text.special, dtype=bool))


def curves(
    walk: Walk, orders: np.ndarray, target: Any, progress: Progress | None = None, cancel: Cancel | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Deletion and insertion [M, K + 1] for orders [M, n] of the words, first to go or to come first.

    Measured is the probability of the class; of a regression its number.
    """
    words, counts = words_of(walk.encodings[0]), counts_of(orders.shape[1])
    kept = np.ones((2, len(orders), len(counts), walk.length), dtype=bool)
    kept[1, ..., words] = False
    for m, order in enumerate(orders):
        for k, count in enumerate(counts):
            kept[0, m, k, order[:count]] = False
            kept[1, m, k, order[:count]] = True
    states, places = np.unique(kept.reshape(-1, walk.length), axis=0, return_inverse=True)
    values = _answers(walk, states, target, progress, cancel)[places].reshape(kept.shape[:3])
    return values[0], values[1]


def _answers(walk: Walk, kept: np.ndarray, target: Any, progress: Progress | None, cancel: Cancel | None) -> np.ndarray:
    """What the model answers with these tokens [N, T] kept and padding in the place of the others."""
    clf, at_once, answers = walk.clf, max(1, TOKENS_AT_ONCE // walk.length), []
    parts = [kept[i : i + at_once] for i in range(0, len(kept), at_once)]
    for part in tracked(parts, progress, cancel, size=len):
        tokens = torch.from_numpy(part).to(walk.end.device)[:, :, None]
        with torch.inference_mode(), products(clf.device):
            logits = clf.forward(walk.rows(torch.where(tokens, walk.end, walk.start)), clf.call(walk.mask)).float()
        answers.append(clf.answer.followed(logits.cpu().numpy(), target))
    return np.concatenate(answers).astype(np.float64)


def area(curve: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """The mean height of curves [..., K + 1] over the shares of words [K + 1], which rounding spaces unevenly."""
    areas: np.ndarray = np.trapezoid(curve, shares, axis=-1)
    return areas
