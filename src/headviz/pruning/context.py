"""What a run works on: loaded models and data, and the folder for its files."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import ModelError, OptionError, TaskError
from ..evaluation.stand_ins import standing_in
from ..models import NAMED
from ..models.loading import load
from ..models.saving import require_bias
from ..models.stand_in import ZERO
from ..storage.store import default_store
from ..tasks import Dataset, sample
from .algorithms import ALGORITHMS
from .finetuning import examples_of, randomised, recipe_of
from .options import FinetuneOptions
from .plan import PruningPlan
from .state import model_folder

if TYPE_CHECKING:
    from ..models.classifier import Classifier
    from ..storage.store import Store
    from .state import StepRecord


# (clf, data, score, *, mask, seed, options, label_order, progress, cancel) -> what has ``values`` [L, H], NaN = not
# measured: the scores of the heads under a mask (None = all heads) on exactly these examples
ScoreFunction = Callable[..., Any]


@dataclass
class Context:
    """Made by ``open_context``; other callers may make one with their own models and score function.

    ``load_base(seed)`` gives θ0 with the fresh head of that seed. Trained models and the checkpoints of a running
    training go into ``folder``; nothing outside it is written.
    """

    folder: Path
    clf: Classifier  # θ*
    train: Dataset
    dev: Dataset
    load_base: Callable[[int], Classifier] | None = None
    load_masked_lm: Callable[[], Classifier] | None = None  # θ0 with its masked-language head
    score: ScoreFunction | None = None  # None = the table of headviz.scores
    recipe: FinetuneOptions | None = None  # for plans without options of their own
    pool: Dataset | None = None  # what samples for scoring and repairing are drawn from; None = train
    store: Store | None = None  # shares full models between runs that train them in the same way; None = not shared
    _samples: dict[tuple[int, int, str], Dataset] = field(default_factory=dict)
    _trained: dict[int, Classifier] = field(default_factory=dict)  # of each seed the last one
    memory: dict[Any, Any] = field(default_factory=dict)  # what can be used again for the next mask

    def __post_init__(self) -> None:
        self.folder, self.dev = Path(self.folder), self.clf.answer.judged(self.dev)

    # data -------------------------------------------------------------------------------------

    def sample(self, plan: PruningPlan, seed: int, count: int) -> Dataset:
        """A balanced sample of the training split; equal seeds give equal samples."""
        key = (seed, count, plan.length_filter)
        if key not in self._samples:
            lengths = None if plan.length_filter == "none" else self.clf.tokenizer
            drawn = sample(self.pool or self.train, count, seed, plan.length_filter, lengths)
            report = drawn.report
            per_class = {} if report is None else report.per_class
            if count < len(per_class):
                raise OptionError(
                    f"A balanced sample of {count} cannot hold an example of each of {len(per_class)} classes. "
                    f"Ask for at least {len(per_class)} examples."
                )
            empty = [name for name, examples in per_class.items() if examples == 0]
            if report is not None and empty:
                narrow = plan.length_filter != "none"
                widen = "Switch the length filter off (length_filter 'none'), or give" if narrow else "Give"
                raise TaskError(
                    f"The balanced sample has no example of {', '.join(empty)}: {report.text()} "
                    f"{widen} more training examples."
                )
            self._samples[key] = drawn
        return self._samples[key]

    def digest(self, name: str, plan: PruningPlan) -> str:
        """Identifies the "model" θ*, the "base" θ0 with the first seed's head, or all "data" that a run reads."""
        if name == "data":
            parts = (self.train, self.dev, self.pool or self.train)
            return hashlib.sha256("".join(data.digest for data in parts).encode()).hexdigest()
        return (self.base(plan.seeds[0]) if name == "base" else self.clf.filled(None)).digest

    # models -----------------------------------------------------------------------------------

    def reuse(self, name: str, key: Any, make: Callable[[], Any]) -> Any:
        """The result of ``make``. For each name the last one is kept in memory, with its key."""
        entry = self.memory.get(name)
        if entry is None or entry[0] != key:
            entry = self.memory[name] = None  # frees it before the next one is made
            entry = self.memory[name] = (key, make())
        return entry[1]  # not from the memory: another thread may have replaced it there

    def base(self, seed: int) -> Classifier:
        """θ0 with the fresh head of a seed."""
        load_base = self.load_base
        if load_base is None:
            raise OptionError("This algorithm retrains and needs a pre-trained base model (--base, base=).")
        return self.reuse("base", seed, lambda: load_base(seed))

    def masked_lm(self) -> Classifier:
        """θ0 with its masked-language head."""
        if self.load_masked_lm is None:
            raise OptionError("Masked-language scores need the pre-trained model: name it (--base, base=).")
        return self.reuse("masked-lm", None, self.load_masked_lm)

    def keep_trained(self, seed: int, step: int, clf: Classifier) -> str:
        """Write a trained model and keep it in memory; returns its folder, relative to the context's."""
        place = model_folder(self.folder, seed, step)
        if place.exists():
            shutil.rmtree(place)  # left by a step that was killed before its record
        clf.save(place)
        self._trained[seed] = clf
        return place.relative_to(self.folder).as_posix()

    def trained(self, record: StepRecord) -> Classifier | None:
        """The model that a step trained; None if its folder is gone or holds other weights."""
        clf: Any = self._trained.get(record.seed)
        if clf is not None and clf.digest == record.model_digest:
            return clf
        if record.model is None:
            return None
        try:
            clf = load(self.folder / record.model, device=self.clf.device)
        except ModelError:
            return None
        if clf.digest != record.model_digest:
            return None
        self._trained[record.seed] = clf
        return clf


