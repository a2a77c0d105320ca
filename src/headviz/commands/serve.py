"""``headviz serve``: the dashboard, from a checkout or from an installed package."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

from .. import plugins
from ..errors import UserError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--port", type=int, default=8501, metavar="P", help="port on this machine (8501)")
    parser.add_argument(
        "--address", default="127.0.0.1", metavar="A", help="address to listen on (127.0.0.1: this machine only)"
    )
    parser.add_argument("--headless", action="store_true", help="do not open a browser window")


def app_file() -> Path:
    """``app.py`` beside the sources in a checkout, inside the package once installed."""
    package = Path(__file__).resolve().parents[1]
    for place in (package.parents[1] / "app.py", package / "dashboard" / "app.py"):
        if place.is_file():
            return place
    raise UserError("The dashboard's files are missing from this installation. Install headviz again.")


def run(args: argparse.Namespace) -> None:
    command = [
        *(sys.executable, "-m", "streamlit", "run", str(app_file())),
        *("--server.address", args.address, "--server.port", str(args.port)),
        *("--browser.gatherUsageStats", "false"),
    ]
    if args.headless:
        command += ["--server.headless", "true"]
    files = [plugin.source for plugin in plugins.loaded() if plugin.code]
    given = [*files, os.environ.get(plugins.FILES, "")]  # the dashboard names those that could not be loaded here
    environment = {**os.environ, plugins.FILES: os.pathsep.join(filter(None, given))}
    status = subprocess.run(command, env=environment, check=False).returncode
    if status not in (0, 130, -2, -15):
        raise UserError(f"The dashboard's server ended with status {status}; its own message stands above.")


def show(result: None) -> str:
    return ""
