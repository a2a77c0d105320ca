"""Options and output that several commands share."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import headviz

from ..analyses.common import check_metric, check_score
from ..display.figures.style import write_html
from ..display.numbers import share
from ..display.table import TERMINAL, Grid, Table, View
from ..errors import LARGEST_SEED, MOST_BEAMS, NO_ROOM, MaskError, OptionError, UserError, shown
from ..evaluation.plain import stand_in_fields
from ..heads import HeadId, HeadMask, parse_heads
from ..models import device_named, dtype_named
from ..models.folder_check import Described
from ..models.hub import refuse_absent
from ..models.source import LANGUAGES, PREFIX, Source
from ..models.stand_in import ZERO, StandIn
from ..options import Option, add_flags, add_options, declared, short
from ..progress import progress_bar
from ..reference import PublishedTable
from ..storage import exchange
from ..storage.paths import out_file, outside_path
from ..storage.writing import disk_errors
from ..tasks import check_request, load_task, sample
from ..tasks.catalogue import judged_by
from ..tasks.loading import require_files

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from ..models.base import TransformerModel
    from ..models.classifier import Classifier
    from ..tasks import Dataset


LEAST_MEMORY = 10**9  # bytes of address space
SOURCE = declared(Source)
TEXTS = (
    Option("text", help="the text", metavar="A", required=True),
    Option("text_pair", help="its pair, for models that compare two texts", metavar="B"),
)
TARGET = (
    Option("target", "predicted", "predicted, or a class", metavar="T"),
    Option("label", help="the example's label, for --target gold", metavar="Y"),
)
NO_CACHE = Option("no_cache", False, "neither read nor write the cache")
LOADED = (
    SOURCE["job"],
    SOURCE["device"],
    Option("dtype", None, "float32, bfloat16 or float16", usual="float32", metavar="T"),
)
LIMITS = (
    Option("limit", None, "a seeded, stratified part of the data", int, least=1, metavar="N"),
    Option("limit_seed", 0, "which part --limit takes", most=LARGEST_SEED, metavar="S"),
)
REGRESSION = Option("regression", None, "your own labels are numbers, not classes", bool)
MASK = (  # one of the two
    Option("off", help="heads to switch off, such as 3.5,7.0; of a stack: cross.1.5", metavar="L.H,…"),
    Option("mask", help="a mask as headviz prints it, or a file: .json, .npy, .txt", metavar="HEX"),
)
TRANSLATION = (
    Option("beams", 1, "of a translation model: beam search with N beams", least=1, most=MOST_BEAMS, metavar="N"),
    Option("prefix", **PREFIX),
    Option("languages", several=True, **LANGUAGES),
)
FIGURE = Option("figure", help="also draw the result into a page of its own", metavar="FILE.html")
SLICES = Option("slice_column", None, "a column whose values split the results, such as genre", metavar="S")


def add_model(parser: argparse.ArgumentParser) -> None:
    """``--model`` and how to load it."""
    SOURCE["model"].add_to(parser, required=True)
    SOURCE["revision"].add_to(parser)
    add_options(parser, LOADED)
    parser.set_defaults(check=check_early)  # the command line calls it first


def add_task(parser: argparse._ActionsContainer, split: str | None = "dev", required: bool = True) -> None:
    """``--task`` and where its data are; without ``split`` there is no ``--split``."""
    SOURCE["task"].add_to(parser, required=required)
    SOURCE["data"].add_to(parser)
    if split is not None:
        Option("split", split, "which part of the data", metavar="S").add_to(parser, split)
    add_options(parser, LIMITS)
    for name in ("text_columns", "label_column", "label_order", "separator", "skip_bad", "metrics", "thresholds"):
        SOURCE[name].add_to(parser)
    SLICES.add_to(parser)
    REGRESSION.add_to(parser)


def add_mask(parser: argparse.ArgumentParser) -> None:
    """``--off`` or ``--mask``."""
    add_options(parser.add_mutually_exclusive_group(), MASK)


def add_ablation(parser: argparse.ArgumentParser) -> None:
    """``--ablation`` and ``--reference``."""
    add_flags(parser, StandIn)


def add_masked_model(parser: argparse.ArgumentParser) -> None:
    """A model, its heads that are off, and what stands in their place, which alone needs a task: what ``masked_model``
    reads."""
    add_model(parser)
    add_mask(parser)
    add_ablation(parser)
    add_task(parser.add_argument_group("training examples of --ablation"), split=None, required=False)


def add_subcommand(commands: Any, name: str, about: str, declare: Callable[[argparse.ArgumentParser], None]) -> None:
    """A command of a command, with the options that ``declare`` adds."""
    parser = commands.add_parser(name, help=about, description=f"{about[0].upper()}{about[1:]}.", allow_abbrev=False)
    declare(parser)
    parser.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="print the result as JSON")


def stand_in_of(args: argparse.Namespace) -> StandIn:
    """What stands in a head's place: as asked for, or as the mask's file says."""
    if args.ablation is None:
        chosen = StandIn.of(exchange.read_ablation(getattr(args, "mask", None)))
    else:
        chosen = StandIn(args.ablation)
    if args.reference is None:
        return chosen
    if chosen.kind == ZERO:
        raise OptionError("--reference is the sample for --ablation mean, resample or constant. Name one of them.")
    return StandIn(chosen.kind, args.reference)


def ablation_of(args: argparse.Namespace) -> tuple[StandIn, Dataset | None]:
    """What stands in a head's place, and the seeded, class-balanced training examples on which it is measured."""
    chosen = stand_in_of(args)
    if chosen.kind == ZERO:
        return chosen, None
    train = load_data(args, "train", limited=False)
    return chosen, sample(train, chosen.examples, seed=chosen.seed, length_filter=None)