def open_context(plan: PruningPlan, folder: str | Path) -> Context:
    """Load all models and data of a plan; an ``OptionError`` if the base model is missing."""
    base = base_of(plan)
    clf = reading(plan, plan.classifier())
    train = plan.dataset(plan.train_split, plan.train_limit)
    dev = plan.dataset(plan.dev_split, plan.dev_limit)
    if plan.ablation != ZERO:
        reference = sample(train, plan.reference, seed=0, length_filter=None)
        clf = standing_in(clf, plan.ablation, reference, label_order=plan.label_order)
        require_bias(clf)  # of which every run ends in a masked export
    if base is None:
        return Context(Path(folder), clf, train, dev)

    def load_base(seed: int) -> Classifier:
        labels = clf.classes  # None for a translation model: it has no head to replace
        head: Any = {} if labels is None else {"fresh_labels": labels, "job": clf.job}
        model: Any = load(base, revision=plan.base_revision, device=plan.device, seed=seed, **head)
        model = reading(plan, model)
        return model if plan.initialisation == "pretrained" else randomised(model, seed)

    def load_masked_lm() -> Classifier:
        return load(base, revision=plan.base_revision, device=plan.device, masked_lm=True)

    pool, examples = train, examples_of(base)
    of_recipe = plan.train_limit is None and plan.data is None
    if examples is not None and of_recipe and ALGORITHMS[plan.algorithm].retrains:
        train = plan.dataset(plan.train_split, examples)
    store = default_store()
    return Context(
        Path(folder), clf, train, dev, load_base, load_masked_lm, recipe=recipe_of(base), pool=pool, store=store
    )


def reading(plan: PruningPlan, clf: Classifier) -> Classifier:
    """A translation model with the plan's prefix and languages."""
    if plan.prefix is None and plan.languages is None:
        return clf
    return clf.reading(plan.prefix, plan.languages)


def base_of(plan: PruningPlan) -> str | None:
    """θ0 of a plan: the named one, else that of a shipped model; None if none is needed."""
    if not ALGORITHMS[plan.algorithm].retrains and plan.score_source == "fine-tuned":
        return None
    shipped = f"{plan.model}-pretrained"
    base = plan.base or (shipped if shipped in NAMED else None)
    if base is None:
        if plan.score_source != "fine-tuned":
            raise OptionError(
                "Masked-language scores need the pre-trained model: name it (--base, base=).", options=("base",)
            )
        retrain = ", ".join(a.name for a in ALGORITHMS.values() if a.retrains)
        raise OptionError(
            f"'{plan.algorithm}' retrains the pruned network from pre-trained weights: name them (--base, base=). "
            f"The algorithms {retrain} need it; the others do not.",
            options=("base",),
        )
    return base
