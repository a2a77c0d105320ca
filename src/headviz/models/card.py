"""The README of a saved pruned model: a model card that says what was removed and how to load it."""

from __future__ import annotations

from pathlib import Path

from .feed_forward import neurons
from .hub import is_hub_id
from .network import Network


def card(clf: Network) -> str:
    """The text of README.md, with the hub's metadata in front."""
    source = Path(clf.name).name or type(clf.model).__name__
    base = (
        [f"base_model: {clf.name}"] if "/" in clf.name and is_hub_id(clf.name) and not Path(clf.name).is_dir() else []
    )
    kept = [clf.present.kept_in(row) for row in range(clf.num_layers)]
    sizes = neurons(clf) if len(clf.stacks) == 1 else []  # of several stacks a row is no layer
    title = ["layer", "heads", *(["neurons"] if sizes else [])]
    rows = [[clf.row_name(row), " ".join(map(str, heads)) or "none"] for row, heads in enumerate(kept)]
    rows = [[*row, f"{size:,}"] for row, size in zip(rows, sizes, strict=True)] if sizes else rows
    table = "\n".join(f"| {' | '.join(row)} |" for row in (title, ["---"] * len(title), *rows))
    return TEXT.format(
        metadata="\n".join(["library_name: transformers", *base, "tags: [headviz, pruned, attention-heads]"]),
        source=source,
        gone=clf.num_layers * clf.num_heads - sum(map(len, kept)),
        heads=clf.num_layers * clf.num_heads,
        family=clf.family.title,
        parameters=sum(weight.numel() for weight in clf.model.parameters()),
        model=type(clf.model).__name__,
        table=table,
    )


TEXT = """---
{metadata}
---

# {source}, pruned

{gone} of {heads} attention heads of this {family} model have been removed. It has {parameters:,} parameters.

## How to load it

```python
import headviz  # pip install headviz: lets transformers open layers with different numbers of heads
from transformers import AutoTokenizer, {model}

model = {model}.from_pretrained("this-folder")
tokenizer = AutoTokenizer.from_pretrained("this-folder")
```

Or `clf = headviz.load("this-folder")`. Without headviz, transformers warns of an unknown quantization type and raises
a size mismatch. Never pass `ignore_mismatched_sizes=True`: it would fill the matrices at random.

## What is left

{table}
"""
