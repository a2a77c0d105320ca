"""``headviz.conductance``: which attention connections carried the prediction, for all heads at once.

Attr(A)_ij = ∫ ∂F/∂A_ij · dA_ij/da da along the straight path of word embeddings from a baseline (padding in
place of every word) to the input; F is the logit of the target class. ``integration`` walks along the path, ``rules``
says where it stops and how the stops are weighted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypedDict, Unpack, overload

import numpy as np

from ..answers.answer import Target
from ..errors import OptionError, TaskError, shown, whole_number
from ..models.fast.linear import BFLOAT16, TF32
from ..models.network import require_model
from ..progress import Cancel, Progress
from ..statistics.resampling import rank_correlation
from ..storage.exchange import MaskLike
from ..storage.store import Store, make_key, store_for
from .integration import Visited, room_for, room_on, sweep
from .maps import Maps
from .precision import Sweep, computed_in, settled
from .rules import (
    AUTO,
    COMPARED,
    DEFAULT_RULE,
    DEFAULT_STEPS,
    ENOUGH,
    LOGIT,
    PROBABILITY,
    STABLE,
    TOLERANCE,
    IntegrationOptions,
    PathOptions,
)
from .walk import ExampleMaps

if TYPE_CHECKING:
    from ..models.classifier import Classifier, Encoding


# -----------------------------------------------------------------------------------------------
# What every method of explaining a prediction shares: check, look up, compute, refine, keep.
#
# Texts become encodings and a target a class number.


def encode(clf: Classifier, texts: Sequence[str], pairs: Sequence[str] | None) -> list[Encoding]:
    """Encodings of texts somebody typed: an empty text, or one without a known word, is an error."""
    if not texts:
        raise TaskError("There is no text to explain. Give at least one.")
    clf.check_texts(pairs is not None)
    if pairs is not None and len(pairs) != len(texts):
        raise TaskError(f"There are {len(texts)} texts but {len(pairs)} pairs. Give one pair for each text.")
    for title, column in (("text" if pairs is None else "first text", texts), ("second text", pairs or ())):
        for text in column:
            if not isinstance(text, str):
                raise TaskError(f"A text is needed, not {type(text).__name__}.")
            if not text.strip():
                raise TaskError(f"The {title} is empty. Write at least one word.")
            if any("\ud800" <= c <= "\udfff" for c in text):
                raise TaskError(f"The text '{_short(text)}' is not UTF-8: it has half of a character. Type it again.")
    for column in (texts, pairs or ()):
        for text, encoding in zip(column, clf.encode(column), strict=True):
            _check_known(clf, text, encoding)
    return clf.encode(texts, pairs)


def encode_one(clf: Classifier, text: str, pair: str | None) -> Encoding:
    """The same of one text, or of one text and its pair."""
    (encoding,) = encode(clf, [text], None if pair is None else [pair])
    return encoding


def _check_known(clf: Classifier, text: str, encoding: Encoding) -> None:
    """Refuse a text of which nothing, or nothing but unknown words, reaches the model."""
    ids = [i for i, special in zip(encoding.ids, encoding.special, strict=True) if not special]
    if not ids:
        raise TaskError(f"Nothing of '{_short(text)}' is left after tokenising. Write at least one word.")
    if all(i == clf.tokenizer.unk_token_id for i in ids):
        raise TaskError(
            f"'{clf.name}' has no word of '{_short(text)}' in its vocabulary: all become {clf.tokenizer.unk_token}. "
            f"It knows {clf.tokenizer.vocab_size:,} words and pieces, such as {_known_words(clf)}."
        )


def _known_words(clf: Classifier) -> str:
    """A few words that the model knows: the longest ones, which are whole."""
    words = [word for word in clf.tokenizer.get_vocab() if word.isalpha()]
    return ", ".join(sorted(words, key=lambda word: (-len(word), word))[:5])


def resolve_target(clf: Classifier, target: str | int, label: Any = None, word: int | None = None) -> Target:
    """The output to explain, as the job has it, at one word of a class per token; None = the predicted one."""
    clf.check_classes()
    output = clf.answer.target(clf, target, label)
    if word is None:
        return output
    whole_number(word, "word", 0)
    return clf.answer.at_word(output, word)


def _short(text: str) -> str:
    text = "".join(c for c in text if c.isprintable())  # zero-width joiners are not, and would show as escapes
    return text if len(text) <= 40 else text[:37] + "…"


Label = str | int  # a class, by name or number
Texts = list[str] | tuple[str, ...]

VERSION = 2  # raise it when the same input would give other values
MAX_STEPS = 512  # where refining stops


class MapsOptions(TypedDict, total=False):
    """Keywords that ``conductance`` and ``attattr`` share."""

    steps: int | None
    rule: str
    target: Label
    word: int | None
    label: Label | Sequence[Label] | None
    mask: MaskLike | None
    tolerance: float | None
    precision: str
    budget: int | None
    cache: Store | bool
    cancel: Cancel | None
    progress: Progress | None


@dataclass(frozen=True)
class Explainer:
    """A method at work on one classifier under one mask."""

    clf: Classifier
    method: str
    run: Sweep
    mask: MaskLike | None
    budget: int  # bytes of memory
    store: Store | None
    cancel: Cancel | None = None
    progress: Progress | None = None
    rough: Callable[[Maps], None] | None = None
    visited: Visited | None = None

    def explain(
        self,
        text: str | Sequence[str],
        pair: str | Sequence[str] | None,
        label: Label | Sequence[Label] | None,
        target: Label,
        options: IntegrationOptions,
        tolerance: float | None = None,
        most: int = MAX_STEPS,
        word: int | None = None,
        stable: float | None = None,
    ) -> Maps | list[Maps]:
        """Maps of one text, or of a list; steps are doubled until the error is within the tolerance, or until doubling
        them leaves the order of the heads: a rank correlation of at least ``stable``.

        Where a single estimate may flatter, a result counts as good enough once doubling the steps has also changed
        it by no more than the tolerance.
        """
        if tolerance is not None and not (isinstance(tolerance, int | float) and tolerance > 0):
            raise OptionError(f"tolerance is a relative error such as 0.02, not {shown(tolerance)}.")
        encodings, targets = self._inputs(text, pair, label, target, word)
        self.clf.gates(self.mask)  # a mask of another model is refused before anything is computed
        options = settled(options, self.clf, encodings, self.mask, self.run)

        done = dict(enumerate(self._maps(encodings, targets, options)))
        if tolerance is None:
            return done[0] if isinstance(text, str) else list(done.values())
        unsettled = [i for i, maps in done.items() if not (options.reliable and maps.error <= tolerance)]
        while unsettled:
            options = replace(options, steps=2 * options.steps)
            if options.steps > most:
                done |= {i: _not_reached(done[i], tolerance) for i in unsettled if not done[i].error <= tolerance}
                break
            if self.rough is not None and 0 in unsettled:
                self.rough(done[0])
            # so that one set of maps is freed before the next: two of a long text would not fit
            coarser = [done.pop(i) for i in unsettled]
            to_compare = [None if options.reliable else maps for maps in coarser]
            values_before = [] if stable is None else [_values(maps) for maps in coarser]
            del coarser
            finer = self._maps([encodings[i] for i in unsettled], [targets[i] for i in unsettled], options)
            errors = [_error(coarse, maps) for coarse, maps in zip(to_compare, finer, strict=True)]
            still_unsettled = []
            for k, (i, maps, error) in enumerate(zip(unsettled, finer, errors, strict=True)):
                done[i] = maps
                if error <= tolerance:
                    continue
                if stable is not None and (agreement := _agreement(values_before[k], maps))[0] >= stable:
                    done[i] = _order_settled(maps, agreement, tolerance)
                else:
                    still_unsettled.append(i)
            unsettled = still_unsettled
        return done[0] if isinstance(text, str) else [done[i] for i in sorted(done)]

    def _inputs(
        self,
        text: str | Sequence[str],
        pair: str | Sequence[str] | None,
        label: Label | Sequence[Label] | None,
        target: Label,
        word: int | None,
    ) -> tuple[list[Encoding], list[Target]]:
        """The encodings of one text or of several, and what is explained of each."""
        texts = _listed(text)
        pairs = None if pair is None else _listed(pair)
        labels = [label] if label is None or isinstance(label, str | int | np.integer) else list(label)
        if len(labels) == 1:
            labels = labels * len(texts)
        if len(labels) != len(texts):
            raise OptionError(f"There are {len(texts)} texts but {len(labels)} labels. Give one label for each text.")
        self.clf.check_maps()
        targets = [resolve_target(self.clf, target, x, word) for x in labels]
        encodings = encode(self.clf, texts, pairs)
        for encoding in encodings:
            self.clf.answer.check_word(encoding, word)
        return encodings, targets

    def _maps(self, encodings: list[Encoding], targets: list[Target], options: IntegrationOptions) -> list[Maps]:
        """From the cache where possible; the rest in one sweep, by length."""
        pairs = zip(encodings, targets, strict=True)
        keys = [] if self.store is None else [self._key(e, t, options) for e, t in pairs]
        cached = [self._stored(k) for k in keys] or [None] * len(encodings)  # without a store there are no keys
        missing = sorted((i for i, maps in enumerate(cached) if maps is None), key=lambda i: len(encodings[i]))
        if missing:
            run = self.run if self.visited is None else partial(self.run, visited=self.visited)
            new = run(
                self.clf,
                [encodings[i] for i in missing],
                [targets[i] for i in missing],
                options,
                self.mask,
                self.budget,
                self.cancel,
                self.progress,
            )
            for i, maps in zip(missing, new, strict=True):
                cached[i] = maps
                if self.store is not None:
                    self.store.put(keys[i], vars(maps) | {"target": np.array(maps.target)})
        results = [maps for maps in cached if maps is not None]
        return [self._finished(e, maps, options) for e, maps in zip(encodings, results, strict=True)]

    def _key(self, encoding: Encoding, target: Target, options: IntegrationOptions) -> str:
        clf = self.clf
        return make_key(
            "maps",
            version=VERSION,
            method=self.method,
            weights=clf.digest,
            tokenizer=clf.tokenizer_digest,
            dtype=str(clf.dtype),
            target=target,
            mask=clf.under(self.mask).hex,
            **encoding.key_parts,
            **options.to_dict(),
        )

    def _stored(self, key: str) -> ExampleMaps | None:
        entry = None if self.store is None else self.store.get(key)
        if entry is None:
            return None
        a = entry.arrays
        return ExampleMaps(
            a["attention"], a["attribution"], a["error"], a["logits"], self.clf.answer.target_of(a["target"])
        )

    def _finished(self, e: Encoding, maps: ExampleMaps, options: IntegrationOptions) -> Maps:
        clf = self.clf
        notes = {f"the text was cut to the model's {clf.max_length} tokens": e.truncated}
        precision = computed_in(clf, options.precision)
        notes["computed in TF32 on a GPU"] = precision == TF32
        notes["computed in bfloat16, a preview"] = precision == options.precision == BFLOAT16
        notes["of the probability, not the logit"] = getattr(options, "of", LOGIT) == PROBABILITY
        return Maps(
            attention=maps.attention,
            attribution=maps.attribution,
            tokens=tuple(clf.tokens(e)),
            types=tuple(e.types),
            special=tuple(e.special),
            labels=clf.labels,
            logits=maps.logits,
            target=maps.target,
            mask=clf.under(self.mask),
            method=self.method,
            rule=options.rule,
            steps=options.steps,
            head_error=maps.error,
            job=clf.job,
            precision=precision,
            truncated=e.truncated,
            notes=tuple(note for note, holds in notes.items() if holds),
        )


def _listed(text: str | Sequence[str]) -> list[str]:
    if isinstance(text, Iterable) and not isinstance(text, str):
        return list(text)
    return [text]  # ``encode`` rejects whatever is not a text


def _error(before: Maps | None, after: Maps) -> float:
    """The estimated error, and at least how much doubling the steps changed the attribution ``before``, if given."""
    if before is None:
        return after.error
    old, new = (np.nan_to_num(maps.attribution).astype(np.float64) for maps in (before, after))
    size, distance = float(np.linalg.norm(new)), float(np.linalg.norm(new - old))
    change = distance / size if size > 0 else (0.0 if distance == 0 else float("inf"))
    return max(after.error, change)


def _not_reached(maps: Maps, tolerance: float) -> Maps:
    note = f"the estimated error is {maps.error:.1%} after {maps.steps} steps, above the {tolerance:.1%} asked for"
    return replace(maps, notes=(*maps.notes, note))


def _values(maps: Maps) -> tuple[np.ndarray, np.ndarray]:
    """What is put in order: the strengths of the heads, and some of the connections where there are very many."""
    flat = maps.attribution.ravel()
    return maps.strength(), flat[:: max(1, flat.size // COMPARED)].copy()


def _agreement(before: tuple[np.ndarray, np.ndarray], maps: Maps) -> tuple[float, float]:
    """The rank correlations of heads and of connections."""
    heads, connections = (rank_correlation(old, new) for old, new in zip(before, _values(maps), strict=True))
    return heads, connections


def _order_settled(maps: Maps, agreement: tuple[float, float], tolerance: float) -> Maps:
    heads, connections = agreement
    note = (
        f"doubling the steps to {maps.steps} hardly changed the order of the heads (rank correlation {heads:.3f}; of "
        f"single connections {connections:.3f}); the estimated error of the values is {maps.error:.1%}, and "
        f"tolerance={tolerance:g} makes it smaller"
    )
    return replace(maps, notes=(*maps.notes, note))


# -----------------------------------------------------------------------------------------------


class ConductanceKeywords(MapsOptions, total=False):
    rough: Callable[[Maps], None] | None


@overload
def conductance(
    clf: Classifier, text: str, pair: str | None = None, **options: Unpack[ConductanceKeywords]
) -> Maps: ...
@overload
def conductance(
    clf: Classifier, text: Texts, pair: Texts | None = None, **options: Unpack[ConductanceKeywords]
) -> list[Maps]: ...
def conductance(
    clf: Classifier,
    text: str | Sequence[str],
    pair: str | Sequence[str] | None = None,
    *,
    steps: int | None = None,
    rule: str = DEFAULT_RULE,
    target: Label = "predicted",
    word: int | None = None,
    label: Label | Sequence[Label] | None = None,
    mask: MaskLike | None = None,
    tolerance: float | None = None,
    precision: str = AUTO,
    budget: int | None = None,
    cache: Store | bool = True,
    cancel: Cancel | None = None,
    progress: Progress | None = None,
    rough: Callable[[Maps], None] | None = None,
) -> Maps | list[Maps]:
    """Attention and attribution maps of one text or pair; for a list of texts, a list of maps.

    ``steps`` are the intervals of the path. Without them 16 are doubled until the estimated error is at most 10 %,
    until doubling no longer changes the order of the heads (rank correlation .99; a note says both), or until there are
    128. ``tolerance=0.02`` doubles until it is at most 2 %. ``target`` is "predicted" (by the model
    under the mask), "gold" (with ``label=``), or a class; of a class per token it is explained at the word numbered
    ``word``, by default as the mean over the words. ``rule="captum"`` gives what Captum's LayerConductance gives.
    ``precision="bfloat16"`` is a faster preview; by default it is float32, and on a GPU TF32 where that agrees on the
    first texts; the maps' ``precision`` says which, and ``precision="float32"`` is always that. Peak memory stays near
    ``budget`` bytes besides the model, unless one node of one text needs more: by default 1 GiB, and on a GPU what is
    free. ``progress(done, total)`` counts points of the path; doubling the steps starts over. ``rough(maps)`` is called
    before the steps are doubled, with what there is of the first text.

    An attribution of 0 does not mean that removing the head is free: ``headviz.ablate`` measures that.

    >>> import headviz
    >>> clf = headviz.load("demo", device="cpu")
    >>> maps = headviz.conductance(clf, "the small dog runs .", "the dog sleeps .", steps=4)
    >>> maps.attribution.shape == (12, 12, len(maps.tokens), len(maps.tokens))
    True
    """
    options = PathOptions(DEFAULT_STEPS if steps is None else steps, rule, precision)
    most, stable = MAX_STEPS, None
    if steps is None and tolerance is None:
        tolerance, most, stable = TOLERANCE, ENOUGH, STABLE
    require_model(clf)
    budget = room_on(clf.device, budget)
    visited = None if tolerance is None else Visited(room_for(budget), most)
    explainer = Explainer(
        clf,
        "conductance",
        sweep,
        mask=mask,
        budget=budget,
        store=store_for(cache),
        cancel=cancel,
        progress=progress,
        rough=rough,
        visited=visited,
    )
    return explainer.explain(
        text, pair, label, target, options, tolerance=tolerance, most=most, word=word, stable=stable
    )
