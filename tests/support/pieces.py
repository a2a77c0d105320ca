"""A job's pieces one by one, as some process would do them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from headviz.engine import Job, Order, Workplace


def after(job: Job, state: Any, piece: str, place: Path | Workplace, *tools: Any) -> Any:
    """The state with one more piece in it; a folder is a process that has loaded nothing yet."""
    workplace = place if isinstance(place, Workplace) else Workplace(job, place)
    return job.absorb(state, piece, workplace.do(Order.of(job, state, piece), *tools))
