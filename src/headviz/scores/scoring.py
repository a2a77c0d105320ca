"""``headviz.score_heads``: a score's table over a sample, all at once or growing with every few examples."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import plugins
from ..answers.answer import GOLD, Target
from ..attribution import attattr, integration
from ..attribution.conductance import resolve_target
from ..attribution.integration import room_on
from ..attribution.precision import settled
from ..attribution.rules import AttAttrOptions, IntegrationOptions
from ..errors import OptionError, TaskError
from ..evaluation.dispatch import check_texts, gold_answers
from ..evaluation.plain import class_order, encode_data, unread
from ..heads import HeadScores
from ..models.network import require_model
from ..progress import Cancel, Progress, after, require_functions
from ..storage.exchange import MaskLike
from ..storage.store import Store, store_for
from ..tasks.dataset import require_dataset
from .catalogue import DEFAULT, PRESETS, Score, check_fits, preset_named, score_named
from .chunk import Chunk, Tables
from .collect import Collector, windows
from .measures import Inputs, row_of
from .options import OptionValue
from .statistics import Summary, stability, summarised
from .task_loss import scored_model
from .whole import Whole, whole_of

if TYPE_CHECKING:
    from ..models.base import TransformerModel
    from ..models.classifier import Classifier
    from ..tasks import Dataset


def score_heads(
    clf: TransformerModel,
    data: Dataset,
    score: str | None = None,
    *,
    preset: str | None = None,
    mask: MaskLike | None = None,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
    cache: Store | bool = True,
    budget: int | None = None,
    label_order: Sequence[str] | str | None = None,
    checkpoint: str | Path | None = None,
    **options: OptionValue,
) -> HeadScores:
    """A head score over exactly these examples: [L, H], high = keep, NaN = not measured.

    ``score`` is a name of ``headviz.scores.SCORES`` (default conductance-spearman); ``preset`` is a published choice
    instead. ``options`` are the score's own (rule, rows, abs_level, …). Heads that ``mask`` switches off, or that the
    model no longer has, are NaN. ``cache=False`` neither reads nor writes. ``budget`` is in bytes: by default 1 GiB,
    and on a GPU most of what is free. ``checkpoint`` is a file in which scores that learn
    keep what they have, so that an interrupted call continues.

    Values per example are kept in the cache: a larger sample, another correlation or an interrupted call
    continues from there. The result depends neither on batches nor on the order of the data.
    An unknown score or option is an ``OptionError``; data that the model cannot read is a ``TaskError``.

    >>> import headviz
    >>> clf, data = headviz.load("demo", device="cpu"), headviz.load_task("demo", limit=8)
    >>> result = headviz.score_heads(clf, data, score="taylor", abs_level="token")
    >>> result.values.shape, result.samples
    ((12, 12), 8)
    """
    scoring = Scoring(
        clf, data, score, preset, mask, progress, cancel, cache, budget, label_order, checkpoint, **options
    )
    for _ in scoring.grow():
        pass
    return scoring.result()


def score_progressive(
    clf: TransformerModel,
    data: Dataset,
    score: str | None = None,
    *,
    preset: str | None = None,
    mask: MaskLike | None = None,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
    cache: Store | bool = True,
    budget: int | None = None,
    label_order: Sequence[str] | str | None = None,
    **options: OptionValue,
) -> Iterator[HeadScores]:
    """The same, as it grows: a first table after 4 examples, then after 8, 16, 32, 64 and every 64.

    Each comes with narrower intervals and its ``stability``. Stop whenever it is good enough; what was
    computed is kept. The last one equals ``score_heads``.

    >>> import headviz
    >>> clf, data = headviz.load("demo", device="cpu"), headviz.load_task("demo", limit=8)
    >>> [result.samples for result in headviz.score_progressive(clf, data, "taylor")]
    [4, 8]
    """
    scoring = Scoring(clf, data, score, preset, mask, progress, cancel, cache, budget, label_order, None, **options)
    for _ in scoring.grow():
        yield scoring.result()


class Scoring:
    """One call of ``score_heads``: what it is about, and what has been measured."""

    def __init__(
        self,
        clf: TransformerModel,
        data: Dataset,
        score: str | None = None,
        preset: str | None = None,
        mask: MaskLike | None = None,
        progress: Progress | None = None,
        cancel: Cancel | None = None,
        cache: Store | bool = True,
        budget: int | None = None,
        label_order: Sequence[str] | str | None = None,
        checkpoint: str | Path | None = None,
        **options: OptionValue,
    ) -> None:
        require_model(clf)
        require_dataset(data)
        if preset is not None:
            published = preset_named(preset)
            if score is not None and score != published.score:
                raise OptionError(f"The preset '{preset}' is of the score '{published.score}', not of '{score}'.")
            score = published.score
            options = {**published.options, **options}
        self.score: Score = score_named(DEFAULT if score is None else score)
        self.options = self.score.options_from(options)
        self.mask = clf.under(mask)
        self.clf: Any = clf  # a score of maps asks a classifier for its classes
        self.data, self.preset = clf.answer.judged(data), preset
        self.progress, self.cancel = progress, cancel
        self.truncated = self.unread = 0  # texts that are cut, and those of them cut before their gold answer
        self.order: np.ndarray | None = None
        self.class_mismatch = ""  # the note on different classes of model and task, where the score uses no labels
        self.store, self.checkpoint = store_for(cache), None if checkpoint is None else Path(checkpoint)
        self.collector: Collector | None = None
        self.whole: Whole | None = None
        self.summary: Summary | None = None  # of the whole sample, once it is measured
        if not self.score.without_examples:
            self._read(room_on(clf.device, budget), label_order)

    def _read(self, budget: int, label_order: Sequence[str] | str | None) -> None:
        """Check the examples and encode them."""
        clf, data = self.clf, self.data
        if len(data) == 0:
            raise TaskError("There is nothing to score heads on: the data set has no examples.")
        check_texts(clf, data)
        check_fits(self.score, clf.answer)
        clf = scored_model(clf, self.options, data, label_order, self.cancel)  # self.clf stays the caller's
        target = getattr(self.options, "target", None)
        gold = None
        if target == GOLD or self.score.needs_labels:
            self.order, gold = gold_answers(clf, data, label_order)
        elif data.labels is not None:
            self.class_mismatch = _class_mismatch(clf, data, label_order)
        encodings = encode_data(clf, data)
        self.truncated = sum(e.truncated for e in encodings)
        self.unread = unread(data, encodings) if self.truncated and data.labels is not None else 0
        if isinstance(self.options, IntegrationOptions):
            sweep = attattr.sweep if isinstance(self.options, AttAttrOptions) else integration.sweep
            self.options = settled(self.options, clf, encodings, self.mask, sweep)
        targets: list[Target] = [None] * len(data)
        if target == GOLD and gold is not None:
            targets = [resolve_target(clf, GOLD, g) for g in gold]
        elif target is not None:
            targets = [resolve_target(clf, target)] * len(data)
        if self.score.needs_sample:
            self.whole = whole_of(clf, self.mask, encodings, gold, data, label_order, budget)
            return
        assert self.score.needs is not None
        rows = (row_of(self.score.row, self.options),) if self.score.row else ()
        examples = Chunk(
            clf, self.mask, encodings, targets, gold, data, self.options, budget, label_order=label_order, rows=rows
        )
        self.collector = Collector(examples, self.score.needs, self.store, self._plugin_part())

    def grow(self) -> Iterator[int]:
        """Measure more examples; gives how many there are each time a table can be made."""
        require_functions(self.progress, self.cancel)
        if self.collector is not None:
            yield from self.collector.run(self.progress, self.cancel)
        elif self.whole is not None:
            self.measure_whole()
            yield len(self.data)
        else:
            yield 0

    def sample(self) -> Whole:
        """The sample of a score that reads all examples together, with the progress and cancel set last."""
        assert self.whole is not None
        return replace(
            self.whole, progress=self.progress, cancel=self.cancel, checkpoint=self.checkpoint, store=self.store
        )

    def measure_whole(self) -> Summary:
        """The summary of such a score; from the cache if it is there."""
        assert self.whole is not None
        if self.summary is None:
            store = self.store
            key = self.whole.key(self.score.name, self.options, self._plugin_part())
            entry = None if store is None else store.get(key)
            if entry is None:
                sample = self.sample()
                inputs = Inputs(self.clf, self.mask, {}, sample.data, np.arange(len(sample.data)), self.order, sample)
                self.summary = summarised(self.score.function(inputs, self.options), inputs.units)
                if store is not None:
                    store.put(key, self.summary.tables)
            else:
                self.summary = Summary.of(entry.arrays)
                if self.progress is not None:
                    self.progress(1, 1)
        return self.summary

    def _plugin_part(self) -> dict[str, str]:
        """The part of the cache key for plugins that this score, or one that it combines, comes from."""
        return plugins.key_part("score", self.score.name, *plugins.words(asdict(self.options)))

    def result(self) -> HeadScores:
        """The table of the examples measured so far."""
        rows, data, samples, places = dict[str, np.ndarray](), self.data, 0, np.zeros(0, np.int64)
        if self.collector is not None:
            places = self.collector.finished()
            samples = len(places)
            rows = {name: table[places] for name, table in self.collector.rows.items()}
            data = self.data.subset(places)
        if self.whole is not None:
            summary, samples = self.measure_whole(), len(self.data)
        else:
            inputs = Inputs(self.clf, self.mask, rows, data, places, self.order)
            summary = summarised(self.score.function(inputs, self.options), inputs.units)
        on = self.mask.array()
        undefined = np.where(on, summary.undefined, 0)
        roles = None if summary.roles is None else {n: np.where(on, t, np.nan) for n, t in summary.roles.items()}
        settings: dict[str, Any] = {"score": self.score.name, **asdict(self.options)}
        if self.preset is not None:
            settings["preset"] = self.preset
        if samples:
            digest = self.data.digest if samples == len(self.data) else None  # of a part there is none
            settings |= {"data": digest, "task": data.task.name, "split": data.split}
        if "error" in rows:
            errors = rows["error"][np.isfinite(rows["error"])]
            settings["integration_error"] = float(errors.mean()) if errors.size else None
        return HeadScores(
            score=self.score.name,
            values=np.where(on, summary.values, np.nan),
            stderr=np.where(on, summary.stderr, np.nan),
            interval_low=np.where(on, summary.low, np.nan),
            interval_high=np.where(on, summary.high, np.nan),
            samples=samples,
            undefined=self._examples_undefined(rows),
            undefined_by_head=undefined,
            mask=self.mask,
            stability=stability(summary, on),
            settings=settings,
            notes=self._notes(summary, undefined, samples),
            roles=roles,
        )

    def _examples_undefined(self, rows: dict[str, np.ndarray]) -> int:
        """Examples in which some head that is on has no correlation."""
        if not self.score.correlation:
            return 0
        values = rows[row_of(self.score.correlation, self.options)]
        return int(np.isnan(values[:, self.mask.array()]).any(axis=1).sum())

    def _notes(self, summary: Summary, undefined: np.ndarray, samples: int) -> tuple[str, ...]:
        notes = []
        removed = len(self.clf.present.off)
        masked = len(self.mask.off) - removed
        if masked:
            are, have = ("is", "has") if masked == 1 else ("are", "have")
            notes.append(f"{_number(masked, 'head')} {are} masked and {have} no score")
        if removed:
            were, have = ("was", "has") if removed == 1 else ("were", "have")
            notes.append(f"{_number(removed, 'head')} {were} removed from the model and {have} no score")
        missing = int(np.isnan(summary.values[self.mask.array()]).sum())
        if missing:
            notes.append(f"the score is undefined on these examples for {_number(missing, 'head')}")
        if undefined.any():
            heads = int((undefined > 0).sum())
            why = "a correlation is undefined where a map is constant" if self.score.correlation else "no finite value"
            notes.append(f"{why}: at most {undefined.max()} of {samples} examples, in {_number(heads, 'head')}")
        if self.class_mismatch:
            notes.append(self.class_mismatch)
        if self.truncated:
            before = f", {self.unread:,} of them before the answer" if self.unread else ""
            notes.append(f"cut to the model's {self.clf.max_length} tokens: {_number(self.truncated, 'text')}{before}")
        return tuple(notes)


def _class_mismatch(clf: Classifier, data: Dataset, label_order: Sequence[str] | str | None) -> str:
    """The note on different classes of model and task; empty where they match."""
    try:
        class_order(clf, data, label_order)
    except TaskError:
        answers, labels = clf.answer.described(clf.labels), data.answer.described(data.label_names)
        return f"the model answers {answers}, but the task's labels are {labels}; this score does not use them"
    return ""


def _number(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


# -----------------------------------------------------------------------------------------------
# A score measured in parts, each anywhere and in any order, and joined to the table that one process would make.
#
#     scoring = Scoring(clf, data, score, cache=False)
#     parts = [measure_part(scoring, i) for i in range(part_count(score, len(data)))]
#     table = join_parts(scoring, parts)           # = score_heads(clf, data, score, cache=False), bit for bit
#
# A part is some whole windows of ``collect``: the same examples share their batches, so nothing rounds differently,
# as long as device and number of threads are the same. Not for small samples: a part has its own cost of beginning.


PART = 128  # examples of a part, at least, but for the last one


def part_count(score: str | None, examples: int) -> int:
    """How many parts a score or preset over so many examples has; 1 where no example is needed."""
    name = PRESETS[score].score if score in PRESETS else (score or DEFAULT)
    sweep = score_named(name).sweep
    return 1 if sweep is None else len(part_slices(examples, sweep.window))


def part_slices(examples: int, window: int) -> list[slice]:
    """Of whole windows, together at least ``PART`` examples each."""
    result, start = [], 0
    for w in windows(examples, window):
        if w.stop - start >= PART or w.stop == examples:
            result.append(slice(start, w.stop))
            start = w.stop
    return result


def measure_part(scoring: Scoring, part: int) -> Tables:
    """The values of one part's examples. Empty beyond the last part. Progress is that of the whole sample.

    Equal examples are measured once, so a data set with many of them may have fewer parts than ``part_count`` says.
    """
    collector = scoring.collector
    if collector is None:
        return {} if scoring.whole is None or part else scoring.measure_whole().tables
    all_slices = part_slices(len(collector.order), collector.sweep.window)
    if part < 0:
        raise OptionError(f"Parts are numbered from 0 up, not {part}.")
    if part >= len(all_slices):
        return {}
    which = all_slices[part]
    return collector.measure(which, after(scoring.progress, which.start, len(collector.order)), scoring.cancel)


def join_parts(scoring: Scoring, parts: Sequence[Tables]) -> HeadScores:
    """The table of all parts, in the order of their numbers."""
    collector = scoring.collector
    if collector is None:
        if scoring.whole is not None and parts:
            scoring.summary = Summary.of(parts[0])
        return scoring.result()
    all_slices = part_slices(len(collector.order), collector.sweep.window)
    sizes = [len(next(iter(tables.values()), np.zeros(0))) for tables in parts]
    if [n for n in sizes if n] != [s.stop - s.start for s in all_slices]:
        raise OptionError(
            f"These {len(parts)} parts hold {sum(sizes)} examples and do not make up this sample of "
            f"{len(scoring.data)}. Measure every part of the same sample, with the same score."
        )
    for which, tables in zip(all_slices, parts, strict=False):
        collector.add(which, tables)
    return scoring.result()
