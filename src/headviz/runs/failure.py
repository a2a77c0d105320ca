"""What the record of a run says when an error ends it: a line for people, a code for programs."""

from __future__ import annotations

import errno
from typing import Any

from ..errors import UserError
from ..storage.writing import disk_error
from .files import DiskFull
from .record import FAULT, OUT_OF_MEMORY


def outcome_of(error: BaseException) -> dict[str, Any]:
    """What the record says of a run that this error ended: ``error``, ``code`` and ``resumable``."""
    if isinstance(error, UserError):
        return {"error": str(error), "code": error.code, "resumable": error.resumable}
    code, text = _explained(error)
    return {"error": text, "code": code, "resumable": True}


def _explained(error: BaseException) -> tuple[str, str]:
    if is_out_of_memory(error):
        return OUT_OF_MEMORY, (
            "Out of memory. Let fewer runs work at a time or use a machine with more memory and resume, "
            "or start a new run with a smaller batch or shorter texts."
        )
    if (told := disk_error(error)) is not None:
        return DiskFull.code, f"{told} Then resume the run."
    first = (str(error).strip() or "no message").splitlines()[0]
    return FAULT, f"headviz failed here ({type(error).__name__}: {first[:300]}). The log has the details."


def is_out_of_memory(error: BaseException) -> bool:
    """Whether Python, torch or CUDA ran out of memory.

    torch on the processor raises a plain ``RuntimeError``, so only its text tells. CUDA's errors are known by the
    name of their type, because torch may not be loaded here.
    """
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return True
    if type(error).__name__ == "AcceleratorError":
        return "out of memory" in str(error)  # CUDA's own name of this one; "illegal memory access" is a fault
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    return isinstance(error, RuntimeError) and (
        "can't allocate memory" in str(error) or "not enough memory" in str(error)
    )
