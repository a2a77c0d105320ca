"""Writing models to disk: ours after real pruning, transformers' own format otherwise."""

from __future__ import annotations

import copy
import dataclasses
import json
import platform
import runpy
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import huggingface_hub
import torch
from torch import nn

from ..attention import quiet, transformers
from ..errors import ModelError, OptionError
from ..heads import HeadMask
from ..results import plain
from ..storage.exchange import MaskLike
from ..storage.paths import new_folder
from ..storage.writing import disk_errors
from .feed_forward import fill_up, neurons, require_known, uneven
from .folder_check import first_line, read_json
from .hub import is_hub_id
from .network import Network, has_own_bias, weight_bytes
from .pruning import entries, fill_in, parts, require_even, settle, widen, zero_columns
from .recorded import CODE_OF, POSITIONS, SHAPES, record

# -----------------------------------------------------------------------------------------------
# The README of a saved pruned model: a model card that says what was removed, what that costs, and how to load it.


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
    command: str = ""  # the line that made the model

    @classmethod
    def of(cls, result: Any, task: str = "") -> Measured:
        """From the result of ``headviz.prune_faster`` or ``headviz.paired``, or what its ``to_dict`` gives."""
        record: Any = result.to_dict() if hasattr(result, "to_dict") else result if isinstance(result, Mapping) else {}
        if "difference" in record:
            return cls(task, change=record)
        if "speedup_low" not in record:
            raise ModelError(
                f"A card is written of prune_faster's result or of paired's, not of {type(result).__name__}."
            )
        table = record["table"]
        threads = f"{table['threads']} thread{'s' if table['threads'] != 1 else ''}"
        where = f"batches of {record['batch']} texts of {record['length']} tokens, {table['device']}, {threads}"
        where += f", {platform.machine()}" if table["device"].startswith("cpu") else ""
        speedup = (record["speedup"], record["speedup_low"], record["speedup_high"])
        return cls(task, record["metrics"] or {}, record["change"], speedup, where)

    def lines(self) -> list[str]:
        """The same as sentences; empty where nothing was measured."""
        out = []
        if self.change is not None and self.change["difference"] is not None:
            low, high = self.change["low"], self.change["high"]
            ends = "no interval" if low is None or high is None else f"95 % interval {low:+.4f} to {high:+.4f}"
            out.append(
                f"{self.change['metric']}{f' on {self.task}' if self.task else ''}: {self.change['difference']:+.4f} "
                f"({ends}, {self.change['n']:,} examples), against the model before."
            )
        out += [f"{name}: {value:.4f}" for name, value in self.metrics.items() if value is not None]
        if self.speedup is not None:
            times, low, high = self.speedup
            out.append(f"{times:.2f} times as fast (95 % interval {low:.2f} to {high:.2f}): {self.where}.")
        return out


def card(clf: Network, portable: bool, full_source: str, measured: Measured) -> str:
    """The text of README.md, with the hub's metadata in front."""
    source = Path(full_source).name or type(clf.model).__name__
    kept = [clf.present.kept_in(row) for row in range(clf.num_layers)]
    table = [["layer", "heads"], ["---", "---"]]
    table += [[clf.row_name(row), " ".join(map(str, heads)) or "none"] for row, heads in enumerate(kept)]
    sizes = neurons(clf) if len(clf.stacks) == 1 else []  # of several stacks a row is no layer
    if sizes:
        column = ["neurons", "---", *(f"{size:,}" for size in sizes)]
        table = [[*row, cell] for row, cell in zip(table, column, strict=True)]
    return TEXT.format(
        metadata=_metadata(clf, full_source, f"{source}, pruned", measured),
        source=source,
        gone=len(clf.present.off),
        heads=clf.present.size,
        family=clf.family.title,
        parameters=sum(weight.numel() for weight in clf.model.parameters()),
        model=type(clf.model).__name__,
        cost="".join(f"- {line}\n" for line in measured.lines()) or "Not measured.\n",
        portable=PORTABLE.format(trust=TRUST) if portable else "",
        table="\n".join(f"| {' | '.join(row)} |" for row in table),
    )


