"""The plan of a pruning run: one frozen, checked record that can be written as JSON."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import count, takewhile
from typing import TYPE_CHECKING, Any, ClassVar

from ..errors import LARGEST_SEED, Note, OptionError, is_one_of
from ..heads import LEAST_STEP
from ..models import LENGTH
from ..models.source import LANGUAGES, PREFIX, Source
from ..models.stand_in import ABLATIONS, CONSTANT, EXAMPLES, MEAN, ZERO, StandIn
from ..options import option
from ..scores.catalogue import TO_PRUNE_BY, of_masked_words, require_of_masked_words
from ..tasks import DEFAULT_SAMPLES
from .algorithms import ALGORITHMS, NOTHING, REPAIRS
from .options import FinetuneOptions

if TYPE_CHECKING:
    from ..models.classifier import Classifier


# How many heads are off after each step, computed from the plan alone --------------------------


TARGET, FULL = "target", "full"  # where the last step ends: at the target, or a whole step on, not below it


def cumulative(
    total: int, step: float, until: float, keep_per_layer: int = 0, layers: int = 1, last: str = FULL
) -> list[int]:
    """round(k·κ·N) heads off after step k, up to the target.

    Halves go to the even number, as in Python's ``round``. ``keep_per_layer`` caps the last size.
    """
    removable = _removable(total, until, keep_per_layer, layers)
    kappa, target = _exact(step), _exact(until) * total
    if kappa * total < 1:
        least = -(-100_000 // total) / 100_000
        raise OptionError(
            f"A step of {step:g} is less than one of {total} heads. Give at least {least:g}, one head a step."
        )
    return _up_to(target, last, (min(round(k * kappa * total), removable) for k in count(1)))


def remaining(
    total: int, step: float, until: float, keep_per_layer: int = 0, layers: int = 1, last: str = FULL
) -> list[int]:
    """max(1, round(κ·left)) heads more off in each round, up to the target."""
    removable = _removable(total, until, keep_per_layer, layers)
    kappa, target = _exact(step), _exact(until) * total

    def rounds() -> Iterator[int]:
        off = 0
        while True:
            off = min(off + max(1, round(kappa * (total - off))), removable)
            yield off

    return _up_to(target, last, rounds())


def _up_to(target: Fraction, last: str, sizes: Iterable[int]) -> list[int]:
    """The sizes below the target and one more: the target in whole heads, or the first size that is not below it."""
    if last == TARGET:
        end = max(1, round(target))
        return [*takewhile(lambda size: size < end, sizes), end]
    reached = []
    for size in sizes:
        reached.append(size)
        if size >= target:
            break
    return reached


def listed(total: int, sparsities: tuple[float, ...], keep_per_layer: int = 0, layers: int = 1) -> list[int]:
    """round(s·N) heads off at each sparsity of a list."""
    removable = _removable(total, 0.0, keep_per_layer, layers)
    sizes = [round(_exact(s) * total) for s in sparsities]
    if sizes[-1] > removable:
        _removable(total, sparsities[-1], keep_per_layer, layers)
    if sizes[0] < 1 or len(set(sizes)) < len(sizes):
        raise OptionError(
            f"With {total} heads the sparsities {', '.join(f'{s:g}' for s in sparsities)} mean {sizes} heads off: "
            "each must remove at least one head more than the one before."
        )
    return sizes


def beyond(total: int, sizes: list[int], until: float) -> list[str]:
    """A note if a step ends at the target's whole heads, yet below its share, so that one more step follows."""
    if len(sizes) < 2 or sizes[-2] != round(_exact(until) * total):
        return []
    size, last = sizes[-2:]
    text = (
        f"{size} of {total} heads are {size / total:.2%}, a little below {{target}}, so one more step follows, to "
        f"{last} heads ({last / total:.0%})."
    )
    note = f"{text.format(target=f'the target of {until:g}')} To end at {size} heads, choose last_step '{TARGET}'."
    return [Note(note, code="one-more-step", text=text, until=until)]


def _exact(value: float) -> Fraction:
    """The fraction of the decimal text, not of the binary float: 3 · 0.1 of 10 heads must be exactly 3 heads."""
    return Fraction(repr(float(value)))


