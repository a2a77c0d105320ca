"""A dashboard in a process of its own and a Chromium that looks at it. Skips where there is no Chromium."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlparse

import pytest

from support.server import IDLE, serve

FLAGS = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"]
PATIENCE = 90_000  # milliseconds; a loaded machine answers late, and lateness is measured elsewhere
SCREEN = {"width": 1280, "height": 900}
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What waits for a browser gets a second try, which the summary names: a busy machine may be late for any limit."""
    for item in items:
        if "browser" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.flaky(reruns=1))


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    sync_api = pytest.importorskip("playwright.sync_api", reason="browser tests need playwright")
    result = os.environ.get("CHROMIUM") or next((p for n in NAMES if (p := shutil.which(n))), None)
    with sync_api.sync_playwright() as playwright:
        if result is None and not Path(playwright.chromium.executable_path).is_file():
            pytest.skip("browser tests need Chromium: install it, or set CHROMIUM to its path")
        browser = playwright.chromium.launch(executable_path=result, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def studio_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from support import studio

    folder = tmp_path_factory.mktemp("studio")
    studio.make_model(folder / "model")
    studio.make_data(folder / "data", 48)
    return folder


@pytest.fixture(scope="session")
def server_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the dashboard keeps its runs, uploads and caches."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="session")
def server(studio_folder: Path, server_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a running dashboard."""
    log = tmp_path_factory.mktemp("log") / "server.log"
    environment = {
        "HEADVIZ_NICENESS": os.environ.get("HEADVIZ_NICENESS", "0"),  # or a busy machine lets the tests wait
        "HEADVIZ_ROOTS": str(studio_folder),
        "HF_HUB_OFFLINE": "1",
        "OMP_NUM_THREADS": "1",
    }
    with serve(server_home, log, **environment) as running:
        yield running.address
    end_runs(server_home)


def end_runs(home: Path) -> None:
    """End what a dashboard with this home has started."""
    from headviz.runs.registry import Registry
    from support.running import end_workers

    end_workers(Registry(home / "runs"))


@pytest.fixture(scope="session")
def query(studio_folder: Path) -> dict[str, str]:
    from support import studio

    return studio.address(studio_folder)


@pytest.fixture(scope="session")
def clf(query: dict[str, str]) -> Any:
    """The dashboard's model, in this process."""
    import headviz

    return headviz.load(query["model"])


class Visit:
    """One browser tab of its own context. Every request it makes is kept, and so is every dialog."""

    def __init__(self, context: Any, address: str) -> None:
        self.context, self.page, self.address = context, context.new_page(), address
        self.page.set_default_timeout(PATIENCE)
        self.outside: list[str] = []
        self.dialogs: list[str] = []
        self.errors: list[str] = []
        self.page.on("request", self._note)
        self.page.on("dialog", lambda d: (self.dialogs.append(d.message), d.dismiss()))
        self.page.on("pageerror", lambda e: self.errors.append(str(e)))

    def _note(self, request: Any) -> None:
        where = urlparse(request.url)
        if where.scheme in ("http", "https", "ws", "wss") and where.hostname not in ("127.0.0.1", "localhost"):
            self.outside.append(request.url)

    def go(self, page: str, **parameters: str) -> Any:
        self.page.goto(f"{self.address}/{page}?{urlencode(parameters)}")
        self.settle()
        return self.page

    def settle(self) -> None:
        """Wait until the page has been drawn and stays so."""
        self.page.wait_for_selector(IDLE)
        self.page.wait_for_timeout(400)
        self.page.wait_for_selector(IDLE)

    def cell(self, head: str) -> Any:
        """A head's cell on the board by its name, such as L3·H5."""
        return self.page.locator(f'.cell[aria-label^="{head},"], .cell[aria-label="{head}"]').first

    def choose(self, label: str | re.Pattern[str], option: str | re.Pattern[str], typed: str = "") -> None:
        """An option of a list, by typing, as people do. A page that is drawn anew closes a list: then once more."""
        from playwright.sync_api import TimeoutError as TooLate

        self.settle()
        box = self.page.get_by_role("combobox", name=label).first
        wanted = self.page.get_by_role("option", name=option).first
        for patience in (PATIENCE // 6, PATIENCE // 3, PATIENCE):
            box.click()
            box.press_sequentially(typed or str(option))
            try:
                wanted.click(timeout=patience)
            except TooLate:
                if patience == PATIENCE:
                    raise
                self.page.keyboard.press("Escape")
                self.settle()
            else:
                self.settle()
                return

    def fill(self, label: str, value: str) -> None:
        """A value typed into a field."""
        field = self.page.get_by_label(label, exact=True).first
        field.fill(value)
        field.press("Enter")
        self.settle()

    def mask(self) -> Any:
        """The mask in the address."""
        from headviz.heads import HeadMask

        text = parse_qs(urlparse(self.page.url).query).get("mask", [HeadMask.full(12, 12).hex])[0]
        return HeadMask.from_hex(text, 12, 12)

    def heads_off(self, count: int) -> None:
        """Wait until the page says so."""
        self.page.get_by_test_id("stMetricValue").get_by_text(f"{count} of 144", exact=True).wait_for()


@pytest.fixture(scope="session")
def profile(browser: Any) -> Iterator[Any]:
    """The context that tests share, one after the other: what has been loaded and compiled once stays so."""
    made = browser.new_context(viewport=SCREEN)
    yield made
    made.close()


@pytest.fixture
def visit(browser: Any, profile: Any, server: str) -> Iterator[Callable[..., Visit]]:
    """Open a tab; whatever the test does, nothing outside this machine may be asked for.

    The first one has the shared profile, without what earlier tests stored in it. Any further one is another person.
    """
    opened: list[Visit] = []

    def open_one(*, viewport: dict[str, int] = SCREEN, color_scheme: str = "light", **options: Any) -> Visit:
        own = bool(options or opened)
        v = Visit(browser.new_context(viewport=SCREEN, **options) if own else profile, server)
        v.page.set_viewport_size(viewport)
        v.page.emulate_media(color_scheme=color_scheme)
        opened.append(v)
        return v

    yield open_one
    for v in opened:
        assert not v.outside, f"requests left this machine: {v.outside}"
        assert not v.errors, v.errors
        if v.context is profile:
            if v.page.url.startswith("http"):
                v.page.evaluate("() => { localStorage.clear(); sessionStorage.clear() }")
            v.page.close()
            profile.clear_cookies()
        else:
            v.context.close()
