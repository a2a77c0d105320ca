"""Refuse a model that is not as its family's sheet describes it: adapters, quantised or parametrised weights, hooks.

headviz reads and cuts matrices by the sheet's paths, so what wraps a matrix would be read past. ``require_described``
checks a whole model; ``described`` checks one module where its path is resolved, since a model can be changed later.
"""

from __future__ import annotations

import copy
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from torch import Tensor, nn

from ..errors import ModelError
from .families.sheet import Family

# packages whose modules compute with more than their weight, and what to do about it
MERGE = "Merge the adapter first: give headviz.wrap the PEFT model itself, or what its merge_and_unload() returns."
FLOAT = "Use the model's float weights, as they were before quantising."
FOREIGN = {"peft.": MERGE, "torch.ao.": FLOAT, "torchao.": FLOAT, "bitsandbytes.": FLOAT}
PLAIN = "Give the model with plain weights in this place."

HOOKS = ("_forward_pre_hooks", "_forward_hooks", "_backward_pre_hooks", "_backward_hooks")
WATCHING = ("transformers.", "peft.peft_model", "peft.mixed_model")  # whose hooks only collect, or ask for gradients
PLACING = ("AlignDevicesHook", "CpuOffload")  # accelerate's hooks that only move tensors


def described(module: Any, kind: type[nn.Module], path: str, name: object) -> Any:
    """The module, if it is a plain one of this kind; a ``ModelError`` otherwise."""
    _refuse(_unlike(module) or _misplaced(module, kind), path, name)
    return module


def require_described(model: Any, family: Family, name: object) -> None:
    """Refuse a model with a module, weight or hook that the sheet does not know of and headviz would pass over."""
    for path, module in model.named_modules():
        _refuse(_unlike(module) or _hooked(module), path, name)
    modules = dict(model.base_model.named_modules())
    for path, kind in _places(family, model.config, modules):
        if path not in modules:
            _refuse((f"there is no {kind.__name__}", PLAIN), path, name)
        _refuse(_misplaced(modules[path], kind), path, name)


def refuse_parallel(model: object) -> None:
    """Refuse what runs copies of a model, and name the model."""
    if isinstance(model, nn.DataParallel | nn.parallel.DistributedDataParallel):
        raise ModelError(f"{type(model).__name__} wraps the model. Give model.module.")


def is_peft(model: object) -> bool:
    """Whether it is PEFT's model around one of transformers."""
    return any(kind.__module__.startswith("peft.") for kind in type(model).__mro__)


def inside(model: Any) -> Any:
    """The transformers model inside a PEFT model, adapters and all."""
    if not hasattr(model, "get_base_model"):
        raise ModelError(f"'{type(model).__name__}' is a part of a PEFT model. {MERGE}")
    return model.get_base_model()


def merged(model: Any, name: object) -> Any:
    """A copy of the transformers model inside a PEFT model, with the active adapters merged into its weights."""
    inside(model)
    if not hasattr(model, "merge_and_unload"):  # prompts and prefixes
        raise ModelError(
            f"What PEFT adds to '{name}' cannot be merged into its weights, so its heads can be neither scored "
            "nor removed. headviz.masked switches heads off in the model as it is."
        )
    if model.get_model_status().enabled is not True:
        raise ModelError(f"Adapters of '{name}' are switched off. Switch them on, or give its base model.")
    for path, module in model.named_modules():  # merging drops the hooks of adapters
        _refuse(_hooked(module), path, name)
    return copy.deepcopy(model).merge_and_unload()


def without_wrappers(model: nn.Module) -> None:
    """Take off what accelerate put around forward passes, in place: placement, and the precision of a training.

    It would hide attention modules of ours, and compute in another precision than that of the weights.
    """
    for module in model.modules():
        for name in ("forward", "_hf_hook", "_old_forward", "_original_forward"):
            vars(module).pop(name, None)


