"""``requirements.lock``: what the container installs, each file by its hash. ``python tools/lock.py`` with uv at hand.

The versions are those of ``requirements.txt`` and what they need. torch is PyTorch's CPU build, which needs none of
the GPU libraries; the hashes of its wheels are those of https://download.pytorch.org/whl/cpu.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LOCK = ROOT / "requirements.lock"
GPU = re.compile(r"(nvidia|cuda)-|triton=")
TORCH = {  # version -> wheels for Python 3.12 on x86_64 and aarch64, and for Python 3.11 on x86_64, where it is tested
    "2.13.0": (
        "4ca4a9394b0c771238a4f73590fdbbc4debad85ed0fa63d026ae1b085da7d6e2",
        "6f307c2c32d764ffc6ff6893b801fad6d4752f3e67966cb8abf1843427c02604",
        "6746dbcbeb526eb61330b76b41ff1b4eb848951103a892eeb080dfa2b264667b",
    )
}
WORDS = "uv pip compile requirements.txt --generate-hashes --python-version 3.11 --no-header --quiet "
WORDS += "--python-platform x86_64-manylinux_2_28 --no-emit-package torch"


def main() -> None:
    text = subprocess.run(WORDS.split(), cwd=ROOT, check=True, capture_output=True, text=True).stdout
    blocks = [block for block in re.split(r"\n(?=\w)", text.partition("\n\n#")[0]) if not GPU.match(block)]
    (version,) = re.findall(r"^torch==(\S+)", (ROOT / "requirements.txt").read_text(), flags=re.M)
    hashes = " \\\n".join(f"    --hash=sha256:{one}" for one in TORCH[version])
    blocks.append(f"torch=={version}+cpu \\\n{hashes}")
    head = "# What the container installs; `python tools/lock.py` writes it. requirements.txt is the list to read.\n"
    LOCK.write_text(head + "\n".join(sorted(b.strip() for b in blocks)) + "\n")


if __name__ == "__main__":
    main()
