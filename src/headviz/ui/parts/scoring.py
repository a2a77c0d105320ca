"""Head scores and costs for the pages: existing tables are shown at once, new ones grow while the user watches."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy

import headviz

from ...answers.metrics import points_in
from ...demo import DATA
from ...display import numbers
from ...display.figures.style import Scale, scale_for, scale_of_losses
from ...display.table import Table, heads_table
from ...errors import TaskError
from ...evaluation.verdict import undecided
from ...heads import HeadId, HeadMask, HeadScores, order_note
from ...options import declared
from ...progress import part
from ...scores.catalogue import SCORES, TO_PRUNE_BY, correlates
from ...tasks import TASKS
from ..shell import jobs, loaders
from ..shell.view import COST, IN_LOSS, View

if TYPE_CHECKING:
    from ...models.base import TransformerModel
    from ...tasks import Dataset


FRESH_HEADS = 5  # fresh classifiers put on the pre-trained encoder; their grids are averaged


def settings(view: View, score: str) -> dict[str, Any]:
    """The options of a score that the view asks for: float32 for what could be faster."""
    return {"precision": "float32"} if view.exact and "precision" in declared(SCORES[score].options) else {}


def key_of(view: View, score: str = "", weights: str = "fine-tuned") -> tuple[Any, ...]:
    """The key of a score's job, made from the view alone: it is known before the model is loaded."""
    model = (view.model, view.revision, view.device, view.dtype, view.classes)
    data = (view.task, view.data, view.columns, view.label)
    base = view.base if weights != "fine-tuned" else ""
    return ("score", score or view.score, weights, base, *model, *data, view.samples, view.seed)


_sizes: dict[tuple[Any, ...], set[int]] = {}  # key for 0 examples -> the numbers of examples asked for so far


def _sized(key: tuple[Any, ...], samples: int) -> tuple[Any, ...]:
    """The same key for another number of examples."""
    return (*key[:-2], samples, key[-1])


def scores(view: View, score: str = "", weights: str = "fine-tuned") -> HeadScores | None:
    """The existing table of most examples: finished, growing or shipped. None if there is none."""
    key = key_of(view, score, weights)
    tables = [shipped(view, score or view.score, weights)]
    for samples in sorted(_sizes.get(_sized(key, 0), ())):
        job = jobs.find(_sized(key, samples))
        if job is not None:
            tables.append(job.result if job.result is not None else job.partial)
    return max((t for t in tables if t is not None), key=lambda t: t.samples, default=None)


def all_known(view: View, present: HeadMask) -> dict[str, Any]:
    """The values of every score that has a table for this grid, by name."""
    tables = {name: scores(view, name) for name in SCORES}
    size = (present.num_layers, present.num_heads)
    return {name: t.values for name, t in tables.items() if t is not None and t.values.shape == size}


def shipped(view: View, score: str, weights: str) -> HeadScores | None:
    """The table that comes with the demo, if the view shows the demo and its own data."""
    return _shipped().get((score, weights)) if view.on_demo else None


def is_shipped(scores: HeadScores, view: View) -> bool:
    """Whether this table comes with headviz."""
    return any(scores is shipped(view, scores.score, w) for w in ("fine-tuned", "pre-trained"))


@cache
def _shipped() -> dict[tuple[str, str], HeadScores]:
    path = DATA / "scores.json"
    if not path.is_file():
        return {}
    records = json.loads(path.read_text(encoding="utf-8"))["scores"]
    return {(record["score"], record["weights"]): from_plain(record) for record in records}


TABLES = ("values", "stderr", "interval_low", "interval_high")  # of a score, [L, H] each


def from_plain(record: dict[str, Any]) -> HeadScores:
    """A table as ``HeadScores.to_dict`` wrote it."""
    tables: dict[str, Any] = {name: np.array(record[name], dtype=float) for name in TABLES}
    return HeadScores(
        score=record["score"],
        **tables,
        samples=record["samples"],
        undefined=record["undefined"],
        undefined_by_head=np.array(record["undefined_by_head"]),
        mask=HeadMask.from_hex(record["mask"], *tables["values"].shape),
        stability=float("nan") if record["stability"] is None else record["stability"],
        settings=record["settings"],
        notes=tuple(record["notes"]),
    )


def sample(view: View, clf: TransformerModel) -> Dataset:
    """The examples that scores are computed on: balanced, from train if there is a train split.

    They are those of ``headviz score``.
    """
    try:
        source = loaders.train(view)
    except TaskError as error:
        if error.code != "no-split":
            raise
        source = loaders.dataset(view)
    return headviz.sample(source, min(view.samples, len(source)), seed=view.seed)


def keep(view: View, scores: HeadScores) -> None:
    """Store a table that was computed elsewhere, as if it had been asked for here."""
    key = key_of(view, scores.score)
    _sizes.setdefault(_sized(key, 0), set()).add(view.samples)
    jobs.put(key, scores)


def sample_notes(data: Dataset, samples: int) -> tuple[str, ...]:
    """What is unusual about the examples: not from train, or fewer than asked for."""
    notes = []
    if data.split != "train":
        notes.append(f"drawn from {data.split}, as there is no train split")
    if len(data) < samples:
        notes.append(f"{samples:,} were asked for; there are no more with equal classes and usual length")
    return tuple(notes)


