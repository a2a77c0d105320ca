"""The plain address opens what the server was started with."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlencode

import pytest

from headviz.storage.paths import START
from support.page import switch

APP = Path(__file__).resolve().parents[2] / "app.py"


@pytest.mark.slow
@pytest.mark.parametrize("page", ["workbench", "masklab", "runs"])
def test_an_address_without_parameters_opens_what_the_server_was_started_with(
    page: str, address: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from streamlit.testing.v1 import AppTest

    monkeypatch.setenv(START, urlencode({k: address[k] for k in ("model", "task", "data")}))
    app = AppTest.from_file(str(APP), default_timeout=240)
    app = switch(app, page).run()
    assert not app.exception
    view = app.session_state["headviz"].view
    assert (view.model, view.task, view.data) == (address["model"], address["task"], address["data"])
    assert app.query_params["model"] in (address["model"], [address["model"]])
