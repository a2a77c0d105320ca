"""headviz: look into attention heads, switch them off, see what it costs, prune for real.

``import headviz`` is light: torch and transformers load at the first call that needs them.
"""

import os
import re
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from . import plugins
from .models.opening import register_with_transformers
from .results import shown_by

__version__ = "0.2.0.dev0"

register_with_transformers()
if sys.platform == "darwin":  # read when torch is imported: what MPS lacks runs on the processor, and torch warns of it
    os.environ.setdefault("PYTORCH_ENABLE_MPS_FALLBACK", "1")

# name -> its module, loaded at first use. No public name may be that of a module on this level: importing the module
# anywhere would put it in the function's place. The names of rooms are there as long as the rooms are.
_STUB = Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8")
_MODULES = {name: module for module, name in re.findall(r"^from \.(\S+) import (\w+) as", _STUB, re.MULTILINE)}
_LAZY = {name: module for name, module in _MODULES.items() if not module.startswith("extras.")}

__all__ = ["__version__", *_LAZY, *plugins.public_names()]


def _display(way: str) -> Callable[..., Any]:
    return lambda value, **options: getattr(import_module(".notebook.display", __name__), way)(value, **options)


shown_by(html=_display("html"), text=_display("text"), figure=_display("figure"))


def __getattr__(name: str) -> Any:
    module = f"{__name__}.{_LAZY[name]}" if name in _LAZY else plugins.module_of(name)
    value = getattr(import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
