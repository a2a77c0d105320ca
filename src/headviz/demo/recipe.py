"""Every choice that decides the demo model's weights."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Recipe:
    """Steps, rates and prices of the three stages; the defaults made the shipped model."""

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

    finetune_steps: int = 3000  # classification
    finetune_rate: float = 4e-4
    gate_from: int = 1200  # from this step on each head has a learned gate, and open gates cost
    gate_until: int = 2200  # at this step the gates are folded into the weights
    gate_price: float = 1.0  # cross-entropy that all heads together may cost
    gate_rate: float = 0.03
    gate_floor: float = 0.1  # closed heads keep this share, and may learn on

    def __post_init__(self) -> None:
        if not 0 <= self.gate_from <= self.gate_until <= self.finetune_steps:
            raise ValueError("A recipe needs 0 <= gate_from <= gate_until <= finetune_steps.")
