"""Models and data for the pages: loaded once per process, within its memory. A model's shape is known before torch is
imported.

The dashboard reads only folders below the allowed roots, because its users may not own the machine. The command line
reads any folder.
"""

from __future__ import annotations

import gc
import os
import shlex
import threading
from collections import Counter
from collections.abc import Iterable
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from importlib import import_module
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import psutil
import streamlit as st

import headviz

from ...answers.catalogue import ANSWERS, answer_named
from ...demo import demo_folder
from ...errors import ModelError, OptionError, TaskError, UserError, shown
from ...heads import HeadMask
from ...models import NAMED
from ...models.fast.thread_spinning import wait_briefly
from ...models.folder_check import names_sizes, read_json, shape_of
from ...models.stand_in import ZERO, StandIn
from ...runs.reading import is_path, model_title
from ...scores.catalogue import names_for
from ...storage.paths import ROOTS, home, outside_path
from ...tasks.catalogue import get_task
from . import state
from .job import Memo, give_back, in_background
from .jobs import BYTES, tab_closed
from .messages import on_page
from .uploads import is_gone, naming, uploads
from .view import View

if TYPE_CHECKING:
    from ...answers.answer import Answer
    from ...evaluation.evaluator import Evaluator
    from ...models.base import Cost, Model, TransformerModel
    from ...models.classifier import Classifier
    from ...tasks import Dataset

MODELS, DATASETS, EVALUATORS = 4, 8, 3  # kept for all sessions together
_models: Memo[TransformerModel] = Memo(MODELS)
_datasets: Memo[Dataset] = Memo(DATASETS)
_evaluators: Memo[Evaluator] = Memo(EVALUATORS)
_costs: Memo[Cost] = Memo(64)

Keywords = tuple[tuple[str, Any], ...]  # of a call, as a key


def identity(clf: Model) -> tuple[object, ...]:
    """What results of a model are kept under: its weights and precision, and what its classes are called."""
    return (clf.digest, str(clf.dtype), clf.classes)


def allowed_roots() -> list[Path]:
    """The folders below which the dashboard reads models and data."""
    folders = [outside_path(p, ROOTS) for p in os.environ.get(ROOTS, "").split(os.pathsep) if p]
    return [p.resolve() for p in (*folders, Path.cwd(), home())]


def confined(text: str, use: str = "read") -> Path:
    """The folder this text names, if it lies in an allowed root; ``use`` says in the refusal what was wanted."""
    # not looked at before it is known to be allowed: whether a foreign file exists is nobody's business
    path = Path(os.path.realpath(outside_path(text, "the folder", look=False)))
    roots = allowed_roots()

    def inside(path: Path) -> bool:
        return any(path.is_relative_to(root) for root in roots)

    if not inside(path):
        raise UserError(
            f"The dashboard may not {use} '{text}': it is outside the allowed folders. To allow it, end the server "
            f"(Ctrl + C in its terminal) and start it with: {ROOTS}={_allowing(text)} headviz serve"
        )
    path = outside_path(path, "the folder")
    for entry in (*path.iterdir(), *path.glob("*/*")) if path.is_dir() else ():
        if entry.is_symlink() and not inside(Path(os.path.realpath(entry))):
            raise UserError(f"'{text}' holds a link to a file outside the allowed folders, {shown(entry.name)}.")
    return path


def _allowing(text: str) -> str:
    """The variable's value that also allows this folder, as a shell takes it; the shell knows the present value."""
    folder = outside_path(text, "the folder", look=False).absolute()  # not resolved: nobody is told where links lead
    return f'"${ROOTS}{os.pathsep}"{shlex.quote(str(folder))}'


def model_name(name: str) -> str:
    """The name for ``headviz.load``: a local folder is resolved and checked, another name stays as it is."""
    name = name.strip()
    if not name:
        raise ModelError("Name a model: demo, a hub id, or a folder.")
    outside_path(name, "the model", look=False)
    return str(confined(name)) if name not in NAMED and is_path(name) else name


