"""Translation: encoder-decoder models by transformers, recurrent ones of headviz's own, their tasks and analyses."""

from importlib import import_module
from typing import Any

from ...plugins import Command, ModelFolder

COMMANDS = [
    Command(
        "stacks",
        "translation models: ablation, all-but-one and curves of each stack of heads",
        "headviz.extras.translation.stacks_command",
        after="roles",
    )
]
MODELS = [ModelFolder("rnn.json", "headviz.extras.translation.recurrent:open_folder")]
NAMES = {
    "Translator": "headviz.extras.translation.translator",
    "RnnTranslator": "headviz.extras.translation.recurrent",
    "TranslationEvaluation": "headviz.extras.translation.evaluation",
    "TranslationEvaluator": "headviz.extras.translation.evaluation",
    "translate": "headviz.extras.translation.evaluation",
    "stack_report": "headviz.extras.translation.stacks",
}
# lists whose modules load more than this one
_LISTS = {"ANSWERS": ("sentence", "SENTENCE"), "ANALYSES": ("stacks", "ANALYSIS"), "TASKS": ("tasks", "TASKS")}


def __getattr__(name: str) -> Any:
    if name not in _LISTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, entries = _LISTS[name]
    value = getattr(import_module(f".{module}", __name__), entries)
    return value if isinstance(value, list) else [value]