def _removable(total: int, until: float, keep_per_layer: int, layers: int) -> int:
    per_layer = total // layers
    if keep_per_layer > per_layer:
        raise OptionError(
            f"keep_per_layer is {keep_per_layer}, but a layer has only {per_layer} heads.",
            code="more-than-a-layer",
            keep_per_layer=keep_per_layer,
            per_layer=per_layer,
        )
    removable = total - layers * keep_per_layer
    if _exact(until) * total > removable:
        most = 1000 * removable // total / 1000  # rounded down, so that it is accepted
        but = (
            f"removes {round(_exact(until) * total)} of {total} heads, but keeping {keep_per_layer} per layer allows "
            f"{removable}. Choose at most"
        )
        raise OptionError(
            f"A target sparsity of {until:g} {but} {most:g}, or keep fewer.",
            code="more-than-removable",
            until=until,
            most=most,
            but=but,
        )
    return removable


# -----------------------------------------------------------------------------------------------


LENGTH_FILTERS = {"none": "of any length", "quantile": "of usual length", "std": "within one sd"}
KEEP_MODELS = {"last": "the last step's", "all": "those of every step"}
SCORE_SOURCES = {"fine-tuned": "the fine-tuned model", "masked-lm": "the pre-trained model, filling in words"}
INITIALISATIONS = {"pretrained": "pre-trained weights", "random": "random weights"}
DRAWN, BY_PLACE = "random", "place"
LAST_STEPS = {TARGET: "at that share", FULL: "after a whole step"}
SPEC_ONLY = ("digests", "plugins")  # what a run's spec holds besides its plan


