"""How each result shows itself: its view, from which HTML and text are made, and its figure.

An analysis brings both in its own module. Here are those of the other results; what is not in ``_VIEWS`` shows its
fields as a table.

In HTML, colours come with their own transparency and the ink is the page's, so the same piece reads on a light and on a
dark page. Nothing is loaded from anywhere, and every text is escaped.
"""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from itertools import compress
from typing import TYPE_CHECKING, Any

import numpy as np

from ..analyses.catalogue import made_by
from ..answers.metrics import constant_name, metric_title
from ..attribution.token_methods import METHODS
from ..commands.common import text_of
from ..display.figures.answers import metric_bars, slices
from ..display.figures.bars import waterfall
from ..display.figures.heads import changes, head_map
from ..display.figures.maps import matrix, paths_figure, token_rows, word_rows
from ..display.figures.speed import kept_against_speed
from ..display.figures.style import BETTER, NEUTRAL, WORSE, scale_for, tone
from ..display.numbers import p_text
from ..display.sentences import metric_change, metric_changes
from ..display.table import NOTEBOOK, Column, Grid, Table, View, change_table, heads_table
from ..errors import OptionError
from ..heads import HeadId, HeadMask, HeadScores, head_name, head_of, highest, order_note
from ..reports import run_report
from ..tasks import points_in

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from ..answers.comparison import Comparison, Delta
    from ..attribution.contributions import Contributions
    from ..attribution.maps import Maps
    from ..attribution.patching import Patching
    from ..attribution.paths import Paths
    from ..attribution.token_explanations import TokenAttributions, TokenExplanations
    from ..evaluation.paired import Paired
    from ..evaluation.plain import Evaluation
    from ..pruning.faster import Faster
    from ..runs.reading import RunView
    from ..tasks import Dataset

CELL, LEFT, TOP = 15, 30, 14  # pixels
MOST_CELLS, MOST_ROWS = 64, 16  # of a grid in each direction, and of a table
SOFT = "opacity:.7;font-size:.9em"
TABLE = "border-collapse:collapse;margin:.4em 0;font-variant-numeric:tabular-nums"
LINE = "padding:.1em .7em .1em 0;border-bottom:1px solid rgba(140,146,152,.3)"


def html_of(view: View, title: str) -> str:
    """The view under its title."""
    parts = [f"<b>{escape(title)}</b>"]
    parts += [f'<div style="{SOFT}">{escape(f"{name}: {value}")}</div>' for name, value in view.about]
    parts.append(f"<div>{escape(view.finding)}</div>")
    if view.grid is not None:
        parts.append(grid_svg(view.grid, view.rows))
        parts.append(f'<div style="{SOFT}">{escape(view.grid.caption)}</div>')
    parts += [table_html(part, view.rows) for part in view.parts if isinstance(part, Table)]
    parts += [f'<div style="{SOFT}">{escape(text)}</div>' for text in (view.warning, view.note) if text]
    twin = f"<details><summary>as text</summary><pre>{escape(text_of(view))}</pre></details>"
    return f'<div class="headviz" style="line-height:1.4;max-width:60em;overflow-x:auto">{"".join(parts)}{twin}</div>'


def grid_svg(grid: Grid, names: tuple[str, ...] = ()) -> str:
    """One square for each head; blue above zero, orange below, hollow where nothing was measured."""
    layers, heads = (min(n, MOST_CELLS) for n in grid.values.shape)
    scale = scale_for(grid.values)
    end = max(abs(scale.lo), abs(scale.hi))
    squares = [_square(grid, HeadId(layer, head), end, names) for layer in range(layers) for head in range(heads)]
    labels = [
        f'<text x="{LEFT - 4}" y="{TOP + layer * CELL + 10}" text-anchor="end">'
        f"{escape(names[layer] if names else f'L{layer}')}</text>"
        for layer in range(layers)
    ]
    labels += [
        f'<text x="{LEFT + head * CELL + 7}" y="{TOP - 4}" text-anchor="middle">{head}</text>' for head in range(heads)
    ]
    width, height = LEFT + heads * CELL + 2, TOP + layers * CELL + 2
    cut = grid.values.shape != (layers, heads)
    note = f'<div style="{SOFT}">The first {layers}×{heads} heads.</div>' if cut else ""
    return (
        f'<svg role="img" aria-label="{escape(grid.caption)}" width="{width}" height="{height}" fill="currentColor" '
        f'font-size="9" style="display:block;margin:.4em 0">{"".join(labels)}'
        f'<g fill="{BETTER}">{"".join(squares)}</g></svg>{note}'
    )


