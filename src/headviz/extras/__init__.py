"""First-party plugins: rooms behind the door that other people's plugins use (``headviz.plugins``).

Each room is a package with the same lists as a plugin's file. Its entries name functions as "module:function", so that
the package itself is light; what draws with streamlit lies in its folder ``pages``. Nothing outside this folder imports
from it, and each room can be deleted: the rest works, and what asked for it says which room is missing.
"""

# room -> table -> the names that it brings
ROOMS: dict[str, dict[str, tuple[str, ...]]] = {
    "analyses": {
        "analyses": ("cross-dataset", "dynamics", "redundant", "interactions", "roles", "scatter"),
        "commands": ("roles",),
        "names": ("cross_dataset", "dynamics", "interactions", "redundant", "roles"),
    },
    "cluster": {"executors": ("dask",)},
    "translation": {
        "answers": ("sentence",),
        "models": ("rnn.json",),
        "tasks": ("demo-translation", "custom-translation"),
        "analyses": ("stacks",),
        "commands": ("stacks",),
        "names": (
            "Translator",
            "RnnTranslator",
            "TranslationEvaluation",
            "TranslationEvaluator",
            "translate",
            "stack_report",
        ),
    },
    "tickets": {
        "names": ("transfer",),
        "commands": ("tickets", "transfer"),
        "tabs": ("transfer", "tickets", "sweep-tickets", "sweep-transfer"),
        "sections": ("tickets",),
    },
    "scores": {
        "scores": (
            "shapley",
            "ranks",
            "gim",
            "conductance-max",
            "gates-hard",
            "gnorm",
            "hies",
            "conductance-pearson",
            "gates-causal",
            "conductance-kendall",
        ),
        "sweeps": ("entropy", "changed gates", "weights"),
        "algorithms": ("gates-hard", "gates-causal"),
    },
    "distillation": {"commands": ("distill",), "runs": ("distill",), "names": ("distil", "DistillationPlan")},
}
