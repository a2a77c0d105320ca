"""What the dashboard shows: every page and tab on three models, and further views of the demo."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from parts import DONOR, RUN, TEXT, places
from recording import Record, plain

MASK = "fff" * 3 + "f0f" + "fff" * 8
DEMO = {"limit": "26"}
OWN = {"a": TEXT[0], "b": TEXT[1]}
DONORS = {"tab": "Patching", "donor": DONOR[0], "donor_pair": DONOR[1]}
VIEWS: dict[str, tuple[str, dict[str, str]]] = {
    "scores bands": ("scores", {"side": "bands"}),
    "scores board": ("scores", {"side": "board"}),
    "scores chosen": ("scores", {"head": "4.10", "score": "taylor", "mask": MASK}),
    "head arcs": ("head", {"head": "4.10", "picture": "arcs", "writes": "1"}),
    "head layer": ("head", {"head": "4.10", "picture": "layer", **OWN}),
    "head words": ("head", {"head": "4.10", "places": "strongest", **OWN}),
    "masklab mask": ("masklab", {"mask": MASK}),
    "masklab mean": ("masklab", {"mask": MASK, "ablation": "mean:32"}),
    "masklab presented": ("masklab", {"mask": MASK, "present": "1", "story": "2"}),
    "compare text": ("compare", {"mask": MASK, **OWN}),
    "compare patching": ("compare", {**DONORS, **OWN}),
    "compare explanations": ("compare", {"tab": "Explanations", **OWN}),
    "wrong": ("masklab", {"mask": "zz", "head": "99.9", "score": "nonsense", "steps": "x"}),
}
# of an element's message: identifiers, addresses of files, code of components
DROPPED = {"id", "formId", "url", "pageScriptHash", "theme", "data", "elementId", "deferredFileId", "css", "js", "html"}
DROPPED |= {f"{kind}{what}" for kind in ("html", "js", "css") for what in ("Content", "SourcePath")}


def pages(record: Record) -> None:
    words = places(record)
    os.environ["HEADVIZ_ROOTS"] = str(record.work)
    made = record.run("run", f"run start {words['all']} {RUN} --algorithm one-importance --score taylor --wait")
    tiny = {
        "model": words["model"],
        "task": "custom",
        "data": words["folder"],
        "columns": "text,pair",
        "label": "label",
    }
    translation = {"model": "demo-translation", "task": "demo-translation", "limit": "2"}
    for source, address in {"demo": DEMO, "translation": translation, "tiny": tiny}.items():
        for page in sorted(file.stem for file in Path("pages").glob("*.py")):
            tabs = view(record, f"{source} {page}", page, address)
            for tab in tabs if source == "demo" or page == "compare" else ():
                view(record, f"{source} {page} {tab}", page, {**address, "tab": tab})
    for name, (page, address) in VIEWS.items():
        view(record, name, page, {**DEMO, **address})
    from headviz.analyses.catalogue import ANALYSES

    for name in ANALYSES:
        view(record, f"analysis {name}", "analyses", {**DEMO, "analysis": name, "head": "4.10"})
        view(record, f"analysis {name} tiny", "analyses", {**tiny, "analysis": name, "head": "1.1"}, press="Run")
    for tab in ("", *view(record, "a run", "runs", {**tiny, "run": made})):
        view(record, f"a run {tab}", "runs", {**tiny, "run": made, "tab": tab})


def view(record: Record, name: str, page: str, address: dict[str, str], press: str = "") -> list[str]:
    """Record a page at an address, if asked after a button; the tabs that are not open."""
    apps: list[Any] = []

    def draw() -> dict[str, Any]:
        apps.append(opened(page, address, press))
        faults = [str(e.value) for e in apps[0].exception]
        where = dict(apps[0].query_params.items())
        return {"address": where, "faults": faults, "shown": list(elements(apps[0].main))}

    record.add(name, draw, timed="speed" in name)
    return [block.label for block in blocks(apps[0].main) if block.type == "tab"][1:] if apps else []


def opened(page: str, address: dict[str, str], press: str) -> Any:
    from streamlit.testing.v1 import AppTest

    app = AppTest.from_file(str(Path("app.py").resolve()), default_timeout=240)
    for name, value in address.items():
        app.query_params[name] = value
    app.session_state["recipe"] = True  # the folded code is drawn
    if Path(f"pages/{page}.py").is_file():
        app.switch_page(f"pages/{page}.py")
    else:  # a page that came through the plugins' door is a function
        from streamlit.util import calc_hash

        app._page_hash = calc_hash(page)
    settle(app.run())
    button = next((b for b in app.button if press and b.label.startswith(press) and not b.disabled), None)
    return settle(button.click().run()) if button else app


def settle(app: Any) -> Any:
    """Wait for computations in the background, until the page stays the same."""
    for _ in range(8):
        until = time.monotonic() + 240
        while time.monotonic() < until and any(t.name.startswith("headviz") for t in threading.enumerate()):
            time.sleep(0.05)
        before = json.dumps(list(elements(app.main)))
        app.run()
        if before == json.dumps(list(elements(app.main))):
            break
    return app


def blocks(block: Any) -> Iterator[Any]:
    for child in block.children.values():
        if hasattr(child, "children"):
            yield child
            yield from blocks(child)


def elements(block: Any) -> Iterator[dict[str, Any]]:
    """All that a page shows, from top to bottom: type, label, value, and the rest of the element's message."""
    from google.protobuf.json_format import MessageToDict

    for child in block.children.values():
        label = getattr(child, "label", None)
        if hasattr(child, "children"):
            if label:
                yield {"type": child.type, "label": label}
            yield from elements(child)
        elif child.type != "html":
            message = {} if child.type in ("dataframe", "table") else MessageToDict(child.proto)
            shown = {k: unpacked(v) for k, v in message.items() if k not in DROPPED}
            shown |= {"type": child.type, "label": label}
            with contextlib.suppress(Exception):
                shown["value"] = plain(child.value)
            if shown.get("value") == shown.get("body"):
                shown.pop("value", None)
            yield shown


def unpacked(value: Any) -> Any:
    """A field of a message; JSON within it, such as a figure, is opened, and its packed numbers with it."""
    import numpy as np

    if isinstance(value, str) and value[:1] in ("[", "{"):
        with contextlib.suppress(ValueError):
            return unpacked(json.loads(value))
    if isinstance(value, list):
        return [unpacked(v) for v in value]
    if isinstance(value, dict):
        if "bdata" in value:
            return plain(np.frombuffer(base64.b64decode(value["bdata"]), np.dtype(value["dtype"])))
        return {k: unpacked(v) for k, v in value.items() if k not in {*DROPPED, "template"} - {"data"}}
    return value
