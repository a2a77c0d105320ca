"""The image, built and started: ``python tools/container_steps.py``.

With docker or podman the image is built, its server must say that it is well, and a head is masked in it. Where
neither can build, the Dockerfile's steps are run in a temporary folder that stands for the image: COPY into it, RUN
with a virtual environment in place of the image's Python, CMD and HEALTHCHECK at the end. What only an image can have
(users, the volume, the index of PyTorch's CPU build) is left out and named. A forgotten file is found. With
``--reuse`` pip finds what the environment of this Python has, and installs nothing twice.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SMOKE = "headviz evaluate --model demo --task demo --limit 26 --off 4.10,8.6".split()


def instructions(text: str) -> list[tuple[str, str]]:
    """(instruction, its words) of a Dockerfile, continued lines joined."""
    lines = re.sub(r"\\\n\s*", "", text).splitlines()
    return [(word.upper(), rest.strip()) for word, _, rest in (line.partition(" ") for line in lines) if word.isalpha()]


class Image:
    """A folder that stands for an image."""

    def __init__(self, place: Path, reuse: bool) -> None:
        self.root, self.work = place, place
        self.environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
        place.mkdir()
        subprocess.run([sys.executable, "-m", "venv", str(place / "venv")], check=True)
        if reuse:  # found after the image's own, and its headviz is not: the wheel must be installed
            (own,) = (place / "venv").glob("lib/*/site-packages")
            (own / "reused.pth").write_text(sysconfig.get_path("purelib") + "\n")
        self.environment["PATH"] = f"{place / 'venv/bin'}{os.pathsep}{os.environ['PATH']}"
        self.environment["PIP_NO_COMPILE"] = "0"  # compile=0: most of what is installed is never imported here

    def inside(self, path: str) -> Path:
        return self.root / path.lstrip("/") if path.startswith("/") else self.work / path

    def copy(self, words: list[str], source: Path) -> None:
        *names, target = words
        for name in names:
            for result in sorted(source.glob(name.lstrip("/"))):
                place = self.inside(target)
                if result.is_dir():
                    shutil.copytree(result, place, dirs_exist_ok=True)
                    continue
                if target.endswith("/"):
                    place = place / result.name
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(result, place)

    def run(self, command: str) -> None:
        command = re.sub(r" --extra-index-url \S+| --no-cache-dir", "", command)
        command = re.sub(r"(?<=\s)/(build)", rf"{self.root}/\1", command)
        print(f"RUN {command}", flush=True)
        subprocess.run(command, shell=True, cwd=self.work, env=self.environment, check=True, stdout=subprocess.DEVNULL)


def builder() -> str | None:
    """docker or podman, if one can build: a client alone cannot."""
    for name in ("docker", "podman"):
        if shutil.which(name) and subprocess.run([name, "info"], capture_output=True, check=False).returncode == 0:
            return name
    return None


def well(ask: Callable[[], int]) -> int:
    """0 as soon as ``ask`` gives 0, else 1 after two minutes."""
    for _ in range(60):
        time.sleep(2)
        if ask() == 0:
            print("healthy")
            return 0
    print("The server is not healthy after two minutes.")
    return 1


def free_port() -> int:
    with socket.socket() as result:
        result.bind(("127.0.0.1", 0))
        return int(result.getsockname()[1])


def health(steps: list[tuple[str, str]]) -> str:
    (words,) = (words for what, words in steps if what == "HEALTHCHECK")
    return words.partition("CMD ")[2]


def build(name: str, steps: list[tuple[str, str]]) -> int:
    """Build the image, start it, and ask its own health check."""
    subprocess.run([name, "build", "-t", "headviz-tried", str(ROOT)], check=True)
    started = subprocess.run([name, "run", "-d", "headviz-tried"], check=True, capture_output=True, text=True)
    container = started.stdout.strip()
    try:
        asked = [name, "exec", container, "sh", "-c", health(steps)]
        fault = well(lambda: subprocess.run(asked, stderr=subprocess.DEVNULL, check=False).returncode)
        subprocess.run([name, "exec", container, *SMOKE], check=True)
        return fault
    finally:
        subprocess.run([name, "rm", "-f", container], check=True, stdout=subprocess.DEVNULL)


def main() -> int:
    steps = instructions((ROOT / "Dockerfile").read_text(encoding="utf-8"))
    if name := builder():
        return build(name, steps)
    print("neither docker nor podman can build here: the steps as they stand")
    return imitate(steps, "--reuse" in sys.argv[1:])


def imitate(steps: list[tuple[str, str]], reuse: bool) -> int:
    """The steps in a folder of their own."""
    place = Path(tempfile.mkdtemp(prefix="headviz-image-"))
    images: dict[str, Image] = {}
    image = None
    command: list[str] = []
    try:
        for what, words in steps:
            if what == "FROM":
                name = words.split()[-1] if " AS " in words else "last"
                image = images[name] = Image(place / name, reuse)
                continue
            assert image is not None, "the Dockerfile begins with FROM"
            if what == "WORKDIR":
                image.work = image.inside(words)
                image.work.mkdir(parents=True, exist_ok=True)
            elif what == "COPY":
                parts = words.split()
                origin = ROOT
                if parts[0].startswith("--from="):
                    origin = images[parts.pop(0).removeprefix("--from=")].root
                image.copy(parts, origin)
            elif what == "RUN" and words.startswith("useradd"):
                print(f"left out: {words}")
            elif what == "RUN":
                image.run(words)
            elif what == "ENV":
                image.environment |= dict(part.split("=", 1) for part in shlex.split(words))
            elif what == "CMD":
                command = json.loads(words)
            elif what != "HEALTHCHECK":
                print(f"left out: {what} {words}")
        assert image is not None
        image.environment["HEADVIZ_HOME"] = str(image.work / "cache")
        inside = {"cwd": image.work, "env": image.environment}
        asked = ["python", "-c", "import headviz; print(headviz.__file__)"]
        where = subprocess.run(asked, **inside, check=True, capture_output=True, text=True).stdout.strip()
        if not where.startswith(str(image.root)):
            raise SystemExit(f"headviz comes from {where}, not from the wheel.")
        subprocess.run(SMOKE, **inside, check=True)
        port = str(free_port())  # the image's own may be taken here
        server = subprocess.Popen([*command, "--port", port], **inside)
        try:
            asked = health(steps).replace(":8501/", f":{port}/")
            return well(lambda: subprocess.run(asked, **inside, shell=True, stderr=subprocess.DEVNULL).returncode)
        finally:
            server.terminate()
            server.wait(30)
    finally:
        shutil.rmtree(place, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
