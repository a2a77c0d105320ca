"""Which heavy packages a piece of code loads, in a process of its own."""

import json
import subprocess
import sys


def loaded_by(code: str, *packages: str) -> list[str]:
    """Those of the packages that are there after the code."""
    asked = f"{code}\nimport json, sys; print(json.dumps([p for p in {packages!r} if p in sys.modules]))"
    out = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True).stdout
    result: list[str] = json.loads(out.splitlines()[-1])
    return result
