"""Make the threads of a matrix product wait for each other without spinning for long.

By default a waiting thread spins for milliseconds. When other programs run on the machine, spinning threads take the
processor from the threads they wait for, and work becomes many times slower. So a thread spins a thousand times and
then sleeps, which costs nothing on a quiet machine. Only headviz's own programs set this; the library does not.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

_TURNS = {"GOMP_SPINCOUNT": "1000"}
_OWN_CHOICE = ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")


def short_waits(environment: Mapping[str, str]) -> dict[str, str]:
    """What to add to the environment of a process before it loads torch; nothing where the user has chosen."""
    return {} if any(name in environment for name in _OWN_CHOICE) else dict(_TURNS)


def wait_briefly() -> None:
    """The same for this process and those it starts. In time only before torch is loaded."""
    os.environ.update(short_waits(os.environ))