def _square(grid: Grid, head: HeadId, end: float, names: tuple[str, ...]) -> str:
    value = float(grid.values[head])
    style, text = f'stroke="{NEUTRAL}" fill="none" opacity=".6"', "–"
    if value == value:
        style, text = f'opacity="{min(1.0, 0.06 + 0.94 * abs(value) / end):.2f}"', grid.form % value
        style += f' fill="{WORSE}"' if value < 0 else ""
    if head in grid.marks:
        style += ' stroke="currentColor" stroke-width="1.5"'
    shape = f"M{LEFT + head.head * CELL} {TOP + head.layer * CELL}h{CELL - 1}v{CELL - 1}h-{CELL - 1}z"
    return f'<path d="{shape}" {style}><title>{escape(head_name(head, names))} {text}</title></path>'


def table_html(table: Table, names: tuple[str, ...] = ()) -> str:
    """The first rows of a table, with its caption."""
    titles, cells = table.titles(NOTEBOOK), table.texts(NOTEBOOK, names)[: min(table.shortened or MOST_ROWS, MOST_ROWS)]
    sides = [_side([row[i] for row in table.rows]) for i, _ in table.shown(NOTEBOOK)]
    head = "".join(
        f'<th style="{LINE};text-align:{side}">{escape(c)}</th>' for c, side in zip(titles, sides, strict=True)
    )
    body = "".join(
        "<tr>"
        + "".join(
            f'<td style="{LINE};text-align:{side}">{escape(text)}</td>' for text, side in zip(row, sides, strict=True)
        )
        + "</tr>"
        for row in cells
    )
    cut = f" ({len(cells)} of {len(table.rows)} rows)" if len(cells) < len(table.rows) else ""
    caption = f'<div style="{SOFT}">{escape(table.caption + cut)}</div>' if table.caption or cut else ""
    return f'{caption}<table class="headviz" style="{TABLE}"><tr>{head}</tr>{body}</table>'


def _side(column: list[Any]) -> str:
    """Numbers are flush right, all other cells flush left."""
    return "right" if all(isinstance(v, int | float | None) for v in column) else "left"


INK = "#737d86"  # of figures: reads on a light and on a dark page
FEW = 5  # rows of a table that only gives an idea
LONGEST = 120  # characters of a text in a table


def html(value: Any) -> str:
    """The result of ``_repr_html_``."""
    return html_of(view_of(value), type(value).__name__)


def text(value: Any) -> str:
    """What ``print`` shows."""
    return text_of(view_of(value))


def figure(value: Any, **options: Any) -> Figure:
    """The result of ``.plot()``."""
    draw = _function_for(value, _FIGURES, "figure")
    if draw is None:
        raise OptionError(f"{type(value).__name__} has no figure of its own.")
    fig: Figure = draw(value, **options)
    return fig.update_layout(font={"color": INK})


def view_of(value: Any) -> View:
    """A result for its readers."""
    view: View = (_function_for(value, _VIEWS, "view") or _fields)(value)
    return view


def _function_for(value: Any, functions: dict[str, Callable[..., Any]], name: str) -> Callable[..., Any] | None:
    """The function for a result's class, or for a class that it inherits from; else ``name`` of its analysis."""
    for kind in type(value).__mro__:
        if kind.__name__ in functions:
            return functions[kind.__name__]
    analysis = made_by(value)
    return None if analysis is None else getattr(analysis, name)