def _origin(clf: Network, measured: Measured | None) -> tuple[str, Measured | None]:
    """The name of the model that was pruned, and what was measured of it. A model loaded from a saved folder has both
    as the folder's record says."""
    folder = Path(clf.name)
    if not clf.name or not (folder / RECORD).is_file():
        return clf.name, measured
    about = read_json(folder / RECORD, clf.name)
    if about.get("digest") != clf.filled(None).digest:  # more is removed since, or trained
        return clf.name, measured
    saved, names = about.get("measured"), {f.name for f in fields(Measured)}
    if measured is None and isinstance(saved, Mapping) and saved.keys() <= names:
        measured = Measured(**saved)
    return str(about.get("source") or clf.name), measured


def _on_hub(source: str) -> bool:
    """Whether a model's name is that of a repository, not of a folder."""
    return is_hub_id(source) and not Path(source).is_dir()


def _metadata(clf: Network, source: str, title: str, measured: Measured) -> str:
    pipeline = PIPELINES.get(str(getattr(clf, "job", "")))
    of_hub = "/" in source and _on_hub(source)
    results = [
        huggingface_hub.EvalResult(pipeline or "other", measured.task, measured.task, name, value)
        for name, value in measured.metrics.items()
        if measured.task and value is not None
    ]
    return huggingface_hub.ModelCardData(
        library_name="transformers",
        base_model=source if of_hub else None,
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
with `from_pretrained("this-folder", {trust}=True)`. Ignore the warning about the quantization type.
"""


# -----------------------------------------------------------------------------------------------
# A pruned model for those who cannot install headviz: one file of modelling code next to the weights.
#
# The file subclasses transformers' own classes and gives their modules the sizes that ``config.json`` lists. Those
# are found by comparing the pruned model with a whole one, so nothing here knows a family.


MODELLING = "modeling_pruned.py"
EQUAL = 1e-4  # the most that a logit may differ, as a share of the largest where that is above 1

CODE = '''"""{title}, pruned: transformers' classes with modules of the sizes that config.json lists as "{shapes}".

Written by headviz, which is not needed:

    {auto}.from_pretrained(folder, {trust}=True)
"""

from functools import partial

import torch
from torch import nn
from transformers import {names}


def cut(base):
    """Give the modules of a whole model the recorded sizes. Their weights are read afterwards."""
    for path, sizes in base.config.{shapes}.items():
        module = base.get_submodule(path)
        for name, size in sizes.items():  # a list is the shape of a weight, a number is a setting
            setattr(module, name, nn.Parameter(torch.empty(size)) if isinstance(size, list) else size)
    for path, heads in base.config.{positions}.items():
        base.get_submodule(path).register_forward_pre_hook(partial(own_positions, heads))


def own_positions(heads, attention, inputs):
    """All layers get one table of positions by head; each keeps those of its own heads."""
    states, mask, positions, *others = inputs
    return (states, mask, positions[:, heads], *others)
'''
CLASS = """

class Pruned{name}({name}):
    cut_by_itself = True  # headviz leaves it alone

    def __init__(self, config, *inputs, **options):
        super().__init__(config, *inputs, **options)
        cut(self.base_model)
"""


def make_portable(clf: Network, config: Any) -> str:
    """The text of the file for a pruned model. Its sizes and ``auto_map`` are written into ``config``."""
    require_even(clf, clf.present)
    model: Any = clf.model
    classes = list(dict.fromkeys(map(_theirs, (model.base_model, model))))
    with torch.device("meta"), quiet():
        whole = classes[-1](copy.deepcopy(model.config))
    setattr(config, SHAPES, dict(_differences(model.base_model, whole.base_model)))
    heads = ((path, getattr(module, "bias_heads", None)) for path, module in model.base_model.named_modules())
    setattr(config, POSITIONS, {path: index.tolist() for path, index in heads if index is not None})
    names = [kind.__name__ for kind in classes]
    opened_by = {
        auto: f"{Path(MODELLING).stem}.Pruned{kind.__name__}"
        for kind in classes
        for auto in _auto_classes(kind, config)
    }
    setattr(config, CODE_OF, opened_by)
    header = CODE.format(
        title=clf.title,
        trust=TRUST,
        auto=list(opened_by)[-1],
        names=", ".join(names),
        shapes=SHAPES,
        positions=POSITIONS,
    )
    return header + "".join(CLASS.format(name=name) for name in names)


def require_equal(clf: Any, folder: Path) -> None:
    """Open a folder by the file in it; a ``ModelError`` unless it gives the outputs of the model."""
    batch = {k: v.cpu() for k, v in clf.sample(["a b c d e"]).items()}
    with quiet(), torch.inference_mode():
        expected = clf.graph(batch, model=copy.deepcopy(clf.model).cpu().eval())[-1].float()
        kind = runpy.run_path(str(folder / MODELLING))[f"Pruned{_theirs(clf.model).__name__}"]
        try:
            model = kind.from_pretrained(folder, use_safetensors=True, dtype=clf.dtype).eval()
            output = clf.graph(batch, model=model)[-1].float()
        except (RuntimeError, ValueError, IndexError) as error:  # layers of a size that a family's code cannot run
            raise ModelError(
                f"{clf.title} with these heads cannot be saved as portable, because transformers' own code does not "
                f"run it ({first_line(error)}). Save it without portable, or leave a head where a layer has none."
            ) from error
    difference = float((output - expected).abs().max()) / max(1.0, float(expected.abs().max()))
    if not difference <= EQUAL:
        raise ModelError(
            f"{clf.title} cannot be saved as portable: by transformers' own code its outputs differ by "
            f"{difference:.2g}. Save it without portable."
        )


def _theirs(model: nn.Module) -> Any:
    """The class of transformers' that a model is of, which one from a portable folder subclasses."""
    return next(kind for kind in type(model).__mro__ if kind.__module__.startswith("transformers.models."))


def _differences(pruned: nn.Module, whole: nn.Module) -> Iterator[tuple[str, dict[str, Any]]]:
    """By module: the shapes of weights and the whole-number settings that a pruned model has and a whole one not."""
    modules = dict(whole.named_modules())
    for path, module in pruned.named_modules():
        other = modules[path]
        shapes = {
            name: list(weight.shape)
            for name, weight in module.named_parameters(recurse=False)
            if getattr(getattr(other, name, None), "shape", None) != weight.shape
        }
        settings = {
            name: value
            for name, value in vars(module).items()
            if type(value) is int and vars(other).get(name, value) != value
        }
        if shapes or settings:
            yield path, shapes | settings


def _auto_classes(kind: type, config: Any) -> Iterator[str]:
    """The names of transformers' classes that choose this model class for a configuration."""
    for auto in vars(transformers.models.auto.modeling_auto).values():
        mapping = (getattr(auto, "_model_mapping", None) if isinstance(auto, type) else None) or {}
        classes = mapping.get(type(config), ())
        if kind in (classes if isinstance(classes, tuple) else (classes,)):
            yield str(auto.__name__)


# -----------------------------------------------------------------------------------------------


RECORD = "headviz.json"
WEIGHTS = "pruned.safetensors"  # of format 1, which only headviz reads
FORMAT = 2


def save(clf: Network, folder: Path, portable: bool = False, measured: Measured | None = None) -> Path:
    """Save a model so that ``headviz.load`` gives equal logits in a fresh process. What stands in the place of heads
    that a mask switches off is not saved.

    With all heads present the folder is a plain transformers folder too. A pruned one is opened by transformers after
    ``import headviz``; with ``portable`` also without headviz, by ``trust_remote_code``. Its README.md is a model card,
    which says what was ``measured``.
    """
    clf.require_described()

    def write(into: Path) -> None:
        clf.tokenizer.save_pretrained(into)
        clf.write_more(into)
        if clf.present.is_full and not uneven(clf.config):
            _save_plain(clf.model, into)
            return
        _save_plain(clf.model, into, clf, portable)
        source, known_measures = _origin(clf, measured)
        about = {
            "format": FORMAT,
            "digest": clf.filled(None).digest,
            "source": source if _on_hub(source) else Path(source).name,
            "heads_per_layer": clf.heads_per_layer,
            "neurons_per_layer": neurons(clf),
            "measured": plain(known_measures),
        }
        (into / RECORD).write_text(json.dumps(about, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        text = card(clf, portable, source, known_measures or Measured())
        (into / "README.md").write_text(text, encoding="utf-8")

    return write_folder(folder, write, weight_bytes(clf.model))


def export_masked(clf: Network, folder: Path, mask: MaskLike | None = None) -> Path:
    """Save all original shapes: removed heads and neurons come back as zeros, heads switched off get zeros in W_O.

    Any transformers version loads the folder and gives the masked logits. It saves no time and no
    memory: use ``prune`` and ``save`` for that.
    """
    if clf.family.shared_layers:
        raise ModelError(
            f"A masked export is not possible: {clf.family.why_not_prunable}. Masks given with each call work."
        )
    if uneven(clf.config):
        require_known(clf.family)
    require_bias(clf)
    under = clf.under(mask)
    whole = with_all_shapes(clf)
    for layer in range(clf.num_layers):
        if heads := under.off_in(layer):
            output = whole.projections(layer).output
            columns = entries(range(clf.num_heads), heads, clf.head_size)
            if clf.fill is not None:
                fill_in(output, clf.fill.values[layer], columns)
            zero_columns(output, columns)

    def write(into: Path) -> None:
        clf.tokenizer.save_pretrained(into)
        clf.write_more(into)
        _save_plain(whole.model, into)

    return write_folder(folder, write, weight_bytes(whole.model))


def require_bias(clf: Network) -> None:
    """Refuse a masked export of what stands in a head's place where plain transformers would not read it."""
    for layer in range(clf.num_layers):
        output = clf.projections(layer).output
        if has_own_bias(output) or (clf.fill is not None and output.bias is None):
            raise ModelError(
                f"{clf.family.title} has no bias behind its attention, so a masked export cannot hold what stands in "
                "a head's place: plain transformers would not read it. Prune for real, which headviz loads."
            )


def with_all_shapes(clf: Network) -> Network:
    """A copy in which removed heads and neurons are back in shape, with zero weights: same logits, original sizes."""
    model = copy.deepcopy(clf.model)
    fill_up(model)
    whole = dataclasses.replace(clf, model=model, present=HeadMask.full(clf.num_layers, clf.num_heads))
    for row in range(clf.num_layers):
        if len(clf.present.kept_in(row)) == clf.num_heads:
            continue
        sizes = [len(part.index) for part in parts(whole, row, whole.present, whole.present)]
        for part, size in zip(parts(whole, row, whole.present, clf.present), sizes, strict=True):
            widen(part, size)
    settle(whole, clf.present)
    return whole


def write_folder(folder: Path, write: Callable[[Path], object], needed: int | None = None) -> Path:
    """Fill a new folder completely or not at all: written under a temporary name, then renamed.

    ``needed`` is about how many bytes it takes, for the message of a full disk.
    """
    try:
        folder = new_folder(folder)
    except OptionError as error:
        raise ModelError(str(error)) from error
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        part = Path(tempfile.mkdtemp(prefix=f".{folder.name[:40]}-", dir=folder.parent))
    except OSError as error:
        raise ModelError(f"Cannot write to '{folder.parent}': {error.strerror}. Choose another place.") from error
    try:
        with disk_errors(folder, needed):
            write(part)
            _open_as_usual(part)
            if folder.exists():
                folder.rmdir()
            part.rename(folder)
    except OSError as error:
        raise ModelError(f"Cannot write '{folder}': {error.strerror or error}. Nothing was kept.") from error
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return folder


def _open_as_usual(folder: Path) -> None:
    """Give all files the permissions of the umask. Temporary folders and safetensors files start private."""
    probe = folder / ".mode"  # asking for the umask would change it for the other threads
    probe.touch()
    mode = probe.stat().st_mode & 0o777
    probe.unlink()
    for path in folder.rglob("*"):
        path.chmod(_enterable(mode) if path.is_dir() else mode)
    folder.chmod(_enterable(mode))


def _enterable(mode: int) -> int:
    """The mode of a folder: whoever may read it may also enter it."""
    return mode | (mode & 0o444) >> 2


def _save_plain(model: Any, folder: Path, pruned: Network | None = None, portable: bool = False) -> None:
    shallow = copy.copy(model)  # the same weights; other threads use the model meanwhile
    shallow.config = plain_config(model.config)
    if pruned is not None:
        record(pruned, shallow.config)
        if portable:
            (folder / MODELLING).write_text(make_portable(pruned, shallow.config), encoding="utf-8")
    with quiet():
        shallow.save_pretrained(folder)
    if pruned is not None and portable:
        require_equal(pruned, folder)


def plain_config(config: Any) -> Any:
    """The configuration without our attention function, which plain transformers does not know."""
    plain = copy.deepcopy(config)
    plain._attn_implementation = None
    return plain
