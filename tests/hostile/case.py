"""A hostile case: a name, which says how to do it again, and a call.

The call may give anything, or raise a ``UserError`` of one line; a command may exit with 0 or 2. Everything else is a
finding.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Case:
    kind: str
    name: str
    run: Callable[[], Any]
    command: bool = False
