"""What a new user does, from the wheel, in a clean environment outside the checkout: ``python tools/try_wheel.py``.

Builds the wheel, downloads what it needs once, and makes a virtual environment in a temporary folder. From there on
no package index is asked: it installs the wheel and then, away from the checkout, tries the version, a masked
evaluation, the first page of ``headviz demo``, a notebook, the documentation site with all its links, ``pipx run`` and
``uvx``. Every step is timed; the first that fails ends it. ``--keep`` keeps the folder, ``--skip site,notebook`` leaves
steps out, ``--release`` also checks what a release needs: twine, the tag, the changelog.
"""

from __future__ import annotations

import argparse
import html
import json
import os
import re
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote, urlsplit
from urllib.request import urlopen

ROOT = Path(__file__).resolve().parents[1]
LARGEST = 15_000_000  # bytes of the wheel
BUILDERS = ("build", "setuptools>=77", "wheel", "twine")
RUNNERS = ("pip", "setuptools>=77", "wheel", "pipx", "uv")
FIRST_MASK = "evaluate --model demo --task demo --limit 100 --off 4.10,8.6 --compare".split()


class Trial:
    """One clean environment and what is done in it."""

    def __init__(self, place: Path, release: bool) -> None:
        self.place, self.release = place, release
        self.python = place / "venv" / "bin" / "python"
        self.headviz = place / "venv" / "bin" / "headviz"
        self.wheel = place
        self.began = 0.0
        # from the first step after the download on, pip and uv find all they need in a folder
        self.offline: dict[str, str] = {}

    def environment(self) -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
        return kept | {"HEADVIZ_HOME": str(self.place / "home"), "HF_HUB_OFFLINE": "1"} | self.offline

    def call(self, *words: object, cwd: Path | None = None) -> str:
        done = subprocess.run(
            [str(w) for w in words],
            cwd=cwd or self.place,
            env=self.environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise SystemExit(f"{' '.join(map(str, words))}\nended with {done.returncode}:\n{done.stderr[-3000:]}")
        return done.stdout

    def build(self) -> str:
        """The wheel, built from what git has, so that nothing of this folder slips in."""
        source = self.place / "source"
        source.mkdir()
        archive = subprocess.run(["git", "-C", str(ROOT), "archive", "HEAD"], capture_output=True, check=True).stdout
        subprocess.run(["tar", "-x", "-C", str(source)], input=archive, check=True)
        tools = self.place / "tools" / "bin" / "python"
        self.call(sys.executable, "-m", "venv", self.place / "tools")
        self.call(tools, "-m", "pip", "install", "-q", *BUILDERS)
        self.call(tools, "-m", "build", "--no-isolation", "--outdir", self.place / "dist", source)
        (self.wheel,) = (self.place / "dist").glob("*.whl")
        size = self.wheel.stat().st_size
        if size > LARGEST:
            raise SystemExit(f"The wheel has {size / 1e6:.1f} MB; {LARGEST / 1e6:.0f} are allowed.")
        if self.release:
            self.call(tools, "-m", "twine", "check", "--strict", *(self.place / "dist").iterdir())
            if faults := release_faults(self.wheel.name.split("-")[1]):
                raise SystemExit("\n".join(faults))
        return f"{self.wheel.name}, {size / 1e6:.1f} MB"

    def download(self) -> str:
        """Everything once, with torch's CPU build where pip has it."""
        tools, target = self.place / "tools/bin/python", self.place / "packages"
        wanted = (f"torch{pinned('torch')}", f"{self.wheel}[notebook,docs]", *RUNNERS)
        self.call(tools, "-m", "pip", "download", "-q", "-d", target, *wanted)
        self.call(tools, "-m", "pip", "install", "-q", "pipx", "uv")
        kept = str(target)
        self.offline = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": kept, "PIP_CONFIG_FILE": os.devnull}
        self.offline |= {"UV_CACHE_DIR": str(self.place / "uv"), "UV_NO_CONFIG": "1"}
        self.offline |= {"PIPX_HOME": str(self.place / "pipx"), "PIPX_BIN_DIR": str(self.place / "bin")}
        sizes = [path.stat().st_size for path in target.iterdir()]
        return f"{len(sizes)} packages, {sum(sizes) / 1e6:,.0f} MB"

    def install(self) -> str:
        self.began = time.perf_counter()
        self.call(sys.executable, "-m", "venv", self.place / "venv")
        self.call(self.python, "-m", "pip", "install", "-q", self.wheel)
        where = self.call(self.python, "-c", "import headviz; print(headviz.__file__)").strip()
        if not where.startswith(str(self.place)):
            raise SystemExit(f"headviz comes from {where}, not from the wheel.")
        return self.call(self.headviz, "--version").strip()

    def mask(self) -> str:
        """The first masked head, on the command line, with what it changed."""
        record = json.loads(self.call(self.headviz, *FIRST_MASK, "--json"))
        (change,) = [d for d in record["comparison"]["deltas"] if d["metric"] == "accuracy"]
        if change["masked"] >= change["full"]:
            raise SystemExit(f"Without the heads of negation and role-swap nothing was lost: {change}")
        seconds = time.perf_counter() - self.began
        said = f"accuracy {change['full']:.3f} → {change['masked']:.3f}"
        return f"{said}; {seconds:.0f} s after the installation began" if self.began else said

    def runners(self) -> str:
        """``pipx run`` and ``uvx`` make an environment of their own from the wheel."""
        tools = self.place / "tools/bin"
        said = []
        pipx = ("pipx", "run", "--backend", "pip", "--spec", self.wheel)
        uvx = ("uvx", "--no-index", "--find-links", self.place / "packages", "--from", self.wheel)
        for words in (pipx, uvx):
            began = time.perf_counter()
            self.call(tools / words[0], *words[1:], "headviz", *FIRST_MASK)
            said.append(f"{words[0]} {time.perf_counter() - began:.0f} s")
        return "masks from " + ", ".join(said)

    def page(self) -> str:
        """``headviz demo`` answers, and its first page is drawn without an error."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        words = [self.headviz, "demo", "--headless", "--port", port]
        with (self.place / "server.log").open("w") as log:
            server = subprocess.Popen(
                list(map(str, words)), cwd=self.place, env=self.environment(), stdout=log, stderr=log
            )
        try:
            for _ in range(480):
                try:
                    with urlopen(f"http://127.0.0.1:{port}/_stcore/health", timeout=2) as answer:
                        if answer.status == 200:
                            break
                except OSError:
                    time.sleep(0.25)
            else:
                raise SystemExit(f"The dashboard did not start:\n{(self.place / 'server.log').read_text()[-2000:]}")
        finally:
            server.terminate()
            server.wait(30)
        script = (
            "from streamlit.testing.v1 import AppTest; from headviz.commands.serve import app_file\n"
            "page = AppTest.from_file(str(app_file()), default_timeout=600).run()\n"
            "assert not page.exception, page.exception; print(page.title[0].value)"
        )
        return f"server answers; first page: {self.call(self.python, '-c', script).strip().splitlines()[-1]}"

    def notebook(self) -> str:
        self.call(self.python, "-m", "pip", "install", "-q", f"{self.wheel}[notebook]")
        self.call(self.python, self.place / "source/docs/notebooks/run.py", "own-model", "--check")
        return "own-model runs"

    def site(self) -> str:
        self.call(self.python, "-m", "pip", "install", "-q", f"{self.wheel}[docs]")
        self.call(self.place / "venv/bin/mkdocs", "build", "--strict", "--quiet", cwd=self.place / "source")
        pages = list((self.place / "source/site").rglob("*.html"))
        outside = {link for page in pages for link in loaded_from_outside(page.read_text(encoding="utf-8"))}
        if outside:
            raise SystemExit(f"The site loads from outside: {', '.join(sorted(outside))}")
        if dead := dead_links(self.place / "source/site"):
            raise SystemExit("Links that lead nowhere:\n" + "\n".join(dead))
        return f"{len(pages)} pages; every link leads somewhere, nothing is loaded from outside"


def processor_seconds() -> float:
    """Of all steps so far: on a machine with other work this says more than the clock."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def loaded_from_outside(page: str) -> list[str]:
    """Scripts, styles, pictures and frames of other addresses; links that one may follow are not meant."""
    page = re.sub(r"<script(?![^>]*\bsrc=)[^>]*>.*?</script>", "", page, flags=re.S)
    tags = re.findall(r"<(?:script|img|iframe|link)\b[^>]*>", page)
    tags = [tag for tag in tags if not re.search(r'rel="?(canonical|prev|next|edit)', tag)]
    return [m for tag in tags for m in re.findall(r'(?:src|href)="?((?:https?:)?//[^"\s>]+)', tag)]


def dead_links(site: Path) -> list[str]:
    """Links and sources of a built site, with their anchors, that do not exist in it; other hosts are not asked."""
    pages = {path: path.read_text(encoding="utf-8") for path in site.rglob("*.html")}
    marks = {path: set(re.findall(r'\b(?:id|name)="?([^"\s>]+)', page)) for path, page in pages.items()}
    dead = []
    for path, page in pages.items():
        page = re.sub(r"<(script|pre|code)\b(?![^>]*\bsrc=)[^>]*>.*?</\1>", "", page, flags=re.S)
        for link in re.findall(r'\b(?:href|src)="?([^"\s>]+)', page):
            parts = urlsplit(unquote(html.unescape(link)))
            if parts.scheme or parts.netloc or path.name == "404.html":  # the 404 page's links start at the site's root
                continue
            there = (path.parent / parts.path).resolve() if parts.path else path
            there = there / "index.html" if there.is_dir() else there
            known = not parts.fragment or there not in marks or parts.fragment in marks[there]
            if not there.exists() or not known:
                dead.append(f"{path.relative_to(site)}: {link}")
    return sorted(set(dead))


def pinned(name: str) -> str:
    """The version of a package that the tests run with."""
    result = re.search(rf"^{name}(==\S+)$", (ROOT / "requirements.txt").read_text(), flags=re.M)
    return result[1] if result else ""


def release_faults(version: str, root: Path = ROOT) -> list[str]:
    """What keeps this commit from being released as this version: its number, its tag, the changelog, the citation."""
    faults = []
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        faults.append(f"{version} is not a finished version such as 0.2.0: set __version__ in src/headviz/__init__.py.")
    tags = subprocess.run(
        ["git", "-C", str(root), "tag", "--points-at", "HEAD"], capture_output=True, text=True, check=True
    )
    if f"v{version}" not in tags.stdout.split():
        faults.append(f"This commit has no tag v{version}: git tag -a v{version}")
    newest = next(re.finditer(r"^## (.*)$", (root / "CHANGELOG.md").read_text(encoding="utf-8"), re.M))[1]
    if not re.fullmatch(rf"{re.escape(version)} – \d{{4}}-\d\d-\d\d", newest):
        faults.append(f"CHANGELOG.md begins with '{newest}', not with '{version} – YYYY-MM-DD'.")
    named = re.findall(r"^ *version: (\S+)$", (root / "CITATION.cff").read_text(encoding="utf-8"), re.M)
    if set(named) != {version}:
        faults.append(f"CITATION.cff names {', '.join(sorted(set(named))) or 'no version'}, not {version}.")
    return faults


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--skip", default="", help="names of steps, with commas")
    parser.add_argument("--keep", action="store_true", help="keep the temporary folder")
    parser.add_argument("--release", action="store_true", help="also check the distribution, the tag and the changelog")
    given = parser.parse_args()
    place = Path(tempfile.mkdtemp(prefix="headviz-wheel-"))
    trial = Trial(place, given.release)
    steps: list[Callable[[], str]] = [
        trial.build,
        trial.download,
        trial.install,
        trial.mask,
        trial.page,
        trial.notebook,
        trial.site,
        trial.runners,
    ]
    try:
        for step in steps:
            if step.__name__ in given.skip.split(","):
                continue
            began, worked = time.perf_counter(), processor_seconds()
            said = step()
            took = f"{time.perf_counter() - began:6.1f} s, {processor_seconds() - worked:6.1f} of the processor"
            print(f"{step.__name__:9} {took}  {said}", flush=True)
    finally:
        if not given.keep:
            shutil.rmtree(place, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
