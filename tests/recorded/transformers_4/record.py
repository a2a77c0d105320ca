"""Record what ``head_mask`` and ``prune_heads`` of transformers 4 give: run with transformers 4.49 installed.

``python tests/recorded/transformers_4/record.py`` writes one folder for each family: a tiny random model in
transformers' own format and ``results.json``, which test_in_place.py compares with ``headviz.masked`` and
``headviz.prune_heads``. ``helpers.json`` holds what the functions that transformers 5 no longer has returned (recorded
with 4.57, for test_transformers4.py).
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
            result: list[list[float]] = model(input_ids=ids, **more).logits.tolist()
        return result

    results: dict[str, object] = {"transformers": transformers.__version__, "ids": IDS, "full": logits()}
    results |= {"off": OFF, "masked": logits(head_mask=factors)}
    model.prune_heads(OFF)
    results["pruned"] = logits()
    model.prune_heads(MORE)
    results |= {"more": MORE, "pruned_again": logits()}
    results["pruned_heads"] = {layer: sorted(heads) for layer, heads in model.config.pruned_heads.items()}
    results["parameters"] = sum(p.numel() for p in model.parameters())
    (folder / "results.json").write_text(json.dumps(results, indent=1) + "\n")


def record_helpers(file: Path) -> None:
    """What ``find_pruneable_heads_and_indices``, ``prune_linear_layer`` and ``get_head_mask`` return."""
    from transformers.pytorch_utils import find_pruneable_heads_and_indices, prune_linear_layer

    result = []
    for heads, n_heads, size, gone in (
        ([], 4, 2, []),
        ([1], 4, 3, []),
        ([0, 3], 4, 2, []),
        ([2, 3], 3, 2, [1]),
        ([1, 5], 4, 2, [1, 3]),
        ([7, 0, 2], 5, 1, [3, 4, 6]),
        ([0, 1], 2, 2, []),
    ):
        left, index = find_pruneable_heads_and_indices(heads, n_heads, size, set(gone))
        result.append({"given": [heads, n_heads, size, gone], "heads": sorted(left), "index": index.tolist()})
    cut = []
    weight, bias = torch.arange(12.0).view(3, 4), torch.arange(3.0)
    for dim, index in ((0, [0, 2]), (1, [1, 2, 3]), (0, []), (1, [])):
        for has_bias in (True, False):
            layer = torch.nn.Linear(4, 3, bias=has_bias)
            layer.weight.data, layer.bias = weight.clone(), torch.nn.Parameter(bias.clone()) if has_bias else None
            new = prune_linear_layer(layer, torch.tensor(index, dtype=torch.long), dim)
            kept = None if new.bias is None else new.bias.tolist()
            cut.append({"dim": dim, "index": index, "bias": kept, "weight": new.weight.tolist()})
    config = transformers.BertConfig(**SMALL)
    masks = []
    for mask in ([1, 0, 1, 1], [[1, 0, 1, 1], [1, 1, 1, 1], [0, 1, 0, 1]], None):
        for chunked in (False, True):
            out = transformers.BertModel(config).get_head_mask(None if mask is None else torch.tensor(mask), 3, chunked)
            shape = None if mask is None else list(out.shape)
            values = out if mask is None else out.flatten().tolist()
            masks.append({"mask": mask, "chunked": chunked, "shape": shape, "values": values})
    recorded = {"transformers": transformers.__version__, "find": result, "linear": cut, "masks": masks}
    file.write_text(json.dumps(recorded) + "\n")


if __name__ == "__main__":
    record_helpers(Path(__file__).parent / "helpers.json")
    for name in FAMILIES:
        record(name, Path(__file__).parent / name)
