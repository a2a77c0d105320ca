"""Leave one core to the statistics: torch uses one thread fewer while they run.

With as many torch threads as cores, the statistics would take a core from one of them, and at the end of every small
matrix product all the others would wait for it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch

_lock = threading.Lock()
_users = 0
_before = 1


@contextmanager
def room_for_statistics() -> Iterator[None]:
    """Nests and may be entered by several threads; the last one out restores the number of threads."""
    global _users, _before
    with _lock:
        if _users == 0:
            _before = torch.get_num_threads()
            torch.set_num_threads(max(1, _before - 1))
        _users += 1
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if _users == 0:
                torch.set_num_threads(_before)
