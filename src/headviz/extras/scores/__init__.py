"""Ten more head scores. Their measures are in the modules of this package, which are imported at their first use."""

from ...pruning.algorithms import Algorithm, score_once
from ...scores.catalogue import correlation
from ...scores.options import ConductanceOptions, HardOptions
from ...scores.score import SAMPLE, Score, Sweep
from .options import BlendOptions, CausalOptions, ChangedOptions, RanksOptions, ShapleyOptions

SWEEPS = [
    Sweep(
        "entropy",
        1,
        "headviz.extras.scores.measures:sweep",
        "headviz.scores.gradients:by_tokens",
        uses_gold=True,
        reads_labels=True,
        by_gates=True,
        after="gates",
    ),
    Sweep(
        "changed gates",
        1,
        "headviz.extras.scores.gim:sweep",
        "headviz.scores.gradients:by_tokens",
        ("temperature",),
        uses_gold=True,
        reads_labels=True,
        by_gates=True,
        after="entropy",
    ),
    Sweep(
        "weights", 1, "headviz.extras.scores.gnorm:sweep", "headviz.scores.gradients:by_tokens", after="changed gates"
    ),
]
SCORES = [
    Score(
        name="shapley",
        title="Shapley value",
        meaning="What a head adds to the metric, averaged over the random orders in which heads can be switched on.",
        formula="mean over orders of metric(heads before h, and h) − metric(heads before h)",
        source="Held and Yang 2023",
        measure="headviz.extras.scores.shapley:shapley",
        needs=SAMPLE,
        options=ShapleyOptions,
        slow=True,
        caution="the slowest score; intervals are over the orders, not over the examples",
        tex=r"\tfrac1{|\Pi|} \sum_{\pi} m(\pi_{<h} \cup h) - m(\pi_{<h})",
        after="attattr-max",
    ),
    Score(
        name="ranks",
        title="Average rank",
        meaning="Where a head stands on average in the orders of several scores: 0 = lowest in all, 1 = highest.",
        formula="mean over the members of (rank − 1) / (heads − 1), ties at their mean rank",
        source="Borda's count",
        measure="headviz.extras.scores.measures:ranks",
        needs=SAMPLE,
        options=RanksOptions,
        caution="costs what its members cost together; members that say the same outvote the others",
        tex=r"\tfrac1M \sum_m (\mathrm{rank}_m(h) - 1) / (n - 1)",
        after="shapley",
    ),
    Score(
        name="gim",
        title="GIM",
        meaning="How much the loss reacts when a head is turned down a little, by a backward pass that does not let "
        "other parts of the model make up for it.",
        formula="mean over examples of |Σ O ⊙ ∂Loss/∂O|; backwards norms keep their divisor, softmax is taken at "
        "scores / T, values get 1/2, queries and keys 1/4 of the gradient",
        source="Edin et al. 2025 (arXiv 2505.17630), gradients of the authors' code; here of the loss, by head",
        measure="headviz.extras.scores.gim:gim",
        needs="changed gates",
        options=ChangedOptions,
        caution="models with other norms than layer norm are refused",
        tex=r"\tfrac1n \sum_x \big| \textstyle\sum O_h \odot \tilde\partial \mathrm{Loss}(x) / \partial O_h \big|",
        after="ranks",
    ),
    Score(
        name="conductance-max",
        title="Conductance, largest",
        meaning="The most that any one connection of a head contributes to the answer.",
        formula="mean over examples of max_ij Attr(A)_ij",
        source="aggregate of Hao et al. 2021, on conductance maps",
        measure="headviz.extras.scores.measures:conductance_max",
        needs="conductance",
        options=ConductanceOptions,
        caution="one extreme connection decides; its size depends on the text's length",
        tex=r"\tfrac1n \sum_x \max_{ij} \mathrm{Attr}(A)_{ij}",
        row="max",
        after="gates-exact",
    ),
    Score(
        name="gates-hard",
        title="Learned gates, hard concrete",
        meaning="How likely a head stays switched on when random gates that are often exactly open or closed are "
        "learned, and open ones cost more and more.",
        formula="mean over updates of P(g > 0), g minimising Loss(g) + price · mean P(g > 0), the price rising from 0; "
        "g = clip(1.2 · σ((log u − log(1 − u) + z) / 0.33) − 0.1, 0, 1), a new u ~ U(0, 1) in every update",
        source="Louizos et al. 2018, Voita et al. 2019; here with frozen weights",
        measure="headviz.extras.scores.measures:gates_hard",
        needs=SAMPLE,
        options=HardOptions,
        caution="learned on the sample: a small one is learned by heart",
        tex=r"\tfrac1S \sum_s P(g_h(s) > 0), \quad P(g > 0) = \sigma(z - 0.33 \log \tfrac{0.1}{1.1})",
        after="gates",
    ),
    Score(
        name="gnorm",
        title="Gradient norms",
        meaning="How strongly the size of the answer depends on a head's weights, labels unseen.",
        formula="product over W of W_Q, W_K, W_V of mean over examples of ‖∂‖logits‖ / ∂W‖",
        source="Guo and Sheridan 2026 (arXiv 2602.04491), formula of the authors' repository; greedy with algorithm "
        "'iterative'",
        measure="headviz.extras.scores.gnorm:gnorm",
        needs="weights",
        caution="a head that makes every logit larger counts as much as one that decides",
        tex=r"\prod_{W \in \{W_Q, W_K, W_V\}} \tfrac1n \sum_x \big\lVert \partial \lVert F(x) \rVert / "
        r"\partial W^{(h)} \big\rVert",
        explained_only="takes the norm of the classes' logits",
        after="gates-hard",
    ),
    Score(
        name="hies",
        title="HIES",
        meaning="Half how much the loss reacts to a head, half how narrowly the head looks.",
        formula="α · I + (1 − α) · (1 − E), I = mean |∂Loss/∂ξ| and E = mean entropy of attention / log T, each "
        "brought between 0 and 1 over all heads",
        source="Choi et al. 2025 (arXiv 2510.13832), eq. 1 and B.2.1",
        measure="headviz.extras.scores.measures:hies",
        needs="entropy",
        options=BlendOptions,
        caution="α is tuned for each task as published, and 0.5 here; narrow attention is not yet useful attention",
        tex=r"\alpha \hat I_h + (1 - \alpha)(1 - \hat E_h)",
        explained_only="divides entropy by the logarithm of the classified text's length",
        after="fisher",
    ),
    correlation(
        "pearson",
        "Pearson",
        "Pearson",
        "named in §6.5.2",
        "headviz.extras.scores.measures:conductance_pearson",
        "r",
        how=", in a straight line",
        caution="attributions are heavy-tailed: a single connection can decide the value",
        after="taylor",
    ),
    Score(
        name="gates-causal",
        title="Causal gates",
        meaning="Whether a head stays open when all gates are pressed to close (it helps), or closes when they are "
        "pressed to open (it harms).",
        formula="G⁻ − (1 − G⁺), gates learned under pressure −λ and +λ on their logits",
        source="Nam et al. 2025",
        measure="headviz.extras.scores.measures:gates_causal",
        needs=SAMPLE,
        options=CausalOptions,
        caution="three learnings; learned on the sample: a small one is learned by heart",
        tex=r"G^-_h - (1 - G^+_h)",
        after="conductance-pearson",
    ),
    correlation(
        "kendall",
        "Kendall",
        "Kendall's tau-b",
        "§7.2 (named in §6.5.2)",
        "headviz.extras.scores.measures:conductance_kendall",
        r"\tau_b",
        how=", by Kendall's tau",
        after="conductance-spearman",
    ),
]
ALGORITHMS = [
    Algorithm(
        "gates-hard",
        "Learned gates, hard concrete",
        "As 'gates', but with gates that are drawn at random and are often exactly open or closed.",
        "One learning, no training of the weights: some 200 forward and backward passes of 32 examples.",
        "Louizos et al. 2018, Voita et al. 2019",
        score_once,
        only_score="gates-hard",
        after="gates",
    ),
    Algorithm(
        "gates-causal",
        "Causal gates",
        "Learn gates on all heads of θ*, then press them to close and to open; remove first the heads that close by "
        "themselves, and last those that stay open; evaluate θ* under each mask.",
        "Three learnings, no training of the weights: some 600 forward and backward passes of 32 examples.",
        "Nam et al. 2025",
        score_once,
        only_score="gates-causal",
        after="gates-exact",
    ),
]