def model_titles(names: Iterable[str]) -> dict[str, str]:
    """What several models are called; where two have one title, it is followed by the folder that the model is in."""
    titles = {name: model_title(name) for name in names}
    counts = Counter(titles.values())
    return {n: f"{title}, in {Path(n).parent}" if counts[title] > 1 else title for n, title in titles.items()}


def classifier(view: View) -> Classifier:
    """The model of a view, which must answer with classes: a ``ModelError`` otherwise."""
    clf = model(view)
    clf.check_classes()
    return cast("Classifier", clf)


def model(view: View) -> TransformerModel:
    """The model of a view. All sessions share it, which is safe because masks are arguments."""
    if "imports" not in _settled:
        with st.spinner("Loading torch and transformers, once after the start …"):
            settle()
    key = _loading(view)
    with nullcontext() if key in _models else st.spinner("Loading the model …", show_time=True):
        return _models.get(key, lambda: _model(key))


def loaded(view: View) -> TransformerModel | None:
    """The model of a view if it is in memory; it is not loaded for this."""
    try:
        return _models.peek(_loading(view))
    except UserError:
        return None


def _loading(view: View) -> Keywords:
    """What ``headviz.load`` is called with, as a key."""
    return (("name", model_name(view.model)), *view.loading.items())


def _model(loading: Keywords) -> TransformerModel:
    clf: Any = headviz.load(**dict(loading))
    return clf


def free_memory() -> str:
    """Drop what was used least recently, one kind at a time, caches before models; says what was dropped."""
    for memo, keep, name in ((_evaluators, 1, "evaluations"), (_models, 1, "models"), (_evaluators, 0, "evaluations")):
        if count := memo.drop(keep):
            gc.collect()
            return f"{count} {name if count > 1 else name[:-1]}"
    return ""


@dataclass(frozen=True)
class Shape:
    """The grid and labels of a model, read from its configuration without torch."""

    present: HeadMask
    labels: tuple[str, ...]
    stacks: tuple[tuple[str, int], ...] = ()  # (name, layers) where there are several, down the grid
    job: str = "class"

    @property
    def size(self) -> str:
        return f"{self.present.num_layers}×{self.present.num_heads}"

    @property
    def answer(self) -> Answer:
        return answer_named(self.job)

    @property
    def scores(self) -> tuple[str, ...]:
        """The names of the scores that the model has."""
        return names_for(self.answer)

    @property
    def rows(self) -> tuple[str, ...] | None:
        """The names of the grid's rows; None where they are plain layers."""
        return tuple(f"{name} {i}" for name, layers in self.stacks for i in range(layers)) or None

    @property
    def ranges(self) -> dict[str, range]:
        """Each stack's rows in the grid."""
        ends = list(accumulate((layers for _, layers in self.stacks), initial=0))
        return {name: range(a, b) for (name, _), a, b in zip(self.stacks, ends, ends[1:], strict=False)}


def shape(view: View) -> Shape:
    """Grid and labels of the model. It is loaded only if there is no local configuration."""
    folder = _folder(model_name(view.model))
    if folder is None:
        return _shape_of_model(model(view))
    shape = _shape_of_folder(str(folder))
    shape = replace(shape, job=view.job) if view.job in ANSWERS else shape
    return shape if view.class_names is None else replace(shape, labels=view.class_names)


def _folder(name: str) -> Path | None:
    if name in NAMED:
        return Path(demo_folder(NAMED[name]))
    path = Path(name)
    if not path.is_dir() or not (path / "config.json").is_file() or (path / "headviz.json").exists():
        return None
    try:
        return path if names_sizes(read_json(path / "config.json", name)) else None
    except UserError:
        return path  # whoever reads it next says so


@st.cache_data(max_entries=16, show_spinner=False)
def _shape_of_folder(folder: str) -> Shape:
    return Shape(*shape_of(Path(folder)))