def compute(view: View, weights: str = "fine-tuned") -> HeadScores | None:
    """Compute the chosen score; gives the table so far, with progress and *Stop* on the page while it grows."""
    key = key_of(view, weights=weights)
    work = _fine_tuned(view, key) if weights == "fine-tuned" else _pre_trained(view, key)
    names = {"fine-tuned": "Scoring heads", "pre-trained": "Scoring the pre-trained weights"}
    _sizes.setdefault(_sized(key, 0), set()).add(view.samples)
    jobs.need(key, names[weights], work)
    return scores(view, weights=weights)


def _fine_tuned(view: View, key: tuple[Any, ...]) -> jobs.Work[HeadScores]:
    clf = loaders.model(view)

    def work(progress: jobs.Progress, cancel: jobs.Cancel) -> HeadScores:
        scores = None
        data = sample(view, clf)
        notes = sample_notes(data, view.samples)
        options = settings(view, view.score)
        for grown in headviz.score_progressive(clf, data, view.score, progress=progress, cancel=cancel, **options):
            scores = replace(grown, notes=(*grown.notes, *(notes if grown.samples else ())))
            jobs.offer(key, scores)
        assert scores is not None
        return scores

    return work


def _pre_trained(view: View, key: tuple[Any, ...]) -> jobs.Work[HeadScores]:
    clf = loaders.classifier(view)

    def work(progress: jobs.Progress, cancel: jobs.Cancel) -> HeadScores:
        name = loaders.model_name(view.base or f"{view.model}-pretrained")
        data = sample(view, clf)
        tables, dtype, options = [], view.loading.get("dtype"), settings(view, view.score)
        for seed in range(FRESH_HEADS):
            fresh = headviz.load(name, device=view.device, dtype=dtype, fresh_labels=clf.labels, seed=seed)
            step_progress = part(progress, seed, FRESH_HEADS)
            table = headviz.score_heads(fresh, data, view.score, progress=step_progress, cancel=cancel, **options)
            tables.append(table)
            if 1 < len(tables) < FRESH_HEADS:  # one table alone has no interval
                jobs.offer(key, averaged(tables))
        return averaged(tables)

    return work


def tip_tables(scores: HeadScores) -> dict[str, list[list[str]]]:
    """Tooltip lines for the grid: value, interval and rank."""
    layers, heads = scores.values.shape
    grid = [[HeadId(i, j) for j in range(heads)] for i in range(layers)]
    return {
        **value_tips(scores),
        "95 %": [[interval(scores, h) for h in row] for row in grid],
        "rank": [[rank(scores, h) for h in row] for row in grid],
    }


def rank(scores: HeadScores, head: HeadId) -> str:
    """A head's place among all, the highest first; heads of one value share their places."""
    values, value = scores.values, scores.values[head]
    if value != value:
        return "–"
    first, same = 1 + int((values > value).sum()), int((values == value).sum())
    place = f"{first}" if same == 1 else f"{first} to {first + same - 1}"
    return f"{place} of {int(np.isfinite(values).sum())}"


def value_tips(scores: HeadScores) -> dict[str, list[list[str]]]:
    return {scores.score: [[numbers.signed(v) for v in row] for row in scores.values.tolist()]}


def examples_of(scores: HeadScores) -> str:
    """What a table was measured on, where it says so: ``64 training examples``."""
    split = scores.settings.get("split")
    kind = "training" if split == "train" else split
    return f"{scores.samples:,} {kind} examples" if split else f"{scores.samples:,} examples"


def ranked_by(scores: HeadScores) -> str:
    """What a ranking is, and how many heads tie in it."""
    return "All measured heads, the highest first." + order_note(scores.tied, len(scores.mask.kept))


def ranking_table(key: str, scores: HeadScores, caption: str) -> Table:
    """All measured heads, the highest first, with their intervals if they have any."""
    ends = (scores.interval_low, scores.interval_high) if np.isfinite(scores.interval_low).any() else None
    return heads_table(key, scores.ranked(), scores.score, scores.values, ends, ranks=count(1), caption=caption)


def interval(scores: HeadScores, h: HeadId) -> str:
    low, high = float(scores.interval_low[h]), float(scores.interval_high[h])
    return "–" if low != low else f"[{numbers.number(low)}, {numbers.number(high)}]"


# ---- what each head costs: exact ablation, after Taylor

ENOUGH = 256  # examples that costs are measured on without being asked for
LOSSES = (COST, IN_LOSS)  # scores above 0 where something is lost without the head
MEANWHILE = "taylor"  # an estimate of the cost that takes one forward and one backward pass


def costs(view: View) -> HeadScores | None:
    """The exact costs, else the estimate; None while there is neither."""
    return scores(view, COST) or scores(view, MEANWHILE)


def loss_costs(view: View) -> HeadScores | None:
    """The loss of log-probability of the right answer without each head: shipped, measured, or as far as it is."""
    if (table := shipped(view, IN_LOSS, "fine-tuned")) is not None:
        return table
    job = jobs.find(_loss_key(view))
    return None if job is None else job.result or job.partial


