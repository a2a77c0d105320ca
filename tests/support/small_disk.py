"""A disk that can really be full: a small tmpfs, mounted in a namespace of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

FILL = """
def fill():
    '''Take what is free; how many blocks are left.'''
    import os, sys
    with open(f"{sys.argv[1]}/filler", "wb", buffering=0) as filler:
        try:
            while filler.write(bytes(4096)):
                pass
        except OSError:
            pass
    return os.statvfs(sys.argv[1]).f_bavail
"""


def run_on_small_disk(place: Path, script: str, size: str = "2m") -> list[str]:
    """What a Python script prints while ``place``, its first argument and its ``HEADVIZ_HOME``, is a disk of that size.

    The script may call ``fill``. Skips where a user may not mount one. A script that fails is an error.
    """
    place.mkdir()
    mount = f'mount -t tmpfs -o size={size} tmpfs "$1" && exec "$2" -c "$0" "$1"'
    given = [FILL + textwrap.dedent(script), str(place), sys.executable]
    try:
        done = subprocess.run(
            ["unshare", "-rm", "sh", "-c", mount, *given],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "HEADVIZ_HOME": str(place)},
        )
    except FileNotFoundError:
        pytest.skip("this machine has no unshare")
    if "mount:" in done.stderr or "unshare:" in done.stderr:
        pytest.skip("this machine does not let a user mount a small tmpfs")
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()
