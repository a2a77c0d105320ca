"""The steps of the Dockerfile without a builder: ``python tools/container_steps.py``.

Reads the Dockerfile and does what it says in a temporary folder that stands for the image's root: COPY into it, RUN
with a virtual environment in place of the image's Python, CMD and HEALTHCHECK at the end. What only an image can have
(users, the volume, the index of PyTorch's CPU build) is left out and named. A forgotten file is found.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def instructions(text: str) -> list[tuple[str, str]]:
    """(instruction, its words) of a Dockerfile, continued lines joined."""
    lines = re.sub(r"\\\n\s*", "", text).splitlines()
    return [(word.upper(), rest.strip()) for word, _, rest in (line.partition(" ") for line in lines) if word.isalpha()]


class Image:
    """A folder that stands for an image."""

    def __init__(self, place: Path) -> None:
        self.root, self.work = place, place
        self.environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
        place.mkdir()
        subprocess.run([sys.executable, "-m", "venv", str(place / "venv")], check=True)
        self.environment["PATH"] = f"{place / 'venv/bin'}{os.pathsep}{os.environ['PATH']}"

    def inside(self, path: str) -> Path:
        return self.root / path.lstrip("/") if path.startswith("/") else self.work / path

    def copy(self, words: list[str], source: Path) -> None:
        *names, target = words
        for name in names:
            for found in sorted(source.glob(name.lstrip("/"))):
                place = self.inside(target)
                if found.is_dir():
                    shutil.copytree(found, place, dirs_exist_ok=True)
                    continue
                if target.endswith("/"):
                    place = place / found.name
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(found, place)

    def run(self, command: str) -> None:
        command = re.sub(r" --index-url \S+", "", command)
        command = re.sub(r"(?<=\s)/(wheels)", rf"{self.root}/\1", command)
        if "pip install --no-cache-dir torch" in command:
            pin = next(
                line for line in (ROOT / "requirements.txt").read_text().splitlines() if line.startswith("torch==")
            )
            command = command.replace(" torch", f" {pin}")
        print(f"RUN {command}", flush=True)
        subprocess.run(command, shell=True, cwd=self.work, env=self.environment, check=True, stdout=subprocess.DEVNULL)


def main() -> int:
    place = Path(tempfile.mkdtemp(prefix="headviz-image-"))
    images: dict[str, Image] = {}
    image = None
    command: list[str] = []
    health = ""
    try:
        for what, words in instructions((ROOT / "Dockerfile").read_text(encoding="utf-8")):
            if what == "FROM":
                name = words.split()[-1] if " AS " in words else "last"
                image = images[name] = Image(place / name)
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
            elif what == "HEALTHCHECK":
                health = words.split(" CMD ", 1)[1] if " CMD " in words else words.split("CMD ", 1)[1]
            else:
                print(f"left out: {what} {words}")
        assert image is not None
        image.environment["HEADVIZ_HOME"] = str(image.work / "cache")
        server = subprocess.Popen(command, cwd=image.work, env=image.environment)
        try:
            for _ in range(60):
                time.sleep(2)
                if subprocess.run(health, shell=True, env=image.environment, stderr=subprocess.DEVNULL).returncode == 0:
                    print("healthy")
                    return 0
            print("The server is not healthy after two minutes.")
            return 1
        finally:
            server.terminate()
            server.wait(30)
    finally:
        shutil.rmtree(place, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