def training_sample(args: argparse.Namespace, clf: TransformerModel) -> Dataset:
    """A balanced sample of the training split; ``--limit`` is about the reported data only."""
    train = load_data(args, "train", limited=False)
    return sample(train, args.samples, seed=args.seed, lengths=clf.tokenizer)


def load_with_reference(args: argparse.Namespace) -> Classifier:
    """The model, with what ``--ablation`` names in the place of heads that are off.

    What cannot stand there in a model, or has no data to measure, is refused before anything is loaded.
    """
    chosen = stand_in_of(args)
    if chosen.of_the_text:
        raise OptionError(chosen.refusal())
    if chosen.kind != ZERO and args.off is None and args.mask is None:
        raise OptionError("--ablation is about heads that are off. Name them: --off 3.5,7.0 or --mask HEX.")
    if chosen.kind != ZERO and args.task is None:
        raise OptionError(f"--ablation {chosen.kind} is measured on training examples. Name their task: --task T.")
    chosen, reference = ablation_of(args)
    clf = load_model(args)
    if reference is None:
        return clf
    with progress_bar("measuring the reference") as progress:
        return headviz.standing_in(clf, chosen, reference, label_order=args.label_order, progress=progress)


def fewer_pieces(args: argparse.Namespace, clf: Classifier) -> tuple[Classifier, dict[str, Any]]:
    """The model with the vocabulary that ``--vocabulary`` names, and what that changes; both as before without it."""
    if args.vocabulary is None:
        return clf, {}
    from ..models.vocabulary import smaller_vocabulary

    held_out = None
    if args.task is not None:
        data = load_data(args, "dev", limited=False)
        held_out = [*data.texts, *(data.pairs or ())]
    small, record = smaller_vocabulary(clf, args.vocabulary, held_out)
    return small, {"vocabulary": record}


def pieces_text(result: dict[str, Any]) -> str:
    """What a smaller vocabulary changes, in words."""
    record = result["vocabulary"]
    before, after = record["pieces"]["before"], record["pieces"]["after"]
    changed = "" if record["changed"] is None else f"; {share(record['changed'])} of dev's texts are split otherwise"
    return f"{before:,} → {after:,}{changed}"


def masked_model(args: argparse.Namespace) -> tuple[Classifier, HeadMask]:
    """The same model, and its mask."""
    clf = load_with_reference(args)
    return clf, read_mask(args, clf)