def _shape_of_model(clf: TransformerModel) -> Shape:
    several = len(clf.stacks) > 1
    stacks = tuple((n, len(r)) for n, r in clf.stacks.items()) if several else ()
    return Shape(clf.present, clf.classes or (), stacks, clf.job)


def rows_of(clf: TransformerModel) -> tuple[str, ...] | None:
    """The names of the rows of a loaded model's grid; None where they are plain layers."""
    return clf.row_names or None


def dataset(view: View, split: str = "dev") -> Dataset:
    """The view's data: a seeded subset of one split."""
    with naming(tab_closed()):
        key = _reading(view, split)
        return _datasets.get(key, lambda: _dataset(key))


def dataset_size(view: View) -> int | None:
    """The number of dev examples, if they have been loaded already."""
    data = _datasets.peek(_reading(view, "dev"))
    return None if data is None else len(data)


def _reading(view: View, split: str) -> Keywords:
    """What ``headviz.load_task`` is called with, as a key; the whole of any split but dev."""
    folder = view.data
    if folder:
        folder = str(uploads()[folder]) if folder in uploads() else _folder_of(folder)
    limit = view.limit if split == "dev" else 0
    return (("name", view.task), *replace(view, data=folder, limit=limit).reading(split).items())


def _folder_of(place: str) -> str:
    if is_gone(place) and not Path(place).exists():
        raise TaskError(f"The upload '{place}' is not on this machine. Upload its table again: Data & model, Upload.")
    return str(confined(place))


def require_source(view: View) -> None:
    """Refuse a task or a place of data that does not exist, before anything is read."""
    get_task(view.task)
    if view.data and view.data not in uploads() and not Path(_folder_of(view.data)).exists():
        raise TaskError(f"There is no folder or file '{view.data}'. Choose other data: Data & model.")


def require_fit(view: View) -> None:
    """Refuse data that ask for another kind of answer than the model's. It is loaded only where it may not fit."""
    try:
        fits = dataset(view).answer.job in shape(view).answer.reads
    except UserError:  # a page that needs data which cannot be read says why
        return
    if not fits:
        check(model(view), dataset(view))


def part(view: View, split: str) -> Dataset:
    """Another split of the shipped data, of the same size."""
    shipped = View(task=view.task, limit=view.limit, seed=view.seed)
    key = (("name", view.task), *shipped.reading(split).items())
    return _datasets.get(key, lambda: _dataset(key))


def train(view: View) -> Dataset:
    """The whole training split, on which scores are computed. Fails if the task has none."""
    return dataset(view, "train")


def _dataset(reading: Keywords) -> Dataset:
    return headviz.load_task(**dict(reading))


@dataclass(frozen=True)
class StandInChoice:
    """What stands in the place of heads that are off, and the view on whose training examples it is measured."""

    stand_in: StandIn
    view: View


def evaluator(clf: Classifier, data: Dataset, choice: StandInChoice | None = None, **keywords: Any) -> Evaluator:
    """The evaluator of a model on some data, shared by all sessions; ``keywords`` are progress and cancel of making
    it."""
    from ...evaluation.evaluator import EvaluatorOptions

    exact = choice is not None and choice.view.exact
    key: tuple[object, ...] = (*identity(clf), str(clf.device), data.digest, exact)
    keywords |= {"options": EvaluatorOptions(precision="float32")} if exact else {}
    if choice is not None and choice.stand_in.kind != ZERO:
        drawn = reference(choice.view, choice.stand_in)
        key = (*key, choice.stand_in, drawn.digest)
        keywords = {**keywords, "ablation": choice.stand_in, "reference": drawn}
    return _evaluators.get(key, lambda: headviz.evaluator_of(clf, data, **keywords))


def reference(view: View, stand_in: StandIn) -> Dataset:
    """The training examples on which is measured what stands in the place of heads."""
    return headviz.sample(train(view), stand_in.examples, seed=stand_in.seed, length_filter=None)


