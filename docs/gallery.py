"""The gallery: every figure by the command that stands beside it (``python docs/gallery.py [NAME …]``).

Each command writes an interactive page into ``docs/gallery/``. The pages of one site share one copy of plotly, which
the build adds. ``docs/gallery.md`` is written from the same table.
"""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

HERE = Path(__file__).resolve().parent
DEMO = "--model demo --task demo"
# name -> title, what one sees, command
FIGURES = {
    "ablation": (
        "What each head costs",
        "One head off at a time. Grey: not significantly different from 0. Rings: costs that are more than chance.",
        f"headviz ablate {DEMO} --limit 120",
    ),
    "by-slice": (
        "Which ability hangs on which head",
        "Rows are abilities, columns the heads that matter most for some of them.",
        f"headviz analyse by-slice {DEMO} --limit 120",
    ),
    "pruning-curves": (
        "How much can go",
        "Accuracy against the share of heads that is off, in the order of each score and in that of single ablations.",
        f"headviz analyse pruning-curves {DEMO} --limit 120 --samples 60",
    ),
    "all-but-one": (
        "One head for a whole layer",
        "What is lost when a layer keeps its best head alone.",
        f"headviz analyse all-but-one {DEMO} --limit 120 --samples 120",
    ),
    "roles": (
        "What heads look at",
        "The token before, the same word, the delimiter, the other text: how much more than chance.",
        f"headviz roles {DEMO} --limit 60",
    ),
}


def command(name: str) -> str:
    return f"{FIGURES[name][2]} --figure {name}.html"


def draw(name: str) -> Path:
    """Run the command and keep its page without plotly itself."""
    from headviz import cli

    with TemporaryDirectory() as folder:
        path = Path(folder) / f"{name}.html"
        status = cli.main([*shlex.split(FIGURES[name][2])[1:], "--figure", str(path)])
        if status:
            raise SystemExit(f"{command(name)} ended with {status}")
        text = path.read_text(encoding="utf-8")
    short, count = re.subn(
        r"<script>/\*\*\n\* plotly.*?</script>", '<script src="plotly.min.js"></script>', text, count=1, flags=re.S
    )
    if count != 1:
        raise SystemExit(f"No copy of plotly was found in the page of {name}.")
    out = HERE / "gallery" / f"{name}.html"
    out.write_text(short, encoding="utf-8")
    return out


def page() -> str:
    """``docs/gallery.md``."""
    lines = ["# Gallery", "", "Every figure is of the demo model and can be clicked. Its command draws it again."]
    for name, (title, about, _) in FIGURES.items():
        lines += ["", f"## {title}", "", about, "", "```", command(name), "```", ""]
        frame = f'<iframe src="gallery/{name}.html" title="{title}" width="100%" height="620" loading="lazy"></iframe>'
        lines += [frame, "", f"[Open it alone](gallery/{name}.html)"]
    return "\n".join(lines) + "\n"


def main() -> None:
    (HERE / "gallery").mkdir(exist_ok=True)
    for name in sys.argv[1:] or FIGURES:
        print(f"{name}: {draw(name).stat().st_size / 1024:.0f} kB", flush=True)
    (HERE / "gallery.md").write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