def in_their_place(clf: Classifier) -> dict[str, Any]:
    """What a result says about the place of heads that are off."""
    return {"ablation": ZERO, "reference": None} | stand_in_fields(clf)


def place_rows(result: dict[str, Any]) -> list[tuple[str, str]]:
    """The same as a row of a printed table; none for zero."""
    if result["ablation"] == ZERO:
        return []
    return [("in their place", f"{result['ablation']}, of {result['reference']:,} training examples")]


def add_translation(parser: argparse.ArgumentParser) -> None:
    """Options that only translation models have."""
    add_options(parser, TRANSLATION)


def reading(args: argparse.Namespace, clf: Classifier) -> Classifier:
    """The model, with the prefix and the languages asked for."""
    if args.prefix is None and args.languages is None:
        return clf
    return clf.reading(args.prefix, args.languages)


def require_room() -> None:
    """Refuse a limit of memory under which torch and its like cannot be imported: some of that hangs, or aborts."""
    try:
        from resource import RLIM_INFINITY, RLIMIT_AS, getrlimit
    except ImportError:  # Windows has no such limit
        return
    limit, _ = getrlimit(RLIMIT_AS)
    if limit != RLIM_INFINITY and limit < LEAST_MEMORY:
        raise UserError(NO_ROOM)


def load_model(args: argparse.Namespace, data: Dataset | None = None) -> Classifier:
    """The model asked for. Classes of ``data`` that it does not have are refused before torch is imported."""
    require_room()
    folder = None if data is None or data.labels is None else refuse_absent(args.model, args.revision)
    model = None if folder is None else Described.read(folder, args.model, args.job)
    if data is not None and model is not None and model.answer is data.answer:
        data.answer.order(model, data, args.label_order)
    clf = headviz.load(args.model, revision=args.revision, device=args.device, dtype=args.dtype, job=args.job)
    about = clf.about_answers() if args.job is None and hasattr(clf, "about_answers") else {}
    if about.get("choice"):
        warn(about["choice"])
    return clf


def check_early(args: argparse.Namespace) -> None:
    """Refuse what is wrong whatever the model and the data are, without torch, whose import takes seconds: a model that
    is not there, a class that it does not have, an unknown task or split, data that are not there, heads, a
    mask, device and precision."""
    option = vars(args).get  # not every command has all of them
    if option("task") is not None:
        task = check_request(args.task, option("split") or "dev")
        if option("metrics") is not None and not task.source.own:
            task = judged_by(task, args.metrics)
        if not task.source.own:  # the metrics of one's own task follow from its labels
            check_metric(task, option("metric"))
        if option("data") is not None:
            require_files(task, outside_path(args.data, "the data"))
    for head in (option("off") or "").split(","):
        if head.strip() and not re.match(r"\s*[A-Za-z]{2,}[.:]", head):  # a stack's name needs the model
            HeadId.parse(head)
    mask = (option("mask") or "").strip()
    if re.fullmatch(r"0[bBoO][0-7]*", mask):
        raise MaskError(f"'{short(mask)}' looks binary or octal, and masks are hexadecimal: write 0x{short(mask)}.")
    if mask.lower().endswith(exchange.FILES):
        exchange.existing_file(args.mask)
    scores = option("scores") or option("score") or ""
    for name in filter(None, map(str.strip, scores.split(","))):
        check_score(name)
    if option("ablation") is not None:
        StandIn(args.ablation)
    device_named(args.device)
    dtype_named(option("dtype"))
    folder = refuse_absent(args.model, args.revision)
    target = option("target")
    if folder is not None and target is not None and (model := Described.read(folder, args.model, args.job)):
        model.answer.target(model, target, option("label"))


def load_data(args: argparse.Namespace, split: str | None = None, limited: bool = True) -> Dataset:
    """The data asked for; ``limited=False`` leaves ``--limit`` out. What there is to say of them is printed."""
    data = load_task(
        args.task,
        split=split or args.split,
        data=args.data,
        limit=args.limit if limited else None,
        seed=args.limit_seed,
        text_columns=args.text_columns,
        label_column=args.label_column,
        slice_column=args.slice_column,
        regression=args.regression,
        job=getattr(args, "job", None) if args.task == "custom" else None,
        separator=args.separator,
        skip_bad=bool(args.skip_bad),
        metrics=args.metrics,
        thresholds=args.thresholds,
    )
    for note in data.notes:
        warn(note)
    return data