def check(clf: Model, data: Dataset) -> None:
    """Refuse a model and data that do not fit together. Faster than making an evaluator."""
    from ...evaluation.dispatch import check_fit

    check_fit(clf, data)


def mismatch(clf: Model, data: Dataset) -> str:
    """Why this model cannot be evaluated on these data; empty if it can."""
    try:
        check(clf, data)
    except UserError as error:
        return on_page(error)
    return ""


def deciding(clf: Classifier, data: Dataset) -> Answer:
    """What decides about one text: the model's answer, with the data's thresholds where the data are for it."""
    order = None if not data.task.thresholds or mismatch(clf, data) else data.answer.order(clf, data, None)
    return clf.answer if order is None else data.answer.in_outputs(order)


def cost(clf: TransformerModel, mask: HeadMask | None = None) -> Cost:
    """Parameters and FLOPs under a mask. Kept, because counting them visits all modules."""
    return _costs.get((clf.digest, mask and mask.hex), lambda: clf.cost(mask))


# ---- importing torch takes seconds: done while the user reads the first page

_HEAVY = ("headviz.models.loading", "headviz.evaluation.evaluator", "headviz.scores.scoring")
_warming = threading.Event()
_settled: Memo[bool] = Memo(1)


def warm_up() -> None:
    """Import torch and transformers in the background, once per process."""
    if _warming.is_set() or os.environ.get("HEADVIZ_WARM") == "0":
        return
    _warming.set()
    in_background(settle, "headviz-warm")


def settle() -> None:
    """Import torch and transformers, then hide their objects from the garbage collector.

    With them a full collection takes a quarter of a second; without them, a few milliseconds.
    """
    _settled.get("imports", _import_heavy)


def _import_heavy() -> bool:
    wait_briefly()
    for name in _HEAVY:
        import_module(name)
    gc.collect()
    gc.freeze()
    return True


# ---- what the process takes, and how room is made

LIMIT = "HEADVIZ_MEMORY"  # GiB that the dashboard may take
GIB = 2**30


def memory_sentence() -> str:
    return (
        f"This dashboard takes {memory_taken() / GIB:.1f} of at most {memory_limit() / GIB:.1f} GiB of memory "
        f"({LIMIT} sets that). "
        f"All its visitors together have at most {MODELS} models, {DATASETS} data sets, {EVALUATORS} evaluators "
        f"with 1 GB of states each, and {BYTES // 2**20} MB of results; what was used longest ago goes first."
    )


def memory_taken() -> int:
    return int(psutil.Process().memory_info().rss)


def memory_limit() -> int:
    """Bytes that the process may take: what the user allows, else what the machine or its container has."""
    with suppress(ValueError, OverflowError):
        return int(float(os.environ.get(LIMIT, "")) * GIB)
    total = int(psutil.virtual_memory().total)
    with suppress(OSError, ValueError):
        total = min(total, int(Path("/sys/fs/cgroup/memory.max").read_text()))
    return total


def fits(need: int) -> bool:
    """Whether so many more bytes are within the limit."""
    return memory_taken() + need <= memory_limit()


def make_room(need: int, what: str) -> None:
    """Drop what was used least recently until ``need`` more bytes fit; refuse where they never do."""
    dropped = []
    if not fits(need):
        give_back()
    while not fits(need) and (freed := free_memory()):
        dropped.append(freed)
        give_back()
    if dropped:
        state.notify(f"To make room for {what}, {', '.join(dropped)} used before went from memory.")
    if not fits(need):
        raise OptionError(
            f"{what[0].upper()}{what[1:]} needs about {need / GIB:.1f} GiB, and {memory_taken() / GIB:.1f} of "
            f"{memory_limit() / GIB:.1f} GiB are taken. Shorten the text, take a smaller model, or set {LIMIT} to more."
        )
