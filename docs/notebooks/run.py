"""Run the notebooks from top to bottom and write them with what they show: ``python docs/notebooks/run.py [NAME …]``.

Needs the extra ``notebook``. A cell with the tag ``skip-execution`` is left as it is. Figures are kept as data, which
Jupyter draws; nothing of this machine, such as a path or a time stamp, is kept. ``--check`` runs without writing.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
KEPT = {"text/plain", "text/html", "application/vnd.plotly.v1+json"}
LONGEST = 600  # seconds for a cell


def executed(path: Path) -> Any:
    """The notebook with its outputs; an error in a cell is raised."""
    import nbformat
    from nbclient import NotebookClient

    os.environ["PLOTLY_RENDERER"] = "plotly_mimetype"  # no copy of plotly's code in the file
    book = nbformat.read(path, as_version=4)
    NotebookClient(book, timeout=LONGEST, startup_timeout=LONGEST, kernel_name="python3", record_timing=False).execute(
        cwd=str(HERE)
    )
    for cell in book.cells:
        if cell.cell_type == "code":
            cell.outputs = [cleaned(output) for output in cell.outputs if output.get("name") != "stderr"]
    book.metadata = {"kernelspec": book.metadata["kernelspec"], "language_info": {"name": "python"}}
    return book


def cleaned(output: Any) -> Any:
    """An output without what only this machine has."""
    if "data" in output:
        output["data"] = {kind: body for kind, body in output["data"].items() if kind in KEPT}
        figure = output["data"].get("application/vnd.plotly.v1+json")
        if figure is not None:
            figure["layout"].pop("template", None)  # plotly's own default
    return output


def private(path: Path) -> list[str]:
    """Absolute paths of a machine, and addresses, that stand in a notebook."""
    return re.findall(r"(?<![\w.:/<\\-])/(?:[\w.-]+/)+[\w.-]+|https?://[^\s\"\\)]+", path.read_text("utf-8"))


def main() -> int:
    names = [name for name in sys.argv[1:] if not name.startswith("-")]
    for path in sorted(HERE.glob("*.ipynb")):
        if names and path.stem not in names:
            continue
        book = executed(path)
        if "--check" not in sys.argv:
            import nbformat

            nbformat.write(book, path)
        print(f"{path.stem}: {path.stat().st_size / 1024:.0f} kB", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
