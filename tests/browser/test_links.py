"""A link asks the hub for nothing. A listener in the hub's place counts what a real dashboard sends."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from headviz.storage.paths import START
from support import studio
from support.server import serve

from .conftest import SCREEN, Visit

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def listener() -> Iterator[tuple[str, list[str]]]:
    """A hub that has nothing: its address, and the requests it gets."""
    requests: list[str] = []

    class Nothing(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            requests.append(self.path)
            self.send_response(404)
            self.send_header("content-length", "0")
            self.end_headers()

        do_HEAD = do_POST = do_GET

        def log_message(self, format: str, *_: Any) -> None:
            pass

    hub = ThreadingHTTPServer(("127.0.0.1", 0), Nothing)
    threading.Thread(target=hub.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{hub.server_port}", requests
    hub.shutdown()
    hub.server_close()


@pytest.fixture(scope="module")
def dashboard(listener: tuple[str, list[str]], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A dashboard of a local model, online, with ``someone/here`` in the hub's cache and half of ``someone/half``."""
    folder = tmp_path_factory.mktemp("links")
    model = studio.make_model(folder / "model", layers=2, heads=2)
    for name in ("here", "half"):
        cached = folder / "hub" / "hub" / f"models--someone--{name}"
        studio.make_model(cached / "snapshots" / ("0" * 40), layers=2, heads=2)
        (cached / "refs").mkdir()
        (cached / "refs" / "main").write_text("0" * 40)
    (cached / "snapshots" / ("0" * 40) / "model.safetensors").unlink()
    environment = {
        "HEADVIZ_ROOTS": str(folder),
        START: f"model={model}",
        "HF_HOME": str(folder / "hub"),
        "HF_ENDPOINT": listener[0],
        "HF_HUB_OFFLINE": "0",
        "OMP_NUM_THREADS": "1",
    }
    with serve(folder / "home", folder / "log.txt", **environment) as running:
        yield running.address


@pytest.fixture
def tab(browser: Any, dashboard: str) -> Iterator[Visit]:
    made = Visit(browser.new_context(viewport=SCREEN), dashboard)
    yield made
    assert not made.outside
    made.context.close()


def test_links_send_no_request(tab: Visit, listener: tuple[str, list[str]]) -> None:
    requests = listener[1]
    offer = tab.page.get_by_role("button", name="from the Hugging Face Hub")
    for page, link, offered in (
        ("", {}, 0),
        ("masklab", {"model": "someone/here"}, 0),
        ("masklab", {"model": "someone/half"}, 1),
        ("compare", {"other": "someone/x"}, 1),
        ("scores", {"base": "someone/x", "weights": "pre-trained"}, 0),
        ("masklab", {"task": "mrpc"}, 1),
        ("data", {"task": "mrpc", "model": "someone/x"}, 2),
    ):
        tab.go(page, **link)
        assert offer.count() == offered, (page, link)
        assert requests == []
    tab.go("masklab", model="someone/x")
    offer.click()
    tab.page.get_by_text("There is no model 'someone/x' on the hub").or_(
        tab.page.get_by_text("the hub cannot be reached")
    ).wait_for()
    assert any("someone/x" in path for path in requests)
    assert not any("mrpc" in path for path in requests)
    # the form of the page is a press
    tab.go("data")
    tab.page.get_by_text("Another model: hub id, folder, revision, device").click()
    tab.page.get_by_role("textbox", name="Model").fill("someone/typed")
    tab.page.get_by_role("button", name="Load", exact=True).click()
    tab.page.get_by_text("'someone/typed'").first.wait_for()
    assert any("someone/typed" in path for path in requests)