def _loss_key(view: View) -> tuple[object, ...]:
    return ("dev", *view.source, IN_LOSS)


def compute_loss_costs(view: View) -> None:
    """Measure them on the view's examples, in an order of which every part is stratified. The grid fills in."""
    if IN_LOSS not in loaders.shape(view).scores or shipped(view, IN_LOSS, "fine-tuned") is not None:
        return
    clf, data = loaders.model(view), loaders.dataset(view)
    if data.labels is None:
        return
    key = _loss_key(view)

    def work(progress: jobs.Progress, cancel: jobs.Cancel) -> HeadScores:
        from ...evaluation.mask_evaluator import stratified_order

        ordered = data.subset(stratified_order(data))
        scores = None
        for scores in headviz.score_progressive(clf, ordered, IN_LOSS, progress=progress, cancel=cancel):
            jobs.offer(key, scores)
        assert scores is not None
        return scores

    jobs.need(key, "Measuring what each head costs in loss", work, patience=0.0, rank=1)


def in_points(scores: HeadScores) -> HeadScores:
    """The same costs in points of the task's metric, to be shown; other scores stay as they are."""
    if scores.score != COST:
        return scores
    task = TASKS.get(str(scores.settings.get("task")))
    scale = points_in(scores.settings.get("metric") or (task.primary_metric if task else "accuracy"))
    return replace(scores, **{name: scale * getattr(scores, name) for name in TABLES})


def colours(scores: HeadScores) -> Scale:
    """The colours of a score."""
    values = [float(v) for v in scores.values.ravel()]
    if scores.score in LOSSES:
        return scale_of_losses(values)
    return scale_for(values, signed=correlates(scores.score) or None)


def label(scores: HeadScores) -> str:
    """A score at the foot of its grid; a cost with the examples that it was measured on."""
    return f"cost, points, on {examples_of(scores)}" if scores.score == COST else scores.score


def grey(scores: HeadScores) -> Any:
    """The heads whose cost is not significantly different from 0, as a table; None for a score that is no cost."""
    return undecided(scores.interval_low, scores.interval_high) if scores.score in LOSSES else None


def ordering(view: View) -> HeadScores | None:
    """The table that heads are ordered by: the user's choice, else their cost, else what is known in its place."""
    table = scores(view, view.order)
    if table is None and view.order == COST:
        return scores(view, MEANWHILE) or loss_costs(view) or scores(view, view.score)
    return table


def removing(view: View) -> str:
    """The score that a run removes heads by where the user has chosen no other: the best of the grades of this
    model, else the usual one."""
    shape = loaders.shape(view)
    return view.chosen_order if view.chosen_order in shape.scores else TO_PRUNE_BY


def _enough(view: View, score: str) -> bool:
    """Whether there is a table of as many examples as are asked for."""
    measured = scores(view, score)
    return measured is not None and measured.samples >= view.samples


def compute_costs(view: View) -> None:
    """Measure the costs in the background, with progress and *Stop* on the page. Loads the model."""
    view = replace(view, samples=min(view.samples, ENOUGH))
    if _enough(view, COST):
        return
    key = ("cost", *key_of(view, COST))
    clf = loaders.model(view)

    def work(progress: jobs.Progress, cancel: jobs.Cancel) -> bool:
        data = sample(view, clf)
        for score in (MEANWHILE, COST):
            if _enough(view, score):
                continue
            scores = headviz.score_heads(clf, data, score, progress=progress, cancel=cancel)
            keep(view, scores)
            jobs.offer(key, scores)
        return True

    jobs.need(key, "Measuring what each head costs", work, patience=0.0, rank=1)


# -----------------------------------------------------------------------------------------------
# A score of pre-trained weights: their classifier is a fresh one, so the table is a mean over several.
#
# Fresh heads give random answers, so the mean of signed correlations is near zero by construction. Therefore the note
# of such a table has the mean of |ρ|, taken under each fresh head before the mean.


def averaged(tables: Sequence[HeadScores]) -> HeadScores:
    """The mean over fresh heads; its interval is over the heads' seeds."""
    stack = np.stack([t.values for t in tables])
    mean, n = stack.mean(axis=0), len(tables)
    error = stack.std(axis=0, ddof=1) / np.sqrt(n)
    half = error * scipy.special.stdtrit(n - 1, 0.975)
    first, measured = tables[0], stack[np.isfinite(stack)]
    note = f"mean over {n} fresh classification heads on the pre-trained encoder"
    if correlates(first.score) and measured.size:
        signed, absolute = (f"{v:.3f}".replace("-", "−") for v in (measured.mean(), np.abs(measured).mean()))
        note += f": mean {signed}, near zero as they answer at random; mean |ρ| under each of them {absolute}"
    return replace(
        first,
        values=mean,
        stderr=error,
        interval_low=mean - half,
        interval_high=mean + half,
        undefined=max(t.undefined for t in tables),
        stability=float("nan"),
        settings={**first.settings, "fresh_heads": n},
        notes=(note,),
        roles=None,
    )
