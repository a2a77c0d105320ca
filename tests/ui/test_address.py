"""The line that tells a page where its server is."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from headviz.ui.shell.server import Addressed, moved
from headviz.ui.shell.view import MOVED, PAGES

PAGE = b"<html><head><title>x</title></head><body></body></html>"


@pytest.mark.parametrize(
    ("path", "told"), [("/compare", True), ("/lab/compare", True), ("/", False), ("/media/a", False)]
)
def test_pages_alone_get_the_line(path: str, told: bool) -> None:
    sent: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        length = (b"content-length", str(len(PAGE)).encode())
        await send({"type": "http.response.start", "status": 200, "headers": [length]})
        await send({"type": "http.response.body", "body": PAGE[:20], "more_body": True})
        await send({"type": "http.response.body", "body": PAGE[20:]})

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "GET", "path": path, "headers": [(b"accept-encoding", b"gzip")]}
    asyncio.run(Addressed(app, ["compare"])(scope, None, send))
    body = b"".join(m.get("body", b"") for m in sent)
    assert (b"BACKEND_BASE_URL" in body) == told
    assert int(dict(sent[0]["headers"])[b"content-length"]) == len(body)
    assert body.replace(body[body.find(b"<script>") : body.find(b"</head>")] if told else b"", b"") == PAGE


@pytest.mark.parametrize(("query", "place"), [(b"", b"./"), (b"head=4.10&off=4.10", b"./?head=4.10&off=4.10")])
def test_the_first_pages_name_leads_to_it_with_its_view(query: bytes, place: bytes) -> None:
    sent: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        raise AssertionError("Streamlit would call it an unknown page")

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "GET", "path": "/lab/workbench", "query_string": query, "headers": []}
    asyncio.run(Addressed(app, ["compare", "workbench"])(scope, None, send))
    assert sent[0]["status"] == 307
    assert dict(sent[0]["headers"])[b"location"] == place


def test_an_older_pages_address_leads_to_the_page_that_has_taken_over() -> None:
    """Each with its parameters; what is still here stays."""
    walked = {
        ("heads", b""): b"./scores",
        ("heads", b"score=taylor&head=4.10"): b"./scores?score=taylor&head=4.10",
        ("", b"side=board&weights=pre-trained"): b"./scores?side=board&weights=pre-trained",
        ("", b"head=4.10&off=8.6"): None,
        ("distil", b""): b"./runs?new=distill",
        ("distil", b"run=r1&layers=3"): b"./runs?run=r1&layers=3&new=distill",
        ("analyses", b"analysis=speed&limit=20"): b"./runs?limit=20&new=speed",
        ("analyses", b"analysis=grade"): b"./scores?side=board",
        ("analyses", b"analysis=roles"): None,
        ("workbench", b"a=x"): b"./?a=x",
    }
    assert {asked: moved(*asked) for asked in walked} == walked
    assert all(moved(page, b"mask=0f") is None for page in PAGES if page != "workbench")
    assert {page for page, _ in MOVED.values()} <= {*PAGES}
    assert not {page for page, parameter in MOVED if not parameter} & {*PAGES}
