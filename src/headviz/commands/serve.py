"""``headviz serve``: the dashboard, from a checkout or from an installed package."""

from __future__ import annotations

import argparse
import ipaddress
import os
import socket
import subprocess
import sys
from pathlib import Path

from .. import plugins
from ..errors import OptionError, UserError
from .number_types import short, whole


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--port", type=whole(1, 65535), default=8501, metavar="P", help="port on this machine (8501)")
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


def check_place(address: str, port: int) -> None:
    """Refuse an address or a port that a server cannot have here."""
    if address.startswith("unix://"):
        return
    try:
        found = ipaddress.ip_address("127.0.0.1" if address == "localhost" else address)
    except ValueError:
        raise OptionError(
            f"'{short(address)}' is not an address of this machine. Give one such as 127.0.0.1 or 0.0.0.0."
        ) from None
    family = socket.AF_INET if found.version == 4 else socket.AF_INET6
    try:
        with socket.socket(family, socket.SOCK_STREAM) as place:
            place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # a server that has just ended is no hindrance
            place.bind((str(found), port))
            place.listen()
    except OSError as error:
        raise OptionError(
            f"Port {port} of {address} cannot be used: {error.strerror or error}. Choose another with --port."
        ) from error


def run(args: argparse.Namespace) -> None:
    check_place(args.address, args.port)
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