def _fields(value: Any) -> View:
    """The view of a result that has none of its own: its plain values, one per line."""
    rows = [
        (name, str(content)[:LONGEST])
        for name, content in value.to_dict().items()
        if content is None or isinstance(content, str | int | float | bool)
    ]
    return View("", (Table("fields", ("field", "value"), rows),))


# masks and scores -----------------------------------------------------------------------------


def _mask(mask: HeadMask) -> View:
    values = np.where(mask.array(), 1.0, np.nan)
    off = ", ".join(map(str, mask.off[:20])) + (f" and {len(mask.off) - 20} more" if len(mask.off) > 20 else "")
    grid = Grid("mask", mask, values, "on", "Full squares are on, hollow ones are off.", form="%.0f")
    return View(f"{mask}" + (f": {off}." if off else "."), grid=grid)


def _scores(scores: HeadScores) -> View:
    ranked = scores.ranked()
    chosen = ranked if len(ranked) <= 2 * FEW else [*ranked[:FEW], *ranked[-FEW:]]
    places = [1 + ranked.index(head) for head in chosen]
    bounds = (scores.interval_low, scores.interval_high)
    ends = "with 95 % intervals over examples" if np.isfinite(scores.interval_low).any() else "which have no intervals"
    caption = f"The highest and the lowest heads, {ends}.{order_note(scores.tied, len(scores.mask.kept))}"
    table = heads_table("ranked", chosen, "score", scores.values, bounds, ranks=places, caption=caption)
    grid = Grid("scores", scores.mask, scores.values, scores.score, "High = keep. Hollow = not measured.", form="%.3g")
    sentence = f"{scores.score} over {scores.samples:,} examples"
    if not scores.samples:
        sentence = f"{scores.score}, which needs no examples"
    if scores.stability == scores.stability:
        sentence += (
            f"; {100 * scores.stability:.0f} % of the lowest fifth would be named by another sample of this size"
        )
    return View(sentence + ".", (table,), grid, note=" ".join(scores.notes))


# one text -------------------------------------------------------------------------------------


def _maps(maps: Maps) -> View:
    sizes = np.abs(np.nan_to_num(maps.attribution)).ravel()
    rows = []
    for flat in np.argsort(-sizes, kind="stable")[: 2 * FEW]:
        index = tuple(int(i) for i in np.unravel_index(flat, maps.attribution.shape))
        layer, head, query, key = index
        values = float(maps.attribution[index]), float(maps.attention[index])
        rows.append((HeadId(layer, head), maps.tokens[query], maps.tokens[key], *values))
    table = Table(
        "strongest",
        ("head", "query", "key", "attribution", "attention"),
        rows,
        "The strongest connections of all heads.",
    )
    caption = "Sum of the sizes of each head's attributions."
    grid = Grid("strength", maps.mask, maps.strength(), maps.method, caption, form="%.3g")
    sentence = f"'{maps.target_label}' explained by {maps.method}, {len(maps.tokens)} tokens"
    sentence += f"; the answer is '{maps.labels[maps.predicted]}'" if len(maps.labels) > 1 else ""
    sentence += f"; integration error {100 * maps.error:.1f} %." if maps.error == maps.error else "."
    return View(sentence, (table,), grid, note=" ".join(maps.notes))


def _maps_figure(maps: Maps, head: Any = None, what: str = "attribution") -> Figure:
    """All heads by strength; with ``head``, its map: ``what`` is "attribution" or "attention"."""
    if what not in ("attribution", "attention"):
        raise OptionError(f"what is 'attribution' or 'attention', not '{what}'.")
    if head is None:
        return head_map(maps.strength(), "sum of |attribution|")
    layer, number = head_of(head)
    HeadMask.full(*maps.attention.shape[:2]).without([(layer, number)])  # refuses a head that is not there
    return matrix(getattr(maps, what)[layer, number], maps.tokens, maps.tokens, what, what == "attribution")


