"""Tell the browser where the server is, and where the first page is.

On a page's own address, such as /compare, Streamlit's script looks for the server below that address first. Two 404s
stand in the browser's console each time before it looks beside it. The line that this puts into the page says so.
Streamlit serves the first page at / alone and calls its name an unknown page, so that name leads there.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from starlette.middleware import Middleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

FIRST = "heads"  # the page at /
LINE = (
    '<script>{const at=location.pathname.split("/"),page=at.pop();'
    'if(%s.includes(page))window.__streamlit={...window.__streamlit,BACKEND_BASE_URL:location.origin+at.join("/")+"/"}}'
    "</script>"
)


class Addressed:
    """Puts the line at the end of each page's head and leads from /heads to /; all else goes through as it is."""

    def __init__(self, app: ASGIApp, pages: Iterable[str]) -> None:
        self.app, self.pages = app, sorted(pages)
        self.line = (LINE % json.dumps(self.pages)).encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "GET" or scope["path"].split("/")[-1] not in self.pages:
            await self.app(scope, receive, send)
            return
        if scope["path"].split("/")[-1] == FIRST:
            query = scope.get("query_string", b"")
            place = b"./" + (b"?" + query if query else b"")  # relative: the server may stand below a path
            await send({"type": "http.response.start", "status": 307, "headers": [(b"location", place)]})
            await send({"type": "http.response.body", "body": b""})
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
            kept = [(k, v) for k, v in start["headers"] if k.lower() != b"content-length"]
            start["headers"] = [*kept, (b"content-length", str(len(body)).encode())]
            await send(start)
            await send({"type": "http.response.body", "body": body})

        plain = [(k, v) for k, v in scope["headers"] if k != b"accept-encoding"]  # a packed page has no head to find
        await self.app({**scope, "headers": plain}, receive, send_addressed)


def addressed(pages: Iterable[str]) -> Middleware:
    return Middleware(Addressed, pages=tuple(pages))
