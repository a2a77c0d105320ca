"""The plan of a pruning run: one frozen, checked record that can be written as JSON."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .. import plugins
from ..errors import OptionError, seed_number, whole_number
from ..heads import LEAST_STEP
from ..models.stand_in import ABLATIONS, EXAMPLES, ZERO, StandIn
from ..models.text_length import LENGTH
from ..results import plain
from ..scores.catalogue import SCORES, TO_PRUNE_BY, Score
from ..tasks import DEFAULT_SAMPLES
from .algorithms import ALGORITHMS, NOTHING, REPAIRS
from .options import FinetuneOptions, Source, choice, read_options, share, tuples, without_repeats
from .sizes import FULL, TARGET

if TYPE_CHECKING:
    from ..models.classifier import Classifier

LENGTH_FILTERS = ("quantile", "std", "none")
KEEP_MODELS = ("last", "all")
SCORE_SOURCES = ("fine-tuned", "masked-lm")
INITIALISATIONS = ("pretrained", "random")
DRAWN, BY_PLACE = "random", "place"
LAST_STEPS = (TARGET, FULL)
BESIDE_THE_PLAN = ("digests", "plugins")  # what a run's spec holds besides its plan
# options added later -> what a stored plan without them means; a plan with this value is stored without it
ADDED: dict[str, Any] = {
    "job": None,
    "stack": None,
    "prefix": None,
    "languages": None,
    "last_step": FULL,
    "ablation": ZERO,
    "reference": EXAMPLES,
    "ties": BY_PLACE,
}


@dataclass(frozen=True)
class PruningPlan(Source):
    """A whole run: on what, by which algorithm, how far, with which seeds. ``model`` is θ*, the fine-tuned classifier.

    ``step`` is the share κ of all heads (of the remaining ones for ``isp``) that each step removes. The last step
    ends at ``until``; with ``last_step="full"`` it is as large as the others, so the run ends at the first sparsity
    that is not below ``until``. ``sparsities`` replaces step and until by a list, such as (0.3, 0.5, 0.7, 0.9).
    The plan does not say where results go: that is the context's folder.

    >>> import headviz
    >>> plan = headviz.PruningPlan("demo", "demo", "isp", score="magnitude", step=0.25)
    >>> plan.score, plan.until
    ('magnitude', 0.9)
    """

    algorithm: str
    score: str = ""  # empty = the usual one, or the algorithm's own
    base: str | None = None  # θ0: the pre-trained encoder; algorithms that retrain need one
    base_revision: str | None = None

    train_split: str = "train"
    dev_split: str = "dev"
    train_limit: int | None = None  # examples to fine-tune on; None = all
    dev_limit: int | None = None

    step: float = 0.1
    until: float = 0.9
    last_step: str = TARGET
    sparsities: tuple[float, ...] | None = None
    keep_per_layer: int = 0
    ties: str = DRAWN  # of heads with the same score, from the seed; "place": by layer and head, as in older plans
    seeds: tuple[int, ...] = (0,)
    samples: int = DEFAULT_SAMPLES  # examples to score on, balanced over the classes
    length_filter: str = "quantile"
    score_source: str = "fine-tuned"  # or "masked-lm": scores of θ0 on its own task, filling in masked words
    score_options: tuple[tuple[str, Any], ...] = ()  # further options of the score, such as (("steps", 8),)

    repair: str = ""  # of the kept weights, right after heads are removed; empty = the algorithm's own
    repair_samples: int = 512
    finetune: FinetuneOptions | None = None  # None = the base model's own recipe, else the thesis's
    initialisation: str = "pretrained"  # of retrained networks; "random": tickets are then called matching
    retrain_full: bool = True  # also fine-tune the unpruned θ0 with every seed; winning tickets need it
    keep_models: str = "last"  # of each seed: the last step's model, or those of all steps

    ablation: str = ZERO  # what stands in the place of removed heads; a mean or a constant becomes a bias of W_O
    reference: int = EXAMPLES  # training examples on which that is measured

    flops_length: int = LENGTH  # tokens of the text for which FLOPs are counted

    stack: str | None = None  # of a translation model: remove heads of this stack only; shares are of its heads
    prefix: str | None = None  # put before every source, as T5 needs it
    languages: tuple[str, ...] | None = None  # source and target, for models with several languages

    def __post_init__(self) -> None:
        super().__post_init__()
        tuples(self, "sparsities", "seeds", "languages")
        options = self.score_options
        pairs = options.items() if isinstance(options, Mapping) else options
        object.__setattr__(self, "score_options", tuple(sorted((str(k), v) for k, v in pairs)))
        algorithm = ALGORITHMS.get(self.algorithm)
        if algorithm is not None:
            usual = masked_lm_scores()[0] if self.score_source == "masked-lm" else TO_PRUNE_BY
            object.__setattr__(self, "score", self.score or algorithm.only_score or usual)
            object.__setattr__(self, "repair", self.repair or algorithm.default_repair)
        if isinstance(self.finetune, Mapping):
            object.__setattr__(self, "finetune", FinetuneOptions.from_dict(self.finetune))
        self._check()

    def _check(self) -> None:
        if self.algorithm not in ALGORITHMS:
            raise OptionError(plugins.unknown("algorithm", self.algorithm, ALGORITHMS))
        if not isinstance(self.score, str) or not self.score.strip():
            raise OptionError("The plan needs a score.")
        choice(self.repair, "repair", REPAIRS)
        choice(self.length_filter, "length_filter", LENGTH_FILTERS)
        choice(self.keep_models, "keep_models", KEEP_MODELS)
        choice(self.last_step, "last_step", LAST_STEPS)
        choice(self.score_source, "score_source", SCORE_SOURCES)
        choice(self.initialisation, "initialisation", INITIALISATIONS)
        choice(self.ablation, "ablation", ABLATIONS)
        choice(self.ties, "ties", (DRAWN, BY_PLACE))
        if self.ablation != ZERO:
            _check_ablation(self.ablation, self.algorithm, self.repair)
        if self.score_source == "masked-lm":
            _check_masked_lm(self.algorithm, self.score)
        share(self.step, "step")
        share(self.until, "until")
        if self.step < LEAST_STEP:
            raise OptionError(
                f"A step of {self.step:g} never removes a head, or takes thousands of steps. "
                f"Give a share of at least {LEAST_STEP:g}, such as 0.1."
            )
        if self.until == 0:
            raise OptionError("A target sparsity of 0 removes nothing. Give a share of the heads, such as 0.9.")
        if self.sparsities is not None:
            _check_sparsities(self.sparsities, self.algorithm)
        without_repeats(self.seeds, "seed")
        for seed in self.seeds:
            seed_number(seed)
        for name, least in (
            ("samples", 1),
            ("repair_samples", 1),
            ("reference", 1),
            ("flops_length", 1),
            ("keep_per_layer", 0),
        ):
            whole_number(getattr(self, name), name, least)
        for name in ("train_limit", "dev_limit"):
            if getattr(self, name) is not None:
                whole_number(getattr(self, name), name, 1)

    def rows(self, clf: Classifier) -> range:
        """The rows of the grid from which heads are removed: all, or those of one stack of the model."""
        if self.stack is None:
            return range(clf.num_layers)
        if self.stack not in clf.stacks:
            raise OptionError(f"'{clf.name}' has no stack '{self.stack}'. Its stacks: {', '.join(clf.stacks)}.")
        return clf.stacks[self.stack]

    def to_dict(self) -> dict[str, Any]:
        """JSON's own types; ``from_dict`` reads them back to an equal plan."""
        out: dict[str, Any] = plain(dataclasses.asdict(self))
        out["score_options"] = plain(dict(self.score_options))
        for name, before in ADDED.items():  # left out, so that older plans keep their digest
            if out[name] == before:
                del out[name]
        return out

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> PruningPlan:
        """The inverse of ``to_dict``. An option that a stored plan lacks means what it meant when it was written."""
        return cls.from_options({**ADDED, **stored} if isinstance(stored, Mapping) else stored)

    @classmethod
    def from_options(cls, given: Mapping[str, Any]) -> PruningPlan:
        """A new plan from options by name; those left out take their defaults."""
        return read_options(cls, given, "option of a pruning plan")

    @property
    def digest(self) -> str:
        """Identifies the plan; a state belongs to one plan."""
        return hashlib.sha256(json.dumps(self.to_dict(), sort_keys=True).encode()).hexdigest()