def _tokens(attributions: TokenAttributions) -> View:
    rows = sorted(zip(attributions.tokens, map(float, attributions.values), strict=True), key=lambda row: -abs(row[1]))
    sentence = (
        f"What each token speaks for '{attributions.target_label}'; integration error {100 * attributions.error:.1f} %."
    )
    return View(sentence, (Table("tokens", ("token", Column("attribution", "%+.3f")), rows),))


def _explanations_figure(e: TokenExplanations) -> Figure:
    return word_rows([METHODS[name].title for name in e.methods], e.target_label, e.values, e.special, e.tokens)


def _contributions_figure(contributions: Contributions) -> Figure:
    name = contributions.labels[contributions.predicted]
    return waterfall(contributions.parts(), f"score of {name}")


def _paths_figure(paths: Paths) -> Figure:
    ends = [end for edge in paths.edges for end in (edge.sender, edge.receiver) if end is not None]
    layers, heads = (1 + max((end[i] for end in ends), default=0) for i in (0, 1))
    return paths_figure(paths.edges, layers, heads)


def _patching(patching: Patching) -> View:
    strongest = highest(np.abs(patching.effect))[:FEW]
    labels = f"'{patching.to_label}' put into '{patching.from_label}'"
    sentence = f"Each head of {labels}, one at a time. Measured: {patching.measured}."
    table = heads_table("strongest", strongest, "effect", patching.effect, form="%+.3f", caption="The strongest heads.")
    mask = HeadMask.from_array(~np.isnan(patching.effect))
    caption = "0 = the answer stays, 1 = it becomes the donor's."
    return View(sentence, (table,), Grid("effect", mask, patching.effect, "effect", caption))


# evaluations ----------------------------------------------------------------------------------


def _evaluation(evaluation: Evaluation) -> View:
    rows = [(name, value, evaluation.constant.get(name)) for name, value in evaluation.metrics.items()]
    mean = f"mean of {len(evaluation.draws)} draws"
    rows += [(f"{name}, {mean}", metric["mean"], None) for name, metric in evaluation.over_draws().items()]
    constant = constant_name(next(iter(evaluation.metrics), ""), evaluation.answer)
    parts = [Table("metrics", ("metric", Column("value", "%.4f"), constant), rows)]
    if evaluation.predicted:
        parts.append(Table("predicted", ("answer", "times"), list(evaluation.predicted.items())))
    grid = None if evaluation.mask is None or evaluation.mask.is_full else _mask(evaluation.mask).grid
    examples = f"{evaluation.n:,} example{'' if evaluation.n == 1 else 's'}"
    sentence = f"{examples}, {evaluation.mask or 'no heads'}, {evaluation.seconds:.1f} s"
    sentence = ", ".join(filter(None, (sentence, evaluation.cut_off)))
    return View(f"{sentence}.", tuple(parts), grid)


def _delta(delta: Delta) -> View:
    table = change_table("change", "metric", (delta,), "The masked model against the full one.")
    return View(metric_changes(delta), (table,))


def _comparison(comparison: Comparison) -> View:
    tables = [change_table("metrics", "metric", comparison.deltas, "Paired on the same examples.")]
    if comparison.slices:
        caption = f"{metric_title(comparison.primary.metric)} by slice."
        tables.append(change_table("slices", "slice", comparison.slices, caption))
    return View(metric_changes(comparison.primary), tuple(tables))


def _comparison_figure(comparison: Comparison) -> Figure:
    return slices(comparison.slices or comparison.deltas, comparison.primary.metric, comparison.primary.constant)


def _paired(paired: Paired) -> View:
    change = f"{metric_change(paired.metric, paired.difference, paired.low, paired.high)}, {p_text(paired.p)}"
    return View(f"{change}, over {paired.n:,} examples: {paired.worse:,} worse, {paired.better:,} better.")


