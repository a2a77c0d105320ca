"""Translation: encoder-decoder models by transformers, recurrent ones of headviz's own, their tasks and analyses."""

from ...plugins import Command, ModelFolder

ANSWERS = "headviz.extras.translation.sentence:ANSWERS"
ANALYSES = "headviz.extras.translation.tasks:ANALYSES"
TASKS = "headviz.extras.translation.tasks:TASKS"
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
