"""The lines of the catalogue for scores by learned gates. ``gate_scores`` computes them."""

from __future__ import annotations

from .options import CausalOptions, CountOptions, HardOptions, PriceOptions
from .score import SAMPLE, Score

LEARNED = (
    Score(
        name="gates",
        title="Learned gates",
        meaning="How long a head stays switched on when gates on all heads are learned and open ones cost more and "
        "more.",
        formula="mean over updates of the gate g minimising Loss(g) + price · mean(g), the price rising from 0",
        source="after Voita et al. 2019, but σ(z) for their hard-concrete gates; here with frozen weights",
        measure="gate_scores:gates",
        needs=SAMPLE,
        options=PriceOptions,
        caution="learned on the sample: a small one is learned by heart",
        tex=r"\tfrac1S \sum_s g_h(s), \quad g(s) \approx \arg\min_g \mathrm{Loss}(g) + \lambda(s)\,\bar g",
    ),
    Score(
        name="gates-hard",
        title="Learned gates, hard concrete",
        meaning="How likely a head stays switched on when random gates that are often exactly open or closed are "
        "learned, and open ones cost more and more.",
        formula="mean over updates of P(g > 0), g minimising Loss(g) + price · mean P(g > 0), the price rising from 0; "
        "g = clip(1.2 · σ((log u − log(1 − u) + z) / 0.33) − 0.1, 0, 1), u ~ U(0, 1) anew in every update",
        source="Louizos et al. 2018, Voita et al. 2019; here with frozen weights",
        measure="gate_scores:gates_hard",
        needs=SAMPLE,
        options=HardOptions,
        caution="learned on the sample: a small one is learned by heart",
        tex=r"\tfrac1S \sum_s P(g_h(s) > 0), \quad P(g > 0) = \sigma(z - 0.33 \log \tfrac{0.1}{1.1})",
    ),
    Score(
        name="gates-exact",
        title="Learned gates, exact number",
        meaning="How long a head is kept when ever fewer heads are kept, and which ones is learned.",
        formula="share of the updates in which the head is among the k highest logits with Gumbel noise, k falling "
        "from all to none; the noise falls to 0, and the gradient is that of a softmax at temperature 1",
        source="after Li, Cotterell and Sachan 2021, whose temperature falls in place of the noise; here with frozen "
        "weights",
        measure="gate_scores:gates_exact",
        needs=SAMPLE,
        options=CountOptions,
        caution="learned on the sample: a small one is learned by heart",
        tex=r"\tfrac1S \sum_s \big[ h \in \mathrm{top}_{k(s)} (z(s) + \mathrm{Gumbel}) \big]",
    ),
    Score(
        name="gates-causal",
        title="Causal gates",
        meaning="Whether a head stays open when all gates are pressed to close (it helps), or closes when they are "
        "pressed to open (it harms).",
        formula="G⁻ − (1 − G⁺), gates learned under pressure −λ and +λ on their logits",
        source="Nam et al. 2025",
        measure="gate_scores:gates_causal",
        needs=SAMPLE,
        options=CausalOptions,
        caution="three learnings; learned on the sample: a small one is learned by heart",
        tex=r"G^-_h - (1 - G^+_h)",
    ),
)
