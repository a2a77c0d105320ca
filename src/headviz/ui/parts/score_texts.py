"""What the scores mean, in plain words, as a formula, and after whom."""

from __future__ import annotations

_AGREES = "How well where a head looks agrees with where its contribution to the answer comes from"
MEANINGS = {
    "conductance-spearman": f"{_AGREES}: 1 = exactly, 0 = not at all, below = the reverse.",
    "conductance-kendall": f"{_AGREES}, by Kendall's tau: 1 = exactly, 0 = not at all, below = the reverse.",
    "conductance-pearson": f"{_AGREES}, in a straight line: 1 = exactly, 0 = not at all, below = the reverse.",
    "conductance-max": "The most that any one connection of a head contributes to the answer.",
    "attattr-max": "The most that any one connection of a head contributes, its attention grown from nothing.",
    "taylor": "How much the loss reacts when a head is turned down a little.",
    "ablation": "What the metric loses when a head is switched off.",
    "fisher": "How strongly the loss reacts to a head, squared and added up over the examples.",
    "magnitude": "How large a head's weights are; no examples needed.",
    "random": "Chance: what any other score has to beat.",
}
FORMULAS = {
    "conductance-spearman": r"\tfrac1n \sum_x \mathrm{Spearman}(A(x), \mathrm{Attr}(A)(x))",
    "conductance-kendall": r"\tfrac1n \sum_x \tau_b(A(x), \mathrm{Attr}(A)(x))",
    "conductance-pearson": r"\tfrac1n \sum_x r(A(x), \mathrm{Attr}(A)(x))",
    "conductance-max": r"\tfrac1n \sum_x \max_{ij} \mathrm{Attr}(A)_{ij}",
    "attattr-max": r"\tfrac1n \sum_x \max_{ij} \big(A \odot \textstyle\int_0^1 \partial F(aA)/\partial A\,da\big)_{ij}",
    "taylor": r"\tfrac1n \sum_x \left| \partial \mathrm{Loss}(x) / \partial \xi_h \right|",
    "ablation": r"m(\text{full}) - m(\text{full without } h)",
    "fisher": r"\sum_x \left( \partial \mathrm{Loss}(x) / \partial \xi_h \right)^2",
    "magnitude": r"\lVert W_O^{(h)} \rVert \cdot \lVert W_V^{(h)} \rVert",
    "random": r"u_h \sim U(0, 1)",
}
SOURCES = {
    "conductance": "*Integrated Gradients for Structured Pruning on BERT* (2024), eq. 6.4 and §6.5.2",
    "attattr-max": "Hao et al. 2021, *Self-Attention Attribution*",
    "taylor": "Michel, Levy, Neubig 2019, eq. 2; l2-normalised per layer",
    "ablation": "Michel, Levy, Neubig 2019, §3.2",
    "fisher": "Kwon et al. 2022",
}


def source(score: str) -> str:
    return SOURCES.get(score, SOURCES["conductance"] if score.startswith("conductance") else "a baseline")
