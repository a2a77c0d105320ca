"""What mkdocs needs beside the pages of this folder (``make docs`` builds the site).

* Documents that lie elsewhere become pages: the changelog, security, contributing, the demo's card.
* The API reference names all that ``headviz`` exports, by package; mkdocstrings fills it from the docstrings.
* The study's pictures, which a page shows, come from its folder.
* Notebooks become pages, with what their cells show.
* Figures of the gallery share one copy of plotly, so the site asks no outside address.
* The page that needs no installation is in it where it has been built (``make web``).
"""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
RESULTS = ROOT / "study" / "results"
PAGES = {
    "changelog.md": "CHANGELOG.md",
    "security.md": "SECURITY.md",
    "contributing.md": "CONTRIBUTING.md",
    "demo-card.md": "src/headviz/demo/data/MODEL_CARD.md",
}
SITE = "https://headviz.github.io/headviz/"
WEB = ROOT / "build" / "web"  # the built page
CODE = "https://github.com/headviz/headviz/blob/main/"  # where files that are no pages can be read
GROUPS = {
    "models": "Models",
    "heads": "Heads and masks",
    "storage": "Exchange with other tools",
    "tasks": "Data",
    "evaluation": "Evaluation",
    "attribution": "Attribution",
    "scores": "Scores",
    "analyses": "Analyses",
    "pruning": "Pruning",
    "distillation": "Distillation",
    "runs": "Runs",
}
REFERENCE = """# API reference

Made from the docstrings. Every name here is `headviz.NAME`. `import headviz` itself is light; torch loads at the first
call that needs it. Long functions take `progress(done, total)` and `cancel()`. Results have `to_dict()` and
`to_json()`, show themselves in notebooks, and give their figure with `.plot()`.
"""
PLOTLY = "gallery/plotly.min.js"


def on_files(files: Any, config: Any) -> Any:
    from mkdocs.structure.files import File

    made = {page: (ROOT / source).read_text(encoding="utf-8") for page, source in PAGES.items()}
    made["reference.md"] = reference()
    for path in sorted((HERE / "notebooks").glob("*.ipynb")):
        made[f"notebooks/{path.stem}.md"] = of_notebook(path)
    for place, content in made.items():
        files.append(File.generated(config, place, content=content))
    for path in sorted(RESULTS.glob("*.svg")):
        files.append(File.generated(config, f"study/{path.name}", content=path.read_text(encoding="utf-8")))
    files.append(File.generated(config, PLOTLY, content=plotly()))
    for path in (p for p in WEB.rglob("*") if p.is_file()):
        name = path.relative_to(WEB.parent).as_posix()
        files.append(File(name, str(WEB.parent), config.site_dir, use_directory_urls=False))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Links between documents of the repository become links between pages."""
    return re.sub(r"\]\(([^)#\s]+)(#[^)]*)?\)", lambda m: f"]({target(m[1], page.file.src_uri)}{m[2] or ''})", markdown)


def target(link: str, page: str) -> str:
    """Where a link of a document leads on the site."""
    if re.match(r"[a-z]+:", link):
        return link
    start = ROOT / PAGES[page] if page in PAGES else HERE / page
    there = (start.parent / link).resolve()
    if not there.is_relative_to(ROOT):
        return link
    name = there.relative_to(ROOT).as_posix()
    as_page = {source: made for made, source in PAGES.items()} | {"README.md": "index.md"}
    up = "../" * page.count("/")
    if name == "web/index.html":
        return (up if WEB.is_dir() else SITE) + name
    if name in as_page:
        return up + as_page[name]
    if there.parent == RESULTS and there.suffix == ".svg":
        return f"{up}study/{there.name}"
    if there.is_relative_to(HERE):
        return up + there.relative_to(HERE).as_posix().replace(".ipynb", ".md")
    return CODE + name


def reference() -> str:
    """The page that mkdocstrings fills."""
    import headviz

    rooms = {name: headviz.plugins.module_of(name).removeprefix("headviz.") for name in headviz.plugins.public_names()}
    places = headviz._LAZY | rooms
    tops = [place.split(".")[0] for place in places.values()]
    parts = [REFERENCE]
    for top in [*GROUPS, *sorted(set(tops) - set(GROUPS))]:
        parts.append(f"## {GROUPS.get(top, top.capitalize())}\n")
        parts += [f"::: headviz.{place}.{name}\n" for name, place in places.items() if place.split(".")[0] == top]
    return "\n".join(parts)


def plotly() -> str:
    from plotly.offline import get_plotlyjs

    return str(get_plotlyjs())


def of_notebook(path: Path) -> str:
    """A notebook as Markdown with its outputs in HTML."""
    book = json.loads(path.read_text(encoding="utf-8"))
    parts = [f'<script src="../{PLOTLY}"></script>\n']
    for cell in book["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            continue
        parts.append(f"```python\n{source}\n```")
        parts += filter(None, (_output(output, f"{cell['id']}-{i}") for i, output in enumerate(cell["outputs"])))
    return "\n\n".join(parts) + "\n"


def _output(output: dict[str, Any], name: str) -> str:
    data = output.get("data", {})
    if figure := data.get("application/vnd.plotly.v1+json"):
        drawn = json.dumps({k: figure[k] for k in ("data", "layout")}).replace("</", "<\\/")
        ink = "getComputedStyle(document.body).color"
        draw = f'd => {{ d.layout.font = {{color: {ink}}}; Plotly.newPlot("{name}", d.data, d.layout) }}'
        return f'<div id="{name}"></div><script>({draw})({drawn})</script>'
    if shown := data.get("text/html"):
        return "".join(shown).replace("\n", "&#10;")
    text = "".join(output.get("text", "") or data.get("text/plain", ""))
    return f"<pre>{html.escape(text).rstrip()}</pre>".replace("\n", "&#10;") if text else ""