def _check_sparsities(sparsities: tuple[float, ...], algorithm: str) -> None:
    if ALGORITHMS[algorithm].of_remaining:
        raise OptionError(
            f"'{algorithm}' takes a share of the remaining heads each round, so its sparsities follow from the step: "
            "give step and until instead of sparsities."
        )
    for s in sparsities:
        share(s, "A sparsity")
    if not sparsities or sparsities[0] == 0 or list(sparsities) != sorted(set(sparsities)):
        raise OptionError(f"Sparsities must rise and lie above 0, such as 0.3,0.5,0.7; got {list(sparsities)}.")


def _check_ablation(ablation: str, algorithm: str, repair: str) -> None:
    if StandIn(ablation).of_the_text:
        raise OptionError(StandIn(ablation).refusal())
    if ALGORITHMS[algorithm].retrains:
        raise OptionError(
            f"'{algorithm}' trains the network after heads are removed, which finds what their place needs. "
            "Choose ablation zero."
        )
    if repair != NOTHING:
        raise OptionError(
            f"Repair '{repair}' and ablation '{ablation}' both fill the place of removed heads. Choose one of them."
        )


def _check_masked_lm(algorithm: str, score: str) -> None:
    if ALGORITHMS[algorithm].scores_trained or ALGORITHMS[algorithm].only_score:
        fit = ", ".join(a.name for a in ALGORITHMS.values() if not a.scores_trained and not a.only_score)
        raise OptionError(
            f"'{algorithm}' scores models that it has fine-tuned, which have no masked-language head. "
            f"To score θ0 at its own task (--score-source masked-lm, score_source='masked-lm') choose one of: {fit}."
        )
    require_of_masked_words(score)


def masked_lm_scores() -> tuple[str, ...]:
    """The scores that are measured on a masked-language model, those of plugins that are loaded among them."""
    return tuple(s.name for s in SCORES.values() if s.of_masked_words)


def require_of_masked_words(score: str) -> Score:
    """The score of this name; an ``OptionError`` if it is not measured on a masked-language model."""
    if score not in SCORES or not SCORES[score].of_masked_words:
        raise OptionError(
            f"Score '{score}' is not defined on a masked-language model here. Choose one of: "
            f"{', '.join(masked_lm_scores())}."
        )
    return SCORES[score]
