"""A pruned model for those who cannot install headviz: one file of modelling code beside the weights.

The file subclasses transformers' own classes and gives their modules the sizes that ``config.json`` lists. Those are
found by comparing the pruned model with a whole one, so nothing here knows a family.
"""

from __future__ import annotations

import copy
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn

from ..attention import quiet, transformers
from ..errors import ModelError
from .card import TRUST
from .folder_check import first_line
from .network import Network
from .pruning import require_even
from .recorded import CODE_OF, POSITIONS, SHAPES

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
    own = ((path, getattr(module, "bias_heads", None)) for path, module in model.base_model.named_modules())
    setattr(config, POSITIONS, {path: heads.tolist() for path, heads in own if heads is not None})
    names = [one.__name__ for one in classes]
    opened_by = {
        auto: f"{Path(MODELLING).stem}.Pruned{one.__name__}" for one in classes for auto in _auto_classes(one, config)
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
    """Open a folder by the file in it; a ``ModelError`` unless it gives the model's logits."""
    batch = {k: v.cpu() for k, v in clf.collate(clf.encode(["a b c d e"], ["c d"])).items()}
    with quiet(), torch.inference_mode():
        expected = copy.deepcopy(clf.model).cpu().eval()(**batch).logits.float()
        own = runpy.run_path(str(folder / MODELLING))[f"Pruned{_theirs(clf.model).__name__}"]
        try:
            found = own.from_pretrained(folder, use_safetensors=True, dtype=clf.dtype).eval()(**batch).logits.float()
        except (RuntimeError, ValueError, IndexError) as error:  # layers of a size that a family's code cannot run
            raise ModelError(
                f"{clf.title} with these heads cannot be saved as portable, because transformers' own code does not "
                f"run it ({first_line(error)}). Leave every layer a head, or save it without portable."
            ) from error
    wrong = float((found - expected).abs().max()) / max(1.0, float(expected.abs().max()))
    if not wrong <= EQUAL:
        raise ModelError(
            f"{clf.title} cannot be saved as portable: by transformers' own code its logits differ by {wrong:.2g}. "
            "Save it without portable."
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


def _auto_classes(own: type, config: Any) -> Iterator[str]:
    """The names of transformers' classes that choose this model class for a configuration."""
    for auto in vars(transformers.models.auto.modeling_auto).values():
        mapping = (getattr(auto, "_model_mapping", None) if isinstance(auto, type) else None) or {}
        found = mapping.get(type(config), ())
        if own in (found if isinstance(found, tuple) else (found,)):
            yield str(auto.__name__)
