"""A process that ends while a thread computes: it ends as usual, at once."""

from __future__ import annotations

import subprocess
import sys

import pytest

from support.marks import some_in_ci

CODE = """
import time, torch
from headviz.ui.shell.job import ending, in_background
begun = []
def work():
    weight = torch.eye(64)
    while not ending.is_set():
        weight @ weight
        begun.append(1)
for name in "ab":
    in_background(work, name)
while len(begun) < 10:
    time.sleep(0.01)
print(time.time(), flush=True)
{end}
"""


ENDS = [("", 0), ("raise SystemExit(3)", 3), ("raise SystemExit('a mistake')", 1)]


@pytest.mark.slow
@pytest.mark.parametrize(("end", "status"), some_in_ci(ENDS, ENDS[1:2]))
def test_a_process_ends_while_its_threads_compute(end: str, status: int) -> None:
    found = subprocess.run([sys.executable, "-c", CODE.format(end=end)], capture_output=True, text=True, check=False)
    assert found.returncode == status, found.stderr
    assert "terminate" not in found.stderr
    assert "Traceback" not in found.stderr
