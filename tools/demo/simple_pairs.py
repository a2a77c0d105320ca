"""200 simple pairs written by hand: `python -m tools.demo.simple_pairs [--model FOLDER]` says how many come out right.

They lie in headviz/demo/data/simple_pairs.tsv and are never used in training: short plain sentences in the words of the
corpus, not made by its rules. Without --model the shipped model is measured. Exits with 1 below the goal.
"""

import argparse
from pathlib import Path
from typing import Any

import torch

from headviz.demo import demo_folder
from headviz.demo.reading import LABELS, Example

from .batches import encode, pad
from .network import gated
from .simple import SimplePair, simple_pairs

GOAL = 0.95


@torch.no_grad()
def probabilities(model: Any, tokenizer: Any, examples: list[Example]) -> torch.Tensor:
    """[pairs, labels] in the order of LABELS."""
    batch = pad(encode(tokenizer, examples), [LABELS.index(example.label) for example in examples])
    model.eval()
    return model(**batch.inputs(model.device), headviz=gated(None)).logits.softmax(-1).cpu()


def report(pairs: tuple[SimplePair, ...], found: torch.Tensor) -> tuple[float, str]:
    """The accuracy, and a table of it per phenomenon, tense, subject and label with every wrong answer."""
    gold = torch.tensor([LABELS.index(pair.example.label) for pair in pairs])
    right = (found.argmax(-1) == gold).tolist()
    unsure = sum(float(row.max()) < 0.5 for row in found)
    groups: dict[str, list[bool]] = {}
    for pair, ok in zip(pairs, right, strict=True):
        for name in (pair.example.phenomenon, pair.tense, pair.subject, pair.example.label):
            groups.setdefault(name, []).append(ok)
    share = sum(right) / len(right)
    lines = [f"{name:16} {sum(oks):3} of {len(oks):3}  {sum(oks) / len(oks):.0%}" for name, oks in groups.items()]
    for pair, ok, row in zip(pairs, right, found.tolist(), strict=True):
        if not ok:
            answer = max(range(len(LABELS)), key=row.__getitem__)
            told = f"{pair.example.premise} / {pair.example.hypothesis}"
            lines.append(f"{told}  {pair.example.label}, answered {LABELS[answer]} {row[answer]:.2f}")
    lines.append(f"all {sum(right)} of {len(right)}, {share:.1%}; {unsure} answers below .5")
    return share, "\n".join(lines)


def measure(folder: Path) -> tuple[float, str]:
    """The report on the model in a folder."""
    from transformers import AutoTokenizer, BertForSequenceClassification

    from headviz.attention import NAME

    model = BertForSequenceClassification.from_pretrained(folder, attn_implementation=NAME, dtype=torch.float32)
    pairs = simple_pairs()
    examples = [pair.example for pair in pairs]
    return report(pairs, probabilities(model, AutoTokenizer.from_pretrained(folder), examples))


def main(arguments: list[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path)
    share, table = measure(parser.parse_args(arguments).model or demo_folder("finetuned"))
    print(table)
    if share < GOAL:
        raise SystemExit(f"{share:.1%} is less than {GOAL:.0%}.")


if __name__ == "__main__":
    main()
