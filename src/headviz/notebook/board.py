"""``headviz.show``: the dashboard in a notebook's cell, on a model, data and a mask of the notebook."""

from __future__ import annotations

import atexit
import json
import os
import socket
import subprocess
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from ..commands import serve
from ..errors import MaskError, OptionError, UserError
from ..heads import HeadMask
from ..models import NAMED
from ..results import Shown
from ..storage.exchange import MaskLike
from ..storage.writing import replace_file
from ..tasks import load_task

if TYPE_CHECKING:
    from ..models.base import Model
    from ..tasks import Dataset

HOST = "127.0.0.1"
WAIT = 120  # seconds for the server's start
PAGES = {name: name for name in ("scores", "head", "masklab", "compare", "analyses")}
PAGES |= {"workbench": "", "heads": "scores"}  # "heads" is the older name of "scores"


@dataclass(frozen=True)
class Board(Shown):
    """A page of the running dashboard. In a notebook it shows itself; ``url`` opens it in a tab of its own."""

    url: str
    height: int = 900

    def __repr__(self) -> str:
        return f"<Board {self.url}>"

    def _repr_html_(self) -> str:
        link = escape(self.url)
        return (
            f'<iframe src="{link}" title="headviz" width="100%" height="{self.height}" style="border:0"></iframe>'
            f'<div><a href="{link}" target="_blank">open in a tab</a></div>'
        )


def show(
    model: Model | str = "demo",
    data: Dataset | None = None,
    mask: MaskLike | None = None,
    *,
    page: str = "masklab",
    height: int = 900,
) -> Board:
    """Open the dashboard on a model, data and a mask, inside the notebook.

    ``model`` is a loaded model or what ``headviz.load`` takes. ``page`` is one of "workbench", "scores", "head",
    "masklab", "compare" and "analyses". One server serves all boards of this Python process, on this machine only, and
    ends with it. A model or data set without a name that headviz loads is written into a temporary folder, which is
    removed at the same time.

    >>> import headviz
    >>> board = headviz.show("demo", page="scores")  # doctest: +SKIP
    """
    if page not in PAGES:
        raise OptionError(
            f"There is no page '{page}' to show. Choose one of {', '.join(p for p in PAGES if p != 'heads')}."
        )
    if isinstance(height, bool) or not isinstance(height, int) or not 100 <= height <= 10_000:
        raise OptionError("height is a number of pixels, from 100 to 10000.")
    if not isinstance(model, str):
        from ..models.network import require_model

        require_model(model)
    fields = {"model": model if isinstance(model, str) else name_of(model)}
    if data is not None:
        fields |= address_of(data)
    if mask is not None:
        mask = mask if isinstance(model, str) else model.under(mask)
        if not isinstance(mask, HeadMask):
            raise MaskError("A model's name does not say its grid of heads. Give a HeadMask, or the loaded model.")
        fields["mask"] = mask.hex
    return Board(f"{server_address()}{PAGES[page]}?{urlencode({**fields, 'embed': 'true'})}", height)


def name_of(model: Model) -> str:
    """A name or a folder under which the dashboard finds the same weights."""
    from ..models.loading import load

    digest = ""
    if model.name in NAMED or os.path.isdir(model.name) or "/" in model.name:
        with suppress(UserError):  # the user gave the model this name, and nothing can be loaded by it
            digest = load(model.name, device="cpu").digest
    if digest == model.digest:
        return model.name if model.name in NAMED or not os.path.isdir(model.name) else str(Path(model.name).resolve())
    folder = own_folder() / f"model-{model.digest[:16]}"
    if not folder.exists():
        model.save(folder)
    return str(folder)


def address_of(data: Dataset) -> dict[str, str]:
    """The address's fields for these examples: their task if it gives exactly these, else files that hold them."""
    if data.split == "dev":
        with suppress(UserError):  # the data come from files
            if load_task(data.task.name, limit=len(data)).digest == data.digest:
                return {"task": data.task.name, "limit": str(len(data))}
    if not data.answer.decides:
        raise OptionError(
            f"Only classes can be shown from a notebook; '{data.task.name}' has another kind of answer. Open its files "
            "instead."
        )
    folder = own_folder() / f"data-{data.digest[:16]}"
    folder.mkdir(exist_ok=True)
    rows = [
        {k: v for k, v in {"a": e.text, "b": e.pair, "label": e.label, "slice": e.slice}.items() if v is not None}
        for e in data
    ]
    replace_file(folder / "dev.jsonl", "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    fields = {"task": "custom", "data": str(folder), "columns": "a,b" if data.pairs is not None else "a", "limit": "0"}
    fields |= {"label": "label"} if data.labels is not None else {}
    return fields | ({"groups": "slice"} if data.slices is not None else {})


@cache
def own_folder() -> Path:
    """A temporary folder of this process, removed at its end."""
    folder = tempfile.TemporaryDirectory(prefix="headviz-notebook-")
    atexit.register(folder.cleanup)
    return Path(folder.name)


@cache
def server_address() -> str:
    """The address of this process's dashboard, which is started at the first call."""
    with socket.socket() as free:
        free.bind((HOST, 0))
        port = free.getsockname()[1]
    command, environment = serve.server(HOST, port, [str(own_folder())], headless=True)
    log = own_folder() / "server.log"
    with log.open("w") as out:
        process = subprocess.Popen(
            command, env={**environment, "HEADVIZ_NOTEBOOK": "1"}, stdout=out, stderr=out, stdin=subprocess.DEVNULL
        )
    atexit.register(process.terminate)
    address = f"http://{HOST}:{port}/"
    if not serve.answers(address, WAIT, lambda: process.poll() is None):
        process.terminate()
        lines = log.read_text(errors="replace").strip().splitlines()
        raise UserError(f"The dashboard did not start: {lines[-1] if lines else 'it printed nothing'}.")
    return address
