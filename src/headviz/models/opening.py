"""Let plain transformers open pruned models: register what builds their layers as transformers is imported.

``import headviz`` calls ``register_with_transformers`` and stays light: nothing is imported before transformers is.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any

TABLES = "transformers.quantizers.auto"  # where transformers keeps its quantisers


def register_with_transformers() -> None:
    """Register now if transformers is there, else as soon as it is imported."""
    if TABLES in sys.modules:
        _register()
    elif not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


class _Finder(MetaPathFinder):
    """Finds one module, once, as usual, and registers after it has run."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != TABLES:
            return None
        sys.meta_path.remove(self)
        spec = find_spec(fullname)
        if spec is None or spec.loader is None:
            return spec
        loader: Any = spec.loader
        run = loader.exec_module

        def run_and_register(module: ModuleType) -> None:
            run(module)
            _register()

        loader.exec_module = run_and_register
        return spec


def _register() -> None:
    import_module(".uneven", __package__)  # registers at its end; it may be what imports transformers just now
