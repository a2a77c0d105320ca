"""Results read back from their JSON by the types of their fields: the other way round of ``results.plain``."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Mapping
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np

from ..heads import HeadId, HeadMask


def restored(kind: Any, value: Any, shape: tuple[int, int]) -> Any:
    """``value`` as a ``kind``; null is NaN again where a number belongs. ``shape`` is layers × heads of its masks."""
    if get_origin(kind) in (Union, UnionType):
        return None if value is None else restored(get_args(kind)[0], value, shape)
    if kind is float:
        return float("nan") if value is None else float(value)
    if kind is HeadMask:
        return HeadMask.from_hex(value, *shape)
    if kind is HeadId:
        return HeadId.parse(value)
    if get_origin(kind) is np.ndarray:
        return np.array(value, dtype=float)
    if get_origin(kind) is tuple:
        inner = get_args(kind)
        kinds = [inner[0]] * len(value) if inner[-1] is Ellipsis else inner
        return tuple(restored(k, v, shape) for k, v in zip(kinds, value, strict=True))
    if dataclasses.is_dataclass(kind):
        return _object(kind, value, shape)
    return value


def made_by(function: Callable[..., Any]) -> Any:
    """The type that a function says it returns, one that its module knows."""
    return vars(sys.modules[function.__module__])[function.__annotations__["return"]]


def _object(kind: Any, value: Mapping[str, Any], shape: tuple[int, int]) -> Any:
    hints = get_type_hints(kind)
    names = [f.name for f in dataclasses.fields(kind) if f.name in value]
    return kind(**{name: restored(hints[name], value[name], shape) for name in names})
