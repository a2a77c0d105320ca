"""What the dashboard's server adds to Streamlit's: where its pages are, and what it refuses.

It refuses foreign hosts, requests to the outside, and pages that load from elsewhere.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Iterable
from secrets import token_hex
from urllib.parse import urlsplit

from starlette.middleware import Middleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit import config, net_util
from streamlit.cli_util import open_browser
from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.runtime.app_session import AppSession
from streamlit.runtime.pages_manager import PagesManager
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.web.server.server_util import get_url

from ...commands.serve import answers
from ...storage.paths import wait_for_press
from .view import FIRST, MOVED, OF_SCORES, start

LINE = (
    '<script>{const at=location.pathname.split("/"),page=at.pop();'
    'if(%s.includes(page))window.__streamlit={...window.__streamlit,BACKEND_BASE_URL:location.origin+at.join("/")+"/"}}'
    "</script>"
)


class Addressed:
    """Adds the line at the end of each page's head, and redirects from a page that has moved. All other requests pass
    unchanged."""

    def __init__(self, app: ASGIApp, pages: Iterable[str]) -> None:
        self.app, self.pages = app, sorted(pages)
        self.line = (LINE % json.dumps(self.pages)).encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        page = scope["path"].split("/")[-1] if scope["type"] == "http" and scope["method"] == "GET" else None
        query = scope.get("query_string", b"")
        if page is not None and (location := moved(page, query)) is not None:
            await send({"type": "http.response.start", "status": 307, "headers": [(b"location", location)]})
            await send({"type": "http.response.body", "body": b""})
            return
        if page not in self.pages:
            await self.app(scope, receive, send)
            return
        start: Message = {}
        parts: list[bytes] = []

        async def send_addressed(message: Message) -> None:
            if message["type"] == "http.response.start":
                start.update(message)
                return
            parts.append(message.get("body", b""))
            if message.get("more_body"):
                return
            body = b"".join(parts).replace(b"</head>", self.line + b"</head>", 1)
            headers = [(k, v) for k, v in start["headers"] if k.lower() != b"content-length"]
            start["headers"] = [*headers, (b"content-length", str(len(body)).encode())]
            await send(start)
            await send({"type": "http.response.body", "body": body})

        # the head of a compressed page could not be found
        headers = [(k, v) for k, v in scope["headers"] if k != b"accept-encoding"]
        await self.app({**scope, "headers": headers}, receive, send_addressed)


def moved(page: str, query: bytes) -> bytes | None:
    """Where the page of this name is now, relative because the server may stand below a path; None if it is here."""
    fields = [field for field in query.decode("latin-1").split("&") if field]
    for (old, parameter), (new, added) in MOVED.items():
        if page == old and (not parameter or parameter in fields):
            return _location(new, [*(field for field in fields if field != parameter), *filter(None, [added])])
    if page == "" and {field.partition("=")[0] for field in fields} & {*OF_SCORES}:
        return _location("scores", fields)
    return _location("", fields) if page == FIRST else None


def _location(page: str, fields: list[str]) -> bytes:
    return f"./{page}{'?' if fields else ''}{'&'.join(fields)}".encode("latin-1")


# ---- foreign hosts and pages that load from elsewhere

# A dashboard that ``headviz.show`` started stands in a page of a notebook on this machine.
NOTEBOOKS = " http://localhost:* http://127.0.0.1:* vscode-webview:"

# Streamlit's page has scripts and styles of its own in line, compiles its components, and draws pictures as data.
# Nothing may come from, or go to, another address; the page may not be shown inside another site's.
POLICY = "; ".join(
    [
        "default-src 'self'",
        "script-src 'self' 'unsafe-inline' 'unsafe-eval' blob:",
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data: blob:",
        "font-src 'self' data:",
        "connect-src 'self'",
        "worker-src 'self' blob:",
        "media-src 'self' blob:",
        "object-src 'none'",
        "base-uri 'self'",
        "form-action 'self'",
        f"frame-ancestors 'self'{NOTEBOOKS if os.environ.get('HEADVIZ_NOTEBOOK') == '1' else ''}",
    ]
)
HEADERS = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
)


_COOKIES = "STREAMLIT_SERVER_COOKIE_SECRET"


def in_session() -> bool:
    """Whether this is a visit to a page; else the server is starting."""
    return get_script_run_ctx(suppress_warning=True) is not None


def begin() -> None:
    """What the server does once, when it starts: it keeps to this machine, and prints and opens its address.

    Streamlit would ask an outside address for this machine's public one when a page of another site opens a
    connection. Nothing of the hub is fetched but what the command line named, until a user asks for it.
    """
    net_util.get_external_ip = lambda: None
    # the first run would take pages/ for all pages there are; app.py declares them, some of which are no file there
    PagesManager.uses_pages_directory = False
    AppSession.request_rerun = _request_rerun  # type: ignore[method-assign,assignment]
    # a file with a known secret would let a visitor forge who he is
    config.set_option("server.cookieSecret", os.environ.setdefault(_COOKIES, token_hex(32)))
    fields = start()
    wait_for_press({fields.get("model", ""), f"task {fields.get('task', '')}"})
    address = get_url(config.get_option("browser.serverAddress"))
    print("headviz:", address, file=sys.stderr, flush=True)
    if not config.get_option("server.headless"):
        threading.Thread(target=_open, args=(address,), daemon=True).start()


_streamlits_own = AppSession.request_rerun


def _request_rerun(session: AppSession, client_state: ClientState | None) -> None:
    """Streamlit drops a click inside a part that a session does not know. That of a page which has outlived its server
    has not drawn any: it draws the whole page."""
    part = "" if client_state is None else client_state.fragment_id
    if client_state is not None and part and session._scriptrunner is None and not session.has_fragment(part):
        client_state.fragment_id = ""
    _streamlits_own(session, client_state)


def _open(address: str) -> None:
    """Open the browser once the server answers; after a minute without an answer it is left to the user."""
    if answers(f"{address}/", 60):
        open_browser(address)


class Guard:
    """Refuses requests for a host that ``server.allowedHosts`` does not list; adds the headers to what is sent."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":  # streamlit checks host and origin of connections that stay open
            await self.app(scope, receive, send)
            return
        hosts = [value.decode("latin-1") for name, value in scope["headers"] if name == b"host"]
        if len(hosts) != 1 or not host_allowed(hosts[0], config.get_option("server.allowedHosts")):
            await _refuse(send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *HEADERS]
            await send(message)

        await self.app(scope, receive, send_guarded)


def host_allowed(host: str, allowed: list[str]) -> bool:
    """Whether the request's host is listed; ``*.name`` stands for the hosts below a name, an empty list for all."""
    if not allowed:
        return True
    try:
        name = (urlsplit(f"//{host}").hostname or "").rstrip(".")
    except ValueError:
        return False
    patterns = [a.strip().lower().rstrip(".") for a in allowed]
    return bool(name) and any(p in ("*", name) or (p.startswith("*.") and name.endswith(p[1:])) for p in patterns)


async def _refuse(send: Send) -> None:
    body = b"This host is not in server.allowedHosts of the dashboard."
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", str(len(body)).encode()), *HEADERS]
    await send({"type": "http.response.start", "status": 403, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def middleware(pages: Iterable[str]) -> list[Middleware]:
    """What the app passes each request through; ``pages`` are the names of its pages."""
    return [Middleware(Guard), Middleware(Addressed, pages=tuple(pages))]
