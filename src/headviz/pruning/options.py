"""Options of fine-tuning and of the search for faster models."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from ..errors import OptionError
from ..options import Option, Options, option, seed_option
from .algorithms import NOTHING

PRECISIONS = ("float32", "bfloat16", "float16")
SCHEDULES = ("linear", "cosine", "constant", "plateau")

GIVEN, IN_BATCH = "given", "in-batch"
NEGATIVES = {
    GIVEN: "the squared error of each pair's cosine",
    IN_BATCH: "cross-entropy of a text's partner among all second texts of the batch (MultipleNegativesRanking)",
}


@dataclass(frozen=True)
class FinetuneOptions(Options):
    """One fine-tuning. The defaults are those of the 2024 thesis (its Table 6.1).

    A small model needs other options: ``recipe_of`` reads those of a model's folder. The seed is not here, because
    one plan trains with several.
    """

    called: ClassVar[str] = "fine-tuning option"

    epochs: float = option(
        3.0, "times through the training examples", least=0, above=True, most=10_000, title="Epochs", metavar="E"
    )
    batch: int = option(32, "examples of a batch", least=1, title="Batch", metavar="B")
    learning_rate: float = option(
        2e-5, "highest learning rate", least=0, above=True, title="Learning rate", metavar="R"
    )
    epsilon: float = option(1e-8, "of AdamW", least=0, above=True, most=1, flag="")
    beta2: float = option(0.999, "of AdamW", least=0, most=1, flag="")
    schedule: str = option(
        "linear", "of the learning rate after the warmup", SCHEDULES, title="Schedule", metavar="NAME"
    )
    warmup: float = option(
        0.0, "share of all updates over which the rate rises", least=0, most=1, title="Warm-up, share", metavar="W"
    )
    fall: float = option(
        0.25, "share of all updates over which a plateau falls to zero, by half a cosine", least=0, most=1, flag=""
    )
    weight_decay: float = option(0.0, "of AdamW", least=0, most=1e6, title="Weight decay", metavar="D")
    max_grad_norm: float = option(1.0, "larger gradients are scaled down to it", least=0, above=True, flag="")
    precision: str = option(
        "float32",
        "of matrix products, by autocast (float16 on CUDA alone); bfloat16 is faster where the device has it",
        PRECISIONS,
        title="Training precision",
        metavar="P",
    )
    accumulation: int = option(1, "batches per update", least=1, title="Batches per update", metavar="K")
    negatives: str = option(
        GIVEN,
        "which texts an embedder sets apart: those of pairs without a similarity, or also all others of a batch",
        NEGATIVES,
        title="Negatives of an embedder",
        metavar="NAME",
        before=GIVEN,
    )
    group_lengths: bool = option(True, "texts of similar length share a batch: less padding, same epoch", flag="")
    early_stopping: int | None = option(
        None,
        "epochs without a better dev metric, then the best weights",
        least=1,
        usual="never",
        title="Stop early after",
        metavar="N",
    )
    evaluate_epochs: bool = option(False, "dev metrics after every epoch, for the learning curve", flag="")
    checkpoint_steps: int | None = option(None, "updates between checkpoints", least=1, usual="an epoch", metavar="N")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.schedule == "plateau" and self.warmup + self.fall > 1:
            raise OptionError(f"A plateau has no room between a warmup of {self.warmup:g} and a fall of {self.fall:g}.")


# -----------------------------------------------------------------------------------------------
# How a faster model is looked for, and the values that stand where nothing else is asked. Imports nothing heavy.


BOTH, HEADS_ONLY = "both", "heads"
REMOVED = (BOTH, HEADS_ONLY)
BEST = "best"
REFIT, MEANS = "refit", "bias"
TUNINGS = {
    BEST: "the best on train examples: solved again, means added to the biases, or as they are",
    REFIT: "solved again for what is left",
    "tune": "scaled, one factor each",
    MEANS: "the mean of what goes is added to the biases",
    NOTHING: "left as they are",
}
TORCH, ONNX, ONNX_INT8 = "torch", "onnx", "onnx-int8"
MEASURED_IN = {TORCH: "PyTorch", ONNX: "ONNX Runtime", ONNX_INT8: "ONNX Runtime, int8"}
GOLD, ANSWERS = "labels", "answers"  # whose loss the gradients are of
# what a unit is worth -> whose loss, and whether a closed gate leaves the unit's mean, which a bias can stand for
IMPORTANCE = {
    "labels": (GOLD, False),
    "labels-mean": (GOLD, True),
    "answers": (ANSWERS, False),
    "answers-mean": (ANSWERS, True),
}
IMPORTANCES = {
    BEST: "each of the others is tried on train examples",
    "labels": "the loss of the labels, without the unit",
    "labels-mean": "the same, with its mean in its place",
    "answers": "how far the model's own answers move without the unit",
    "answers-mean": "the same, with its mean in its place",
}


AUTO, GIVEN_RATE = "auto", "given"
RATES = {
    AUTO: "that of the training's options, 3 and 10 times it: the best in a short training, on train",
    GIVEN_RATE: "that of the training's options",
}


TARGETS = Option(
    "faster",
    help="so many times as fast on this machine, such as 2, or several: 1.5,2",
    kind=float,
    several=True,
    each="speed",
    least=1,
    above=True,
    most=1000,
    title="Times as fast",
    metavar="X[,Y,…]",
)


@dataclass(frozen=True)
class SearchOptions(Options):
    """How candidate sizes are timed, chosen and repaired."""

    batch: int = option(32, "texts at once when speed is measured", least=1, title="Texts at once", metavar="B")
    length: int | None = option(
        None, "tokens of each", least=1, usual="128, or what the model can take", title="Tokens of each", flag=""
    )
    samples: int = option(
        1024, "train examples to choose and tune on", least=1, title="Examples to choose on", metavar="N"
    )
    runtime: str = option(
        TORCH,
        "where speed is measured, of the whole model and the smaller one",
        MEASURED_IN,
        title="Runtime",
        metavar="R",
    )
    repair: str = option(BEST, "of the kept weights", TUNINGS, title="Kept weights", metavar="NAME", before=REFIT)
    importance: str = option(
        BEST, "what a head or neuron is worth", IMPORTANCES, title="Worth of a unit", metavar="NAME"
    )
    rate: str = option(
        AUTO, "learning rate of a training", RATES, title="Learning rates tried", metavar="NAME", before=GIVEN_RATE
    )
    seed: int = seed_option("of the sample, and of a training")


@dataclass(frozen=True)
class FasterOptions(SearchOptions):
    """How a faster model is looked for."""

    remove: str = option(BOTH, "heads: the neurons stay", REMOVED, flag="")
    retrain: FinetuneOptions | None = option(None, "train the smaller model on the whole of the data", flag="")


UPDATES, MOST_EPOCHS = 4000, 20  # of the training of a smaller model, where no length is asked for


def usual_epochs(examples: int, batch: int) -> float:
    """Times through so many training examples: about ``UPDATES`` updates."""
    return float(min(MOST_EPOCHS, max(1, round(UPDATES * batch / max(1, examples)))))


TRAINS = "training"  # the phase in which a round trains, trials of learning rates included
SHORT = 1 / 3  # of the epochs of a target, in a round that only leads to one
PASSES_OF_UPDATE = 3.0  # of the model that is trained: one forward, and a backward that takes two
RATIO = 1.5  # of the speeds of two rounds with training, at most


class Round(NamedTuple):
    """A speed on the way, and whether it is a target. A round begins with the model of the one before."""

    speed: float
    is_target: bool

    @property
    def name(self) -> str:
        return f"{self.speed:g}"

    @property
    def epochs(self) -> float:
        """As a share of those of a target."""
        return 1.0 if self.is_target else SHORT

    @property
    def work(self) -> float:
        """Of its training, in passes of the whole model: the teacher's, and those of the smaller one."""
        return self.epochs * (1 + PASSES_OF_UPDATE / self.speed)


def rounds(targets: Sequence[float], trained: bool) -> list[Round]:
    """Without training each target is cut from the whole model; with it they share a way of small steps."""
    if not trained:
        return [Round(target, True) for target in targets]
    way, last = list[Round](), 1.0
    for target in sorted(targets):
        steps = math.ceil(math.log(target / last) / math.log(RATIO) - 1e-9)
        way += [Round(round(last * (target / last) ** (k / steps), 2), False) for k in range(1, steps)]
        way.append(Round(target, True))
        last = target
    return way
