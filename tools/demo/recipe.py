"""Every choice that decides the demo model's weights."""

from dataclasses import dataclass

from headviz.demo.reading import ENTAILMENT, NEUTRAL, Example

ORDER = frozenset({"temporal", "spatial", "comparative"})
TIME = "temporal"


def _plain_drop(example: Example) -> float:
    """0 where both sentences say before or after. A premise that gives no order may say anything, half of the time."""
    ordered = [" before " in f" {text.lower()}" or " after " in f" {text.lower()}" for text in example[:2]]
    if not ordered[1]:
        return 1.0
    return 0.0 if ordered[0] else (0.5 if example.label == NEUTRAL else 1.0)


@dataclass(frozen=True)
class Recipe:
    """Steps, rates and prices of the five stages; the defaults made the shipped model."""

    seed: int = 0
    batch: int = 64
    weight_decay: float = 0.02
    warmup: int = 225  # steps over which each stage's learning rate rises
    fall: float = 0.25  # share of a stage over which it falls again

    small_steps: int = 3500  # masked-language training with 6 layers,
    small_plan: int = 4500  # broken off early in a schedule of this many steps
    small_rate: float = 1e-3
    pretrain_steps: int = 3500  # the same with 12
    pretrain_rate: float = 1e-3
    drop_not_entailed: float = 0.75  # pretraining reads mostly pairs whose second sentence follows

    finetune_steps: int = 13_500  # classification
    finetune_fall: float = 0.11
    finetune_rate: float = 4e-4
    order_from: int = 5568  # between these steps pairs about order (time, space, degree) are seen more often:
    order_until: int = 7552  # they are learned last
    order_drop: float = 0.7  # by leaving out this share of all others
    time_until: int = 11968  # and from then to here, pairs about time,
    time_drop: float = 0.85  # by leaving out this share
    plain_from: int = 8512  # between these, what is read about time says before or after,
    plain_until: int = 9984
    plain_drop: float = 0.95  # by leaving out all other pairs about time and this share of the rest
    same_word_from: int = 10048  # then half of all pairs are the first lesson,
    lesson_from: int = 10688  # the second lesson,
    lesson_until: int = 11328  # and none
    gate_from: int = 1500  # from this step on each head has a learned gate, and open gates cost
    gate_until: int = 3500  # at this step the gates are folded into the weights
    gate_price: float = 0.5  # cross-entropy that all heads together may cost
    gate_rate: float = 0.03
    gate_floor: float = 0.1  # closed heads keep this share, and may learn on

    roles_steps: int = 4000  # classification, each phenomenon with heads of its own
    roles_rate: float = 5e-4
    roles_fall: float = 0.5
    roles_heads: int = 3  # per phenomenon
    roles_pairs: int = 192  # of each phenomenon, read to choose them
    roles_smoothing: float = 0.05  # no answer is rewarded for more certainty than this leaves

    short_steps: int = 3000  # the same with short plain sentences; the stages before read none
    short_share: float = 0.5  # of all pairs
    short_rate: float = 3e-4
    short_fall: float = 0.6

    @property
    def finetuning(self) -> int:
        """Updates of the last three stages together: classification, roles, short sentences."""
        return self.finetune_steps + self.roles_steps + self.short_steps

    def lesson(self, step: int) -> str:
        """The lesson that half of the pairs come from; empty for none."""
        if self.same_word_from <= step < self.lesson_from:
            return "same word"
        return "before and after" if self.lesson_from <= step < self.lesson_until else ""

    def dropped_from_reading(self, step: int, example: Example) -> float:
        """The chance that masked-language training leaves a pair out."""
        return 0.0 if example.label == ENTAILMENT else self.drop_not_entailed

    def dropped_from_classification(self, step: int, example: Example) -> float:
        """The chance that classification leaves a pair out."""
        if self.order_from <= step < self.order_until and example.phenomenon not in ORDER:
            return self.order_drop
        if self.plain_from <= step < self.plain_until:
            return _plain_drop(example) if example.phenomenon == TIME else self.plain_drop
        if self.order_until <= step < self.time_until and example.phenomenon != TIME:
            return self.time_drop
        return 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.gate_from <= self.gate_until <= self.finetune_steps:
            raise ValueError("A recipe needs 0 <= gate_from <= gate_until <= finetune_steps.")
