"""``headviz serve``: the dashboard, from a checkout or from an installed package."""

from __future__ import annotations

import argparse
import ipaddress
import os
import signal
import socket
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from urllib.parse import urlencode
from urllib.request import urlopen

from .. import plugins
from ..errors import OptionError, UserError
from ..models import NAMED
from ..options import Option, add_options, short
from ..storage.paths import ROOTS, START, outside_path
from ..tasks import TASKS

EVERYWHERE = ("0.0.0.0", "::")  # every address of this machine
THEME = "STREAMLIT_THEME_BASE"


OPTIONS = (
    Option("port", 8501, "port on this machine", least=1, most=65535, metavar="P"),
    Option("address", "127.0.0.1", "address to listen on", usual="127.0.0.1: this machine only", metavar="A"),
    Option("headless", False, "do not open a browser window"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", nargs="?", metavar="MODEL", help="what to open: demo, a hub id, or a folder")
    parser.add_argument("task", nargs="?", metavar="TASK", help="its task, such as mrpc")
    parser.add_argument("data", nargs="?", metavar="DATA", help="folder with the task's files")
    add_options(parser, OPTIONS)


def app_file() -> Path:
    """``app.py`` next to the sources in a checkout, inside the package once installed."""
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
        ip = ipaddress.ip_address("127.0.0.1" if address == "localhost" else address)
    except ValueError:
        raise OptionError(
            f"'{short(address)}' is not an address of this machine. Give one such as 127.0.0.1 or 0.0.0.0."
        ) from None
    family = socket.AF_INET if ip.version == 4 else socket.AF_INET6
    try:
        with socket.socket(family, socket.SOCK_STREAM) as place:
            place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # a server that has just ended is no hindrance
            place.bind((str(ip), port))
            place.listen()
    except OSError as error:
        raise OptionError(
            f"Port {port} of {address} cannot be used: {error.strerror or error}. Choose another with --port."
        ) from error


def check_theme() -> None:
    """Refuse files of this folder or of the user's home that end Streamlit, or let it fetch a theme elsewhere."""
    base: object = None
    source: object = None
    for file in (Path.home() / ".streamlit" / "config.toml", Path(".streamlit", "config.toml")):
        if not file.exists():
            continue
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise OptionError(f"{file} cannot be read, and Streamlit needs it: {error}. Mend or remove it.") from error
        try:
            settings = tomllib.loads(text)
        except ValueError:
            continue  # Streamlit says so and leaves it out
        if loose := [name for name, options in settings.items() if not isinstance(options, dict)]:
            raise OptionError(f"{file}: '{short(loose[0])}' stands in no section such as [theme]. Mend or remove it.")
        if "base" in settings.get("theme", {}):
            base, source = settings["theme"]["base"], file
    if THEME in os.environ:  # comes before both files
        base, source = os.environ[THEME], THEME
    if base in (None, "light", "dark"):
        return
    setting = f"{source} has theme.base = '{short(str(base))}', which is"
    if isinstance(base, str) and "://" in base:
        raise OptionError(
            f"{setting} on another machine. Save that theme as a file and name the file, or remove the line."
        )
    if not isinstance(base, str) or not Path(base).is_file():
        raise OptionError(f"{setting} neither light, dark nor a file. Mend or remove the line.")


def run(args: argparse.Namespace) -> None:
    start = start_of(args.model, args.task, args.data)
    check_place(args.address, args.port)
    check_theme()
    folders = [start[key] for key in ("model", "data") if os.path.isdir(start.get(key, ""))]
    command, environment = server(args.address, args.port, folders, headless=args.headless, start=start)
    handler = signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # run() ends the server when it is left this way
    try:
        status = subprocess.run(command, env=environment, check=False).returncode
    finally:
        signal.signal(signal.SIGTERM, handler)
    if status not in (0, 130, -2, -15):
        raise UserError(f"The dashboard's server ended with status {status}; its own message stands above.")


def server(
    address: str, port: int, folders: Sequence[str], *, headless: bool, start: Mapping[str, str] | None = None
) -> tuple[list[str], dict[str, str]]:
    """The command that starts a dashboard which may also read these folders, and its environment.

    ``start`` is what its plain address opens. Streamlit's other options stand in the dashboard's own ``config.toml``,
    which no file of another folder overrules.
    """
    command = [
        # -P: a file such as random.py where the user stands must not take the place of a module
        *(sys.executable, "-P", "-m", "streamlit", "run", str(app_file())),
        *("--server.address", address, "--server.port", str(port)),
        *(("--server.headless", "true") if headless else ()),
    ]
    files = [plugin.source for plugin in plugins.loaded() if plugin.code]
    files.append(os.environ.get(plugins.FILES, ""))  # the dashboard names those that could not be loaded here
    printed = {"STREAMLIT_BROWSER_SERVER_PORT": str(port)}  # in the address that is printed and opened
    if address not in EVERYWHERE:
        printed["STREAMLIT_BROWSER_SERVER_ADDRESS"] = f"[{address}]" if ":" in address else address
    environment = {
        **printed,
        **os.environ,
        plugins.FILES: os.pathsep.join(filter(None, files)),
        ROOTS: os.pathsep.join(filter(None, [*folders, os.environ.get(ROOTS, "")])),
        START: urlencode(start or {}),
    }
    return command, environment


def answers(address: str, seconds: float, runs: Callable[[], bool] = lambda: True) -> bool:
    """Whether a dashboard answers there within so many seconds, while it ``runs``."""
    end = time.monotonic() + seconds
    while time.monotonic() < end and runs():
        try:
            with urlopen(f"{address}_stcore/health", timeout=1):
                return True
        except OSError:
            time.sleep(0.25)
    return False


def start_of(model: str | None, task: str | None, data: str | None) -> dict[str, str]:
    """What the plain address opens. Folders become absolute; what cannot be there is refused."""
    if model is None:
        return {}
    start = {"model": model}
    if model not in NAMED and (model.startswith((".", "/", "~")) or os.path.isdir(model)):
        start["model"] = _folder(model, "model")
    if task is None and model in TASKS:
        task = model  # a shipped model has a task of its own
    if task is not None:
        if task not in TASKS:
            raise OptionError(plugins.unknown("task", task, TASKS))
        start["task"] = task
    if data is not None:
        start["data"] = _folder(data, "data")
    return start


def _folder(text: str, content: str) -> str:
    path = outside_path(text, f"the {content}")
    if not path.is_dir():
        raise OptionError(f"There is no folder '{short(text)}' with the {content}.")
    return str(path.resolve())


def show(result: None) -> str:
    return ""