def _paired_figure(paired: Paired) -> Figure:
    scale = points_in(paired.metric)
    return changes(
        [paired.metric],
        [(scale * paired.difference, scale * paired.low, scale * paired.high)],
        [(paired.p, float("nan"))],
        axis="change, points",
        colour=tone(paired.low, paired.high),
        nothing="",
    )


def _faster_figure(faster: Faster) -> Figure:
    if not faster.metrics:
        raise OptionError("This faster model was not judged on a task: name its dev data to draw what it keeps.")
    step = {**faster.to_dict(), "remove": "both" if len(set(faster.neurons_per_layer)) > 1 else "heads"}
    metric = next(iter(faster.metrics))
    return kept_against_speed([step], metric, (faster.baseline or {}).get(metric))


# data and runs --------------------------------------------------------------------------------


def _dataset(data: Dataset) -> View:
    columns = ("example", "text", "pair", "label", data.slice_name or "slice")
    used = (True, True, data.pairs is not None, data.labels is not None, data.slices is not None)
    rows = [tuple(compress((i, *map(_short, data[i])), used)) for i in range(min(FEW, len(data)))]
    parts = [Table("examples", tuple(compress(columns, used)), rows, "The first ones.")]
    counts = None if data.labels is None else data.answer.counts(data.labels, data.label_names)
    if counts is not None:
        parts.append(Table("labels", ("label", "examples"), list(counts.items())))
    return View(f"{data.task.title}, {data.split}: {len(data):,} examples.", tuple(parts), note=" ".join(data.notes))


def _short(cell: Any) -> Any:
    return cell if not isinstance(cell, str) or len(cell) <= LONGEST else cell[: LONGEST - 1] + "…"


def _run(view: RunView) -> View:
    table = run_report.run_table(view)
    count, expected = view.count
    steps = f"{count} of {expected} steps" if expected else f"{count} steps"
    return View(
        " ".join([f"{view.record.title} is {view.state}: {steps}.", *run_report.findings(view)]),
        (table,) if table.rows else (),
        note=view.record.error or "",
    )


def _run_figure(view: RunView) -> Figure:
    result = run_report.figure(view)
    if result is None:
        raise OptionError("This run has nothing to draw yet.")
    fig: Figure = result[1]
    return fig


_VIEWS: dict[str, Callable[[Any], View]] = {
    "HeadMask": _mask,
    "HeadScores": _scores,
    "Maps": _maps,
    "TokenAttributions": _tokens,
    "Patching": _patching,
    "Evaluation": _evaluation,
    "Delta": _delta,
    "Comparison": _comparison,
    "Paired": _paired,
    "Dataset": _dataset,
    "RunView": _run,
}
_FIGURES: dict[str, Callable[..., Any]] = {
    "HeadMask": lambda mask: head_map(np.where(mask.array(), 1.0, np.nan), "on"),
    "HeadScores": lambda scores: head_map(scores.values, scores.score, scores.interval_low, scores.interval_high),
    "Maps": _maps_figure,
    "TokenAttributions": lambda tokens: token_rows([("tokens", tokens.target_label, tokens.values)], tokens.tokens),
    "Patching": lambda patching: head_map(patching.effect, "effect"),
    "TokenExplanations": _explanations_figure,
    "Contributions": _contributions_figure,
    "Paths": _paths_figure,
    "PatchingSet": lambda pairs: head_map(pairs.mean, "mean effect", pairs.interval_low, pairs.interval_high),
    "Evaluation": lambda evaluation: metric_bars(evaluation.metrics, evaluation.constant, evaluation.answer),
    "Comparison": _comparison_figure,
    "Growing": lambda growing: _comparison_figure(growing.comparison),
    "Paired": _paired_figure,
    "Faster": _faster_figure,
    "RunView": _run_figure,
}
