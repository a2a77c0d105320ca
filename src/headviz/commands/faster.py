"""``headviz prune --faster X``: the options, the work and its output."""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..display.figures.speed import decision, faster_table, kept_against_speed, learning_rates, tried_table
from ..display.table import Column, Table
from ..engine import Checkpoints, Execution, Workplace, restored, run_here
from ..errors import Cancelled, OptionError
from ..models.stand_in import ZERO
from ..options import add_flags, declared, from_flags, with_flags
from ..progress import long_work, note_above, phase_bar
from ..pruning.options import AUTO, GIVEN_RATE, TARGETS, TRAINS, FinetuneOptions, Round, SearchOptions, usual_epochs
from ..pruning.training_folder import removal
from ..runs.jobs import Loaded
from ..runs.jobs.faster import FasterJob, FasterSpec
from ..storage.paths import outside_path, read_small
from ..storage.store import store_for
from ..storage.writing import replace_file
from ..tasks import chosen_on
from .common import (
    FIGURE,
    NO_CACHE,
    add_task,
    check_figure,
    fewer_pieces,
    load_data,
    load_model,
    pieces_text,
    save_figure,
    stand_in_of,
    table_text,
    warn,
)
from .finetune import add_training, training_options

if TYPE_CHECKING:
    from ..pruning.faster import FasterSteps

OUT = "--out"
OF_RUN = ("model", "digest", "mask", "sparsity", "remove", "batch_seconds")  # of a run's step alone
SEARCH = "search.json"  # the options of a search with training
BATCH = ("batch",)  # is that of the timing, not of the training
HEADS_ONLY = declared(FasterSpec)["heads_only"]
SEARCHING = tuple(option.dest for option in with_flags(SearchOptions))
OWN = (*SEARCHING, "heads_only", "retrain", "task", "data", "limit", "no_cache", "figure")
TRAINING = tuple(option.dest for option in with_flags(FinetuneOptions, BATCH))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group(
        "a speed, in place of heads", "Heads and feed-forward neurons go until it is met."
    )
    TARGETS.add_to(group)
    add_task(group, split=None, required=False)
    add_flags(group, SearchOptions)
    HEADS_ONLY.add_to(group, False)
    group.add_argument("--retrain", action="store_true", help="train the smaller model on the train split")
    NO_CACHE.add_to(group)
    FIGURE.add_to(group)
    add_training(parser, without=BATCH)


def check(args: argparse.Namespace) -> None:
    """Refuse options that contradict each other, before anything is loaded."""
    if args.faster is None:
        # data also say what removed heads cost; a masked export has no model card
        data = () if args.masked and stand_in_of(args).kind == ZERO else ("task", "data", "limit")
        for name in (*OWN, *TRAINING):
            value = getattr(args, name)
            if name not in data and value is not None and value is not False:
                raise OptionError(f"--{name.replace('_', '-')} goes with --faster X. Leave it out, or name a speed.")
        return
    TARGETS.checked(args.faster)
    if args.ablation not in (None, ZERO):
        raise OptionError("--faster repairs the remaining weights itself; --ablation goes with --off or --mask.")
    for name in ("off", "mask", "masked"):
        if getattr(args, name):
            raise OptionError(f"--faster chooses what is removed; --{name} names it. Give one of the two.")
    if args.task is None:
        raise OptionError("--faster needs the task whose answers are to be kept: --task T [--data DIR].")
    if not args.retrain:
        for name in (*TRAINING, "rate"):
            if getattr(args, name) is not None:
                raise OptionError(f"--{name.replace('_', '-')} is for a training: add --retrain, or leave it out.")
    SearchOptions(**from_flags(args, SearchOptions))


def run(args: argparse.Namespace, out: Path) -> dict[str, Any]:
    check_figure(args)
    train, dev = load_data(args, "train"), load_data(args, "dev", limited=False)

    from ..evaluation.plain import cut_off
    from ..models.loading import load
    from ..models.saving import Measured
    from ..pruning.faster import FasterSteps, require_possible

    clf, words = fewer_pieces(args, load_model(args, dev))
    if shared := chosen_on(train, dev):
        warn(shared)
    if cut := cut_off(clf, dev):
        warn(f"of {len(dev):,} dev texts, {cut}.")
    retrain = None
    if args.retrain:
        from ..pruning.finetuning import recipe_of

        retrain = training_options(args, recipe_of(args.model), without=BATCH)
        if args.epochs is None:
            retrain = replace(retrain, epochs=usual_epochs(len(train), retrain.batch))
        if args.rate is None and args.learning_rate is not None:
            args.rate = GIVEN_RATE
    spec = FasterSpec(
        model=args.model,
        task=args.task,
        device=args.device,
        job=args.job,
        label_order=args.label_order,
        targets=tuple(args.faster),
        beside=False,
        heads_only=args.heads_only,
        finetune=retrain,
        length=args.length,
        **from_flags(args, SearchOptions),
    )
    require_possible(clf, spec.options, train)
    work = FasterSteps(clf, train, spec.options, dev, args.label_order, store=store_for(not args.no_cache))
    with ExitStack() as stack:
        if retrain is None:
            place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="headviz-faster-")))
        else:
            place = _kept(out, spec)
        job = FasterJob(spec)
        steps, outcome = _searched(job, Workplace(job, place, Loaded(clf, tuple(work.datasets), work)))
        targets = []
        for step in steps:
            if "note" in step:
                warn(step["note"])
                continue
            folder = out if len(steps) == 1 else out / f"{step['target']:g}x"
            result = {k: v for k, v in step.items() if k not in OF_RUN}
            result |= {"table": outcome["table"], "seconds": step["batch_seconds"]}
            measured = replace(Measured.of(result, args.task), command=getattr(args, "line", ""))
            small = replace(load(place / step["model"], device=args.device, job=args.job), name=clf.name)
            folder = small.save(folder, args.portable, measured)
            if args.onnx:
                from ..models.onnx import export_onnx

                export_onnx(small, folder / "model.onnx")
            targets.append({**result, "out": str(folder)})
    if retrain is not None:
        shutil.rmtree(place, ignore_errors=True)
    metric, baseline = _metric(targets), targets[0]["baseline"] or {}
    models = [step for step in steps if "note" not in step]
    save_figure(args, "Faster models", lambda: kept_against_speed(models, metric, baseline.get(metric)))
    top = targets[0] if len(targets) == 1 else {"baseline": targets[0]["baseline"]}
    return {**top, **words, "task": args.task, "targets": targets}


