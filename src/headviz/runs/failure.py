"""What the record of a run says when an error ends it."""

from __future__ import annotations

import errno
from typing import Any

from ..errors import UserError
from .files import FULL, DiskFull


def outcome_of(error: BaseException) -> dict[str, Any]:
    """What the record says of a run that this error ended."""
    return {"error": explain(error), "resumable": not isinstance(error, UserError) or error.resumable}


def explain(error: BaseException) -> str:
    """One line for the person who started the run."""
    if isinstance(error, UserError):
        return str(error)
    if is_out_of_memory(error):
        return (
            "Out of memory. Let fewer runs work at a time or use a machine with more memory and resume, "
            "or start anew with a smaller batch or shorter texts."
        )
    if isinstance(error, OSError) and error.errno in FULL:
        return str(DiskFull("The disk is full. Free some space, then resume the run."))
    first = (str(error).strip() or "no message").splitlines()[0]
    return f"headviz failed here ({type(error).__name__}: {first[:300]}). The log has the details."


def is_out_of_memory(error: BaseException) -> bool:
    """Python's, torch's on the processor, and CUDA's way to say so.

    torch on the processor raises a plain ``RuntimeError``: only its text tells. CUDA's errors are known by name, as
    torch may not be loaded here.
    """
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return True
    if type(error).__name__ == "AcceleratorError":  # any error of the device
        return "memory" in str(error)
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    return isinstance(error, RuntimeError) and (
        "can't allocate memory" in str(error) or "not enough memory" in str(error)
    )