def read_mask(args: argparse.Namespace, clf: Classifier) -> HeadMask:
    """The mask asked for. Heads that were removed from the model stay off."""
    mask = HeadMask.full(clf.num_layers, clf.num_heads)
    if args.mask is not None:
        is_file = args.mask.strip().lower().endswith(exchange.FILES)
        if not is_file and Path(args.mask).suffix:
            endings = ", ".join(exchange.FILES)
            raise MaskError(
                f"{shown(args.mask)} is no file of a mask: those end in {endings}. Heads (3.5,7.0) are for --off."
            )
        read: Any = exchange.read_mask if is_file else HeadMask.from_hex
        mask = read(args.mask, clf.num_layers, clf.num_heads)
    elif args.off is not None:
        heads = parse_heads(args.off, clf.stacks)
        if not heads:
            raise MaskError("--off names no head. Write heads as layer.head, separated by commas, such as 3.5,7.0.")
        mask = mask.without(heads)
    return clf.under(mask)


def check_figure(args: argparse.Namespace) -> None:
    """Refuse a wrong file name for the figure before the work starts."""
    if args.figure is None:
        return
    place = out_file(args.figure, "figure.html", "--figure")
    if place.suffix.lower() not in (".html", ".htm"):
        raise OptionError(f"'{args.figure}' is not a page. Give a file name that ends in .html.")


def save_figure(args: argparse.Namespace, title: str, draw: Callable[[], go.Figure]) -> None:
    if args.figure is None:
        return
    place = outside_path(args.figure, "--figure")
    with disk_errors(place):
        write_html(draw(), place, title)


def warn(line: str) -> None:
    sys.stderr.write(f"headviz: note: {line}\n")


def table_text(content: Table) -> str:
    """A declared table as text."""
    return table([content.titles(TERMINAL), *content.texts(TERMINAL)])


def table(rows: Sequence[Sequence[Any]]) -> str:
    """Rows as text in columns: the first one flush left, the others flush right."""
    text = [[str(cell) for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in text) for i in range(len(text[0]))]
    return "\n".join(
        "  ".join(
            cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        )
        for row in text
    )


class Shown(dict[str, Any]):
    """A result as JSON, together with the view that its text is made of."""

    def __init__(self, content: dict[str, Any], view: View) -> None:
        super().__init__(content)
        self.view = view


def text_of(view: View) -> str:
    """What was measured, the finding, then every table; figures are drawn by ``--figure`` only."""
    parts = [table(view.about) if view.about else "", view.finding]
    if view.grid is not None:
        parts.append(_grid(view.grid, view.rows))
    parts += [_table(part, view.rows) for part in view.parts if isinstance(part, Table)]
    return "\n\n".join(filter(None, (*parts, view.warning, view.note)))


def published_text(published: PublishedTable) -> str:
    """A published table under a line that says so."""
    return f"published: {published.title} ({published.about})\n" + table([published.header, *published.rows])


def _grid(grid: Grid, rows: tuple[str, ...]) -> str:
    lines = [["layer", *(f"H{h}" for h in range(grid.values.shape[1]))]]
    for layer, values in enumerate(grid.values):
        name = rows[layer] if rows else f"L{layer}"
        cells = [
            ("–" if v != v else grid.form % v) + ("*" if (layer, head) in grid.marks else " ")
            for head, v in enumerate(values)
        ]
        lines.append([name, *cells])
    return f"{grid.caption}\n" + table(lines) + (f"\n* {grid.mark_name}" if grid.mark_name else "")


def _table(content: Table, names: tuple[str, ...]) -> str:
    cells = content.texts(TERMINAL, names)[: content.shortened]
    count = f" ({len(cells)} of {len(content.rows)})" if len(cells) < len(content.rows) else ""
    return "\n".join(filter(None, (content.caption + count, table([content.titles(TERMINAL), *cells]))))