@dataclass(frozen=True)
class PruningPlan(Source):
    """A whole run: on what, by which algorithm, how far, with which seeds. ``model`` is θ*, the fine-tuned classifier.

    ``step`` is the share κ of all heads (of the remaining ones for ``isp``) that each step removes. The last step
    ends at ``until``; with ``last_step="full"`` it is as large as the others, so the run ends at the first sparsity
    that is not below ``until``. ``sparsities`` replaces step and until by a list, such as (0.3, 0.5, 0.7, 0.9).
    The plan does not say where results go: that is the context's folder. ``before`` is what a stored plan without the
    option means: a plan with this value is stored without it, so that older plans keep their digest.

    >>> import headviz
    >>> plan = headviz.PruningPlan("demo", "demo", "isp", score="magnitude", step=0.25)
    >>> plan.score, plan.until
    ('magnitude', 0.9)
    """

    called: ClassVar[str] = "option of a pruning plan"

    algorithm: str = option(help="how heads are chosen", choices=ALGORITHMS, metavar="NAME")
    score: str = option("", "the heads' score, such as taylor", usual=f"{TO_PRUNE_BY}, or the algorithm's own")
    base: str | None = option(
        None,
        "pre-trained model θ0, for algorithms that retrain: a folder or a hub id",
        title="Pre-trained model θ0",
        metavar="BASE",
    )
    base_revision: str | None = option(None, "branch, tag or commit of the base model", metavar="R")

    train_split: str = option("train", "split to score on and to train on", flag="")
    dev_split: str = option("dev", "split to evaluate on", flag="")
    train_limit: int | None = option(None, "examples to fine-tune on", least=1, usual="all", metavar="N")
    dev_limit: int | None = option(None, "examples to evaluate on", least=1, usual="all", metavar="N")

    step: float = option(
        0.1,
        "share of the heads that each step removes",
        least=0,
        most=1,
        title="Each step removes, % of heads",
        percent=True,
    )
    until: float = option(0.9, "sparsity to stop at", least=0, most=1, title="Up to, % of heads", percent=True)
    last_step: str = option(
        TARGET, "ends at --until, or after a whole step", LAST_STEPS, title="The last step ends", before=FULL
    )
    sparsities: tuple[float, ...] | None = option(
        None,
        "a list of sparsities instead of step and until",
        least=0,
        most=1,
        title="Only at these shares, %",
        percent=True,
    )
    keep_per_layer: int = option(0, "heads that every layer keeps", title="Heads each layer keeps", metavar="N")
    ties: str = option(
        DRAWN,
        "of heads with the same score: drawn from the seed, or by layer and head",
        (DRAWN, BY_PLACE),
        flag="",
        before=BY_PLACE,
    )
    seeds: tuple[int, ...] = option(
        (0,), "one run over several seeds", most=LARGEST_SEED, each="seed", title="Seeds", metavar="0,1,2"
    )
    samples: int = option(
        DEFAULT_SAMPLES,
        "examples to score on, balanced over the classes",
        least=1,
        title="Examples to score on",
        metavar="N",
    )
    length_filter: str = option("none", "lengths of those examples", LENGTH_FILTERS, title="Texts to score on")
    score_source: str = option(
        "fine-tuned",
        "model that is scored; masked-lm is θ0 at its own task",
        SCORE_SOURCES,
        title="Model that is scored",
    )
    score_options: tuple[tuple[str, Any], ...] = option(
        (), "a further option of the score", flag="score-option", metavar="NAME=VALUE"
    )

    repair: str = option(
        "", "mend the kept weights after removal", REPAIRS, usual="the algorithm's own", title="Repair after removal"
    )
    repair_samples: int = option(512, "examples to repair on", least=1, metavar="N")
    finetune: FinetuneOptions | None = option(
        None, "the training; without it the base model's own recipe, else the thesis's", flag=""
    )
    initialisation: str = option("pretrained", "weights of retrained networks", INITIALISATIONS, title="Retrained from")
    retrain_full: bool = option(
        True,
        "fine-tune the unpruned model as well; winning tickets need it",
        flag="no-full",
        title="Train the full model too",
    )
    keep_models: str = option("last", "which trained models stay on disk", KEEP_MODELS, title="Models kept")

    ablation: str = option(
        ZERO,
        "what stands in the place of removed heads; mean and constant become a bias",
        (ZERO, MEAN, CONSTANT),
        before=ZERO,
    )
    reference: int = option(
        EXAMPLES, "training examples on which that is measured", least=1, before=EXAMPLES, metavar="N"
    )

    flops_length: int = option(LENGTH, "tokens of the text for which FLOPs are counted", least=1, flag="")

    stack: str | None = option(
        None,
        "of a translation model: remove heads of encoder, cross or decoder only; shares are of its heads",
        title="Heads of",
        before=None,
    )
    prefix: str | None = option(None, before=None, **PREFIX)
    languages: tuple[str, ...] | None = option(None, before=None, **LANGUAGES)

    def __post_init__(self) -> None:
        if is_one_of(self.ablation, ABLATIONS) and StandIn(self.ablation).of_the_text:
            raise OptionError(StandIn(self.ablation).refusal())
        super().__post_init__()
        algorithm = ALGORITHMS[self.algorithm]
        usual = of_masked_words()[0] if self.score_source == "masked-lm" else TO_PRUNE_BY
        object.__setattr__(self, "score", self.score or algorithm.only_score or usual)
        object.__setattr__(self, "repair", self.repair or algorithm.default_repair)
        if not self.score.strip():
            raise OptionError("The plan needs a score.")
        if self.ablation != ZERO:
            _check_ablation(self.ablation, self.algorithm, self.repair)
        if self.score_source == "masked-lm":
            _check_masked_lm(self.algorithm, self.score)
        if self.step < LEAST_STEP:
            raise OptionError(
                f"A step of {self.step:g} never removes a head, or takes thousands of steps. "
                f"Give a share of at least {LEAST_STEP:g}, such as 0.1."
            )
        if self.until == 0:
            raise OptionError("A target sparsity of 0 removes nothing. Give a share of the heads, such as 0.9.")
        if self.sparsities is not None:
            _check_sparsities(self.sparsities, self.algorithm)

    def rows(self, clf: Classifier) -> range:
        """The rows of the grid from which heads are removed: all, or those of one stack of the model."""
        if self.stack is None:
            return range(clf.num_layers)
        if self.stack not in clf.stacks:
            raise OptionError(f"'{clf.name}' has no stack '{self.stack}'. Its stacks: {', '.join(clf.stacks)}.")
        return clf.stacks[self.stack]

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
    if not sparsities or sparsities[0] == 0 or list(sparsities) != sorted(set(sparsities)):
        raise OptionError(f"Sparsities must rise and lie above 0, such as 0.3,0.5,0.7; got {list(sparsities)}.")


def _check_ablation(ablation: str, algorithm: str, repair: str) -> None:
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
