"""Models: loading, families, identity, real pruning, saving. The only place that knows module paths."""

import re

from ..errors import ModelError, shown, unknown_choice

NAMED = {"demo": "finetuned", "demo-pretrained": "pretrained", "demo-translation": "translation"}  # the shipped ones
LENGTH = 128  # tokens for which FLOPs and speeds are reported; speeds at the model's longest text, if that is shorter
DEVICES = ("auto", "cpu", "cuda", "mps")
DTYPES = ("float32", "bfloat16", "float16")
EXPORTED = ("float32", "int8")  # precisions of an ONNX file


def device_named(name: str) -> str:
    """The name of a device; whether this machine has it is known once torch is imported."""
    if not re.fullmatch(rf"({'|'.join(DEVICES)})(:\d{{1,3}})?", name) or name.startswith("auto:"):
        text = name[:40]
        raise ModelError(f"Device '{text}' is not available here. Choose one of: {', '.join(DEVICES)}.")
    return name


def dtype_named(dtype: object) -> str:
    """The name of a precision, float32 for None."""
    name = "float32" if dtype is None else (dtype if isinstance(dtype, str) else shown(dtype)).removeprefix("torch.")
    if name not in DTYPES:
        raise ModelError(unknown_choice("dtype", name, DTYPES))
    return name