def _places(family: Family, config: Any, modules: Mapping[str, Any]) -> Iterator[tuple[str, type[nn.Module]]]:
    """Where the sheet says a module of a known class is, below the base model, which has these ``modules``."""
    for stack, rows in family.stacks(config).items():
        attention = family.attention[stack]
        for layer in range(len(rows)):
            where = family.place(config, layer)
            for path in (attention.query, attention.key, attention.value, attention.output):
                yield path.format(**where), family.matrix
            for path in attention.further:
                if (full := f"{attention.module}.{path}".format(**where)) in modules:
                    yield full, family.matrix
            for path, kind in family.read_by_post_norm():
                yield path.format(**where), kind
        if attention.position_table:
            yield attention.position_table, nn.Embedding
    for parts in family.layers.values():
        for layer in range(len(modules.get(parts.modules, ()))):
            for path in (*parts.writes, *parts.inner, parts.outer):
                if path and ((full := f"{parts.modules}.{layer}.{path}") in modules or path in parts.writes):
                    yield full, family.matrix


def _misplaced(module: nn.Module, kind: type[nn.Module]) -> tuple[str, str] | None:
    if type(module) is kind:
        return None
    return f"{type(module).__name__} stands in the place of {kind.__name__}", PLAIN


def _unlike(module: nn.Module) -> tuple[str, str] | None:
    """Why a module's weights are not plain numbers in memory, and what to do; None where they are."""
    for package, remedy in FOREIGN.items():
        if type(module).__module__.startswith(package):
            return f"it holds {package.rstrip('.')}'s {type(module).__name__}", remedy
    if "parametrizations" in module._modules:  # torch's is_parametrized, without a slow miss in each module
        return (
            f"it holds a parametrised module ({type(module).__name__})",
            "Call torch.nn.utils.parametrize.remove_parametrizations on it.",
        )
    for key, tensor in (*module._parameters.items(), *module._buffers.items()):
        if tensor is not None and type(tensor) not in (nn.Parameter, Tensor):
            return f"it holds a {key} of type {type(tensor).__name__}", PLAIN
        # accelerate keeps weights elsewhere for which a device has no room
        if tensor is not None and tensor.is_meta and not _UNFILLED.get():
            return f"it holds a {key} that is not in memory", "Load the whole model onto one device."
    return None


_UNFILLED: ContextVar[bool] = ContextVar("headviz_unfilled", default=False)


@contextmanager
def unfilled() -> Generator[None]:
    """In this block models may be cut whose weights have not been read yet."""
    token = _UNFILLED.set(True)
    try:
        yield
    finally:
        _UNFILLED.reset(token)


def _hooked(module: Any) -> tuple[str, str] | None:
    """What is hooked to a module and may change its values, and what to do; None where nothing is."""
    for kind in HOOKS:
        for hook in getattr(module, kind).values():
            if not str(getattr(hook, "__module__", "")).startswith(WATCHING):
                title = kind.strip("_").removesuffix("s").replace("_", " ")
                return f"it has a {title} that may change values, {_named(hook)}", "Remove it first."
    forward, original = vars(module).get("forward"), vars(module).get("_original_forward")
    mixed = getattr(forward, "__module__", "") == "accelerate.utils.operations"  # the mixed precision of a training
    if forward is None or getattr(original if mixed else forward, "__func__", None) is type(module).forward:
        return None
    hook = getattr(module, "_hf_hook", forward)
    changing = [h for h in getattr(hook, "hooks", (hook,)) if type(h).__name__ not in PLACING]
    if not changing:
        return None
    return f"its forward is replaced and may change values, by {_named(changing[0])}", "Remove it first."


def _refuse(clash: tuple[str, str] | None, path: str, name: object) -> None:
    if clash is not None:
        why, remedy = clash
        raise ModelError(f"'{name}' is not a plain model: {why}, at {path or 'its top'}. {remedy}")


def _named(hook: object) -> str:
    return str(getattr(hook, "__qualname__", type(hook).__qualname__))
