"""The demo's tables: read from the files that are shipped."""

from collections.abc import Sequence
from pathlib import Path

from ..errors import UserError

DATA = Path(__file__).parent / "data"


def shipped(name: str) -> Path:
    """The path of a shipped file, which must be there."""
    path = DATA / name
    if not path.exists():
        raise UserError(f"The demo's data are missing ({path}). Reinstall headviz, or run python -m tools.demo.ship.")
    return path


def columns(name: str, names: Sequence[str]) -> list[list[str]]:
    """Columns of a shipped Parquet file."""
    import pyarrow.parquet as pq

    table = pq.read_table(shipped(name), columns=list(names))
    return [table[column].to_pylist() for column in names]
