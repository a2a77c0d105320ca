"""Threads wait briefly in headviz's own programs, unless the user has chosen, and never in a mere import."""

import os
import subprocess
import sys

import pytest

from headviz.models.fast.thread_spinning import short_waits


@pytest.mark.parametrize("chosen", ["OMP_WAIT_POLICY", "GOMP_SPINCOUNT"])
def test_the_users_choice_stands(chosen: str) -> None:
    assert short_waits({chosen: "ACTIVE"}) == {}
    assert short_waits({"PATH": "/bin"}) == {"GOMP_SPINCOUNT": "1000"}


@pytest.mark.parametrize(
    ("code", "expected"), [("import headviz", None), ("from headviz.cli import main; main(['--version'])", "1000")]
)
def test_programs_set_it_and_the_library_does_not(code: str, expected: str | None) -> None:
    bare = {k: v for k, v in os.environ.items() if k not in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")}
    run = subprocess.run(
        [sys.executable, "-c", f"{code}; import os; print(); print(os.environ.get('GOMP_SPINCOUNT'))"],
        capture_output=True,
        text=True,
        check=True,
        env=bare,
    )
    assert run.stdout.split()[-1] == str(expected)