def _kept(out: Path, spec: FasterSpec) -> Path:
    """The folder in which a search with training goes on where it was stopped."""
    place = outside_path(out.resolve().parent / f".{out.resolve().name}-faster", OUT)
    options, file = json.dumps(spec.to_dict()), place / SEARCH
    if file.exists():
        if json.loads(read_small(file, 2**20)) != json.loads(options):
            raise OptionError(
                f"'{place}' holds another search. The command that began it goes on there; {removal(place)} removes it."
            )
        warn(f"goes on from {place}; {removal(place)} begins again")
    elif place.exists():
        raise OptionError(f"Models of the rounds would go into '{place}', which holds something else. Move it away.")
    else:
        place.mkdir(parents=True)
        replace_file(file, options)
    return place


def _searched(job: FasterJob, workplace: Workplace) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The steps of a search that is done here, and its outcome."""
    place, rounds = workplace.folder, job.spec.rounds
    checkpoints = Checkpoints(place / "checkpoints")
    state, _ = restored(job, checkpoints)
    execution, built = Execution(job, checkpoints, state), list(state["build"])
    trained, resumed = job.spec.finetune is not None, state["table"] is not None
    try:
        if trained:
            _warn_of_time(workplace.loaded().shared, [step for n, (_, step, _) in rounds.items() if n not in built])
        began, work = time.monotonic(), 0.0
        with phase_bar("--samples N scores fewer examples.", quiet=TRAINS if trained else "") as bar:
            for state in run_here(execution, workplace, bar):
                if len(state["build"]) > len(built) and trained:
                    last, built = built, list(state["build"])
                    if resumed:  # a part of this round was done before
                        began, resumed = time.monotonic(), False
                        continue
                    work += sum(rounds[n][1].work for n in built if n not in last and "note" not in state["build"][n])
                    remaining = sum(step.work for n, (_, step, _) in rounds.items() if n not in built)
                    if remaining and work:
                        minutes = (time.monotonic() - began) / work * remaining / 60
                        note_above(f"headviz: {len(built)} of {len(rounds)} rounds, about {minutes:.0f} minutes left")
    except (Cancelled, KeyboardInterrupt):
        if trained:
            warn(f"the same command goes on from {place}; {removal(place)} removes what is there")
        raise
    outcome = execution.finish(place)
    return [step for _, step in sorted(job.steps(execution.state).items())], outcome


def _warn_of_time(work: FasterSteps, rounds: Sequence[Round]) -> None:
    """Where the trainings of these rounds take long, a line that says how long."""
    title = f"training in {len(rounds)} rounds" if len(rounds) > 1 else "training"
    one_rate = "--learning-rate R (instead of trying three), " if work.options.rate == AUTO else ""
    shorter = f"{one_rate}--limit N (fewer examples) or --epochs N (a shorter time) start again, in another --out."
    if line := long_work(title, work.training_seconds(rounds), f"The search before each round comes on top. {shorter}"):
        note_above(f"headviz: note: {line}")


def _metric(targets: Sequence[dict[str, Any]]) -> str:
    """What the models are compared by."""
    compared = (target["change"]["metric"] for target in targets if target["change"])
    return next(compared, next(iter(targets[0]["metrics"] or {}), ""))


def show(result: dict[str, Any]) -> str:
    first = result["targets"][0]
    metric = _metric(result["targets"])
    lines = [
        table_text(faster_table(result["targets"], metric)),
        f"Speed: batches of {first['batch']} texts of {first['length']} tokens, {first['table']['device']}.",
    ]
    for t in result["targets"]:
        lines.append(f"{t['target']:g}×: heads per layer {' '.join(map(str, t['heads_per_layer']))}")
        lines.append(f"      neurons per layer {' '.join(map(str, t['neurons_per_layer']))}")
        if t["error"]:
            lines.append(_repaired(t["error"]))
        if rates := learning_rates(t):
            lines.append(f"      {rates}")
    if any(t["tried"] for t in result["targets"]):
        lines.append(table_text(tried_table(result["targets"])))
    if "vocabulary" in result:
        lines.append(f"pieces: {pieces_text(result)}")
    lines.append(decision(result["targets"], metric))
    return "\n".join(line for line in lines if line)


def _repaired(error: dict[str, Any]) -> str:
    """What the repair did: error and largest weight of each matrix, before and after."""

    def change(of: dict[str, float]) -> str:
        return f"{of['before']:.3g} → {of['after']:.3g}"

    columns = (
        Column("repaired", value=lambda m: f"layer {m['layer']}, {m['map']}"),
        Column("ridge", value=lambda m: "left as it was" if m["ridge"] is None else f"{m['ridge']:g}"),
        Column("error on held-out examples", value=lambda m: change(m["held_out"])),
        Column("largest weight", value=lambda m: change(m["largest"])),
    )
    rows = table_text(Table.of("repaired", columns, error["maps"]))
    return f"{rows}\nin all: {change(error['held_out'])}"
