"""What the record of a run says of the error that ended it."""

from __future__ import annotations

import errno

import pytest

from headviz.runs.carrier import is_out_of_memory, outcome_of
from headviz.runs.record import FAULT, OUT_OF_MEMORY

# torch may lack the type, and needs a device to raise it
AcceleratorError = type("AcceleratorError", (RuntimeError,), {})


@pytest.mark.parametrize(
    ("error", "memory"),
    [
        (MemoryError(), True),
        (AcceleratorError("CUDA error: out of memory"), True),
        (AcceleratorError("CUDA error: an illegal memory access was encountered"), False),
        (OSError(errno.ENOMEM, "no memory"), True),
        (RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate"), True),
        (RuntimeError("memory format is not contiguous"), False),
    ],
)
def test_only_want_of_memory_is_called_out_of_memory(error: BaseException, memory: bool) -> None:
    assert is_out_of_memory(error) is memory
    assert outcome_of(error)["code"] == (OUT_OF_MEMORY if memory else FAULT)
