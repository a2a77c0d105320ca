"""``headviz evaluate``: metrics on a task under a mask, and what the mask changes."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

import numpy as np

import headviz

from ..answers.catalogue import ANSWERS
from ..answers.comparison import Delta
from ..answers.metrics import constant_name, metric_title, remark
from ..display import sentences
from ..display.numbers import fixed, interval, points
from ..display.sentences import heads_named, mask_cost
from ..display.table import change_table
from ..errors import OptionError
from ..evaluation.plain import class_order, undefined_for
from ..evaluation.precision import PRECISION
from ..heads import HeadId
from ..models.stand_in import ZERO
from ..options import Option, add_options, check_options
from ..progress import note_above, progress_bar
from ..storage.exchange import restored
from ..tasks import points_in
from .common import (
    ablation_of,
    add_ablation,
    add_mask,
    add_model,
    add_task,
    add_translation,
    load_data,
    load_model,
    place_rows,
    read_mask,
    reading,
    table,
    table_text,
    warn,
)

if TYPE_CHECKING:
    from ..evaluation.mask_evaluator import Growing
    from ..models.classifier import Classifier

OPTIONS = (
    Option(
        "compare",
        False,
        "also evaluate with every head: change of each metric with its interval and p, flips, confusion, slices",
    ),
    Option("fast", False, "show the answer on a few examples at once and as it grows to all of them"),
    PRECISION,
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    add_task(parser)
    add_mask(parser)
    add_translation(parser)
    add_ablation(parser)
    add_options(parser, OPTIONS)


def run(args: argparse.Namespace) -> dict[str, Any]:
    check_options(args, OPTIONS)
    if args.compare and args.mask is None and args.off is None:
        raise OptionError("--compare is about heads that are off. Name them: --off 3.5,7.0 or --mask HEX.")
    if args.slice_column and not args.compare:
        warn("--slice-column splits what --compare shows; without it there is one figure for all examples.")
    data = load_data(args)  # before the model, which takes longer: a wrong column is named at once
    clf = reading(args, load_model(args, data))
    tell_size(clf)
    # a model without heads says so only where it is asked to switch one off
    mask = None if args.mask is None and args.off is None else read_mask(args, clf)
    stand_in, reference = ablation_of(args)
    if mask is None and stand_in.kind != ZERO:
        raise OptionError("--ablation is about heads that are off. Name them: --off 3.5,7.0 or --mask HEX.")
    options = {"label_order": args.label_order, "beams": args.beams, "ablation": stand_in, "reference": reference}
    compared = {}
    with progress_bar("evaluating", "--limit N takes fewer examples, --fast shows the answer as it grows.") as progress:
        if args.fast or args.compare:
            evaluator = headviz.evaluator_of(clf, data, headviz.EvaluatorOptions(precision=args.precision), **options)
            for step in evaluator.growing(mask, progress=progress):
                if args.fast and step.counted:
                    note_above(so_far(step))
            comparison, result = step.comparison, evaluator.evaluate(mask)
        else:
            result = headviz.evaluate(clf, data, mask, precision=args.precision, progress=progress, **options)
        if args.compare:
            compared = {"comparison": comparison.to_dict()}
            if result.draws:
                over_draws = result.over_draws()
                compared["comparison"]["over_draws"] = {
                    d.metric: {
                        name: None if (value := over_draws[d.metric][name]) is None else value - d.full
                        for name in ("mean", "low", "high")
                    }
                    for d in comparison.deltas
                }
    if result.cut_off:
        warn(f"of {result.n:,} texts, {result.cut_off}.")
    undefined = reasons(clf, data, result, args.label_order)
    about = {"model": clf.name, "task": data.task.name, "job": data.job, "split": data.split, "origin": data.origin}
    return {**about, **result.to_dict(), "undefined": undefined, **compared}


def tell_size(clf: Classifier) -> None:
    """Of a large model: what it takes, and how an answer comes sooner. Before the work."""
    from ..evaluation.evaluator import faster_in_bfloat16, is_large, memory_note

    if is_large(clf):
        sooner = "; --dtype bfloat16 computes it faster, with answers that agree mostly, not always"
        warn(f"a large model: {memory_note(clf)}{sooner if faster_in_bfloat16(clf) else ''}.")


def so_far(step: Growing) -> str:
    """What the examples counted so far say: the change under a mask, or the metric."""
    primary, off = step.comparison.primary, step.mask.off
    if off:
        return sentences.so_far(primary, heads_named(off), step.n, step.counted)
    return f"{metric_title(primary.metric)} {fixed(primary.masked, 4)} {step.counted}."


def reasons(clf: Any, data: Any, result: Any, label_order: Any) -> dict[str, str]:
    """Why a metric has no value, by metric."""
    if data.labels is None or not any(np.isnan(v) for v in result.metrics.values()):
        return {}
    return undefined_for(data, result.logits, class_order(clf, data, label_order))


def show(result: dict[str, Any]) -> str:
    off = result["heads_off"]
    named = f": {', '.join(off)}" if 0 < len(off) <= 12 else ""
    rows = [("task", f"{result['task']} {result['split']}, {result['n']:,} examples")]
    constant, predicted = result["constant"], result["predicted"]
    if result["origin"]:
        rows.append(("data", result["origin"]))
    digits = 2 if "signatures" in result else 4  # BLEU and chrF run from 0 to 100
    for name, value in result["metrics"].items():
        best = "" if constant.get(name) is None else constant_name(name, ANSWERS[result["job"]])
        rows.append((name, fixed(value, digits) + (best and f" ({best}: {fixed(constant[name], digits)})")))
    if predicted:
        rows.append(("answers", ", ".join(f"{name} {count:,}" for name, count in predicted.items())))
    if result["mask"] is not None:
        rows += [("heads off", f"{len(off)}{named}"), ("mask", result["mask"])]
    rows += place_rows(result)
    for name, drawn in result.get("draws", {}).items():
        ends = "" if drawn["low"] is None else f" [{fixed(drawn['low'], digits)}, {fixed(drawn['high'], digits)}]"
        rows.append((f"{name} over {len(drawn['values'])} draws", fixed(drawn["mean"], digits) + ends))
    if "precision" in result:
        rows.append(("computed in", result["precision"]))
    rows.append(("seconds", f"{result['seconds']:.2f}"))
    signed = [f"{name}: {text}" for name, text in result.get("signatures", {}).items()]
    signed += [f"{metric_title(name)} has no value: {reason}." for name, reason in result["undefined"].items()]
    first = remark(predicted, constant.get("accuracy"), result["metrics"].get("accuracy"))
    parts = [*([first] if first else []), "\n".join([table(rows), *signed])]
    if "comparison" in result:
        parts += _compared(result["comparison"], result["undefined"], [HeadId.parse(head) for head in off])
    return "\n\n".join(parts)


def _compared(changes: dict[str, Any], undefined: dict[str, str], off: list[HeadId]) -> list[str]:
    """What the mask changes: one sentence, metrics, flips, slices. The confusion matrices are in the JSON only."""
    drawn = changes.get("over_draws", {})
    first_draw = " of the first draw" if drawn else ""
    deltas, slices = _deltas(changes["deltas"]), _deltas(changes["slices"] or [])
    parts = [mask_cost(deltas[0], slices, heads_named(off))] if off else []
    parts.append(f"Against every head{first_draw}:\n{table_text(change_table('metrics', 'metric', deltas))}")
    if drawn:
        rows = [
            (name, points(change["mean"], points_in(name)), interval(change["low"], change["high"], points_in(name)))
            for name, change in drawn.items()
        ]
        parts.append("Mean over the draws:\n" + table([("metric", "change", "95 % interval over draws"), *rows]))
    parts += [
        f"{d['metric']} has no change: {d['undefined']}."
        for d in changes["deltas"]
        if d["undefined"] and d["undefined"] != undefined.get(d["metric"])  # not what stands above already
    ]
    if changes["flips"] is not None:
        worse, better, other = (len(changes["flips"][k]) for k in ("worse", "better", "other"))
        parts.append(f"Flipped: {worse} right → wrong, {better} wrong → right, {other} from one wrong class to another")
    if slices:
        parts.append(table_text(change_table("slices", "slice", slices)))
    return parts


def _deltas(rows: list[dict[str, Any]]) -> list[Delta]:
    return [restored(Delta, {**row, "delta": None}, (1, 1)) for row in rows]
