"""The README of a saved pruned model: a model card that says what was removed, what that costs, and how to load it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import ModelError
from .feed_forward import neurons
from .hub import is_hub_id
from .network import Network

# the hub's names for what a model does, by its job
PIPELINES = {
    **dict.fromkeys(("class", "number", "labels"), "text-classification"),
    "tokens": "token-classification",
    "span": "question-answering",
    "rank": "text-ranking",
    "vector": "sentence-similarity",
    "sentence": "translation",
    "word": "fill-mask",
}
TRUST = "trust_remote_code"  # the option of transformers by which somebody allows the code of a folder to be run


@dataclass(frozen=True)
class Measured:
    """What was measured of a pruned model, for its card. ``of`` reads it from a result of headviz."""

    task: str = ""
    metrics: Mapping[str, float] = field(default_factory=dict)
    change: Mapping[str, Any] | None = None  # what ``headviz.paired`` gives
    speedup: tuple[float, float, float] | None = None  # and its interval
    where: str = ""  # the batch and the machine of the speed

    @classmethod
    def of(cls, result: Any, task: str = "") -> Measured:
        """From the result of ``headviz.prune_faster`` or ``headviz.paired``."""
        found: Mapping[str, Any] = result.to_dict() if hasattr(result, "to_dict") else {}
        if "difference" in found:
            return cls(task, change=found)
        if "speedup_low" not in found:
            raise ModelError(
                f"A card is written of prune_faster's result or of paired's, not of {type(result).__name__}."
            )
        where = f"batches of {found['batch']} texts of {found['length']} tokens, {found['table']['device']}"
        speedup = (found["speedup"], found["speedup_low"], found["speedup_high"])
        return cls(task, found["metrics"] or {}, found["change"], speedup, where)

    def lines(self) -> list[str]:
        """The same as sentences; empty where nothing was measured."""
        out = []
        if self.change is not None:
            low, high = self.change["low"], self.change["high"]
            out.append(
                f"{self.change['metric']}{f' on {self.task}' if self.task else ''}: {self.change['difference']:+.4f} "
                f"(95 % interval {low:+.4f} to {high:+.4f}, {self.change['n']:,} examples), against the model before."
            )
        out += [f"{name}: {value:.4f}" for name, value in self.metrics.items()]
        if self.speedup is not None:
            times, low, high = self.speedup
            out.append(f"{times:.2f} times as fast (95 % interval {low:.2f} to {high:.2f}): {self.where}.")
        return out


def card(clf: Network, portable: bool = False, measured: Measured | None = None) -> str:
    """The text of README.md, with the hub's metadata in front."""
    source = Path(clf.name).name or type(clf.model).__name__
    measured = measured or Measured()
    kept = [clf.present.kept_in(row) for row in range(clf.num_layers)]
    sizes = neurons(clf) if len(clf.stacks) == 1 else []  # of several stacks a row is no layer
    title = ["layer", "heads", *(["neurons"] if sizes else [])]
    rows = [[clf.row_name(row), " ".join(map(str, heads)) or "none"] for row, heads in enumerate(kept)]
    rows = [[*row, f"{size:,}"] for row, size in zip(rows, sizes, strict=True)] if sizes else rows
    lines = measured.lines()
    return TEXT.format(
        metadata=_metadata(clf, f"{source}, pruned", measured),
        source=source,
        gone=clf.num_layers * clf.num_heads - sum(map(len, kept)),
        heads=clf.num_layers * clf.num_heads,
        family=clf.family.title,
        parameters=sum(weight.numel() for weight in clf.model.parameters()),
        model=type(clf.model).__name__,
        cost="".join(f"- {line}\n" for line in lines) or "Not measured.\n",
        portable=PORTABLE.format(model=type(clf.model).__name__, trust=TRUST) if portable else "",
        table="\n".join(f"| {' | '.join(row)} |" for row in (title, ["---"] * len(title), *rows)),
    )


def _metadata(clf: Network, title: str, measured: Measured) -> str:
    from huggingface_hub import EvalResult, ModelCardData

    pipeline = PIPELINES.get(str(getattr(clf, "job", "")))
    of_hub = "/" in clf.name and is_hub_id(clf.name) and not Path(clf.name).is_dir()
    results = [
        EvalResult(pipeline or "other", measured.task, measured.task, name, value)
        for name, value in measured.metrics.items()
        if measured.task
    ]
    return ModelCardData(
        library_name="transformers",
        base_model=clf.name if of_hub else None,
        base_model_relation="finetune" if of_hub else None,  # the hub has no word for a pruned model
        pipeline_tag=pipeline,
        tags=["headviz", "pruned", "attention-heads"],
        model_name=title if results else None,
        eval_results=results or None,
    ).to_yaml()


TEXT = """---
{metadata}
---

# {source}, pruned

{gone} of {heads} attention heads of this {family} model have been removed. It has {parameters:,} parameters.

## What it costs

{cost}
## How to load it

```python
import headviz  # pip install headviz: lets transformers open layers with different numbers of heads
from transformers import AutoTokenizer, {model}

model = {model}.from_pretrained("this-folder")
tokenizer = AutoTokenizer.from_pretrained("this-folder")
```

Or `clf = headviz.load("this-folder")`. Without headviz, transformers warns of an unknown quantization type and raises
a size mismatch. Never pass `ignore_mismatched_sizes=True`: it would fill the matrices at random.
{portable}
## What is left

{table}
"""
PORTABLE = """
This folder also opens without headviz, by the code in `modeling_pruned.py`: an `AutoModel` class of transformers'
with `from_pretrained("this-folder", {trust}=True)`. The warning then means nothing.
"""
