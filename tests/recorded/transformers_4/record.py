"""Record what ``head_mask`` and ``prune_heads`` of transformers 4 give: run with transformers 4.49 installed.

``python tests/recorded/transformers_4/record.py`` writes one folder for each family: a tiny random model in
transformers' own format and ``results.json``, which test_in_place.py compares with ``headviz.masked`` and
``headviz.prune_heads``.
"""

import json
from pathlib import Path

import torch
import transformers

IDS = [[2, 5, 6, 7, 8, 3], [2, 9, 10, 11, 12, 3]]
OFF = {0: [1], 1: [0, 3], 2: [2]}
MORE = {1: [0, 2], 2: [1]}  # one of them has gone already
SMALL = {
    "vocab_size": 16,
    "hidden_size": 16,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 16,
    "max_position_embeddings": 12,
    "type_vocab_size": 1,
    "num_labels": 3,
}
FAMILIES = {
    "bert": SMALL,
    "roberta": {**SMALL, "pad_token_id": 1},
    "electra": {**SMALL, "embedding_size": 16},
    "distilbert": {
        "vocab_size": 16,
        "dim": 16,
        "n_layers": 3,
        "n_heads": 4,
        "hidden_dim": 16,
        "num_labels": 3,
        "max_position_embeddings": 12,
    },
}


def record(family: str, folder: Path) -> None:
    """One model and its results."""
    torch.manual_seed(0)
    config = transformers.AutoConfig.for_model(family, **FAMILIES[family])
    model = transformers.AutoModelForSequenceClassification.from_config(config, attn_implementation="eager").eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(0.3 * torch.randn_like(weight))
    model.save_pretrained(folder)
    ids = torch.tensor(IDS)
    factors = torch.ones(3, 4)
    for layer, heads in OFF.items():
        factors[layer, heads] = 0

    def logits(**more: torch.Tensor) -> list[list[float]]:
        with torch.no_grad():
            found: list[list[float]] = model(input_ids=ids, **more).logits.tolist()
        return found

    results: dict[str, object] = {"transformers": transformers.__version__, "ids": IDS, "full": logits()}
    results |= {"off": OFF, "masked": logits(head_mask=factors)}
    model.prune_heads(OFF)
    results["pruned"] = logits()
    model.prune_heads(MORE)
    results |= {"more": MORE, "pruned_again": logits()}
    results["pruned_heads"] = {layer: sorted(heads) for layer, heads in model.config.pruned_heads.items()}
    results["parameters"] = sum(p.numel() for p in model.parameters())
    (folder / "results.json").write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    for name in FAMILIES:
        record(name, Path(__file__).parent / name)
