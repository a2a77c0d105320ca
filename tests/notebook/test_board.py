"""The dashboard in a notebook: what its address asks for, and that the server answers and may be framed."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import parse_qs, urlparse
from urllib.request import urlopen

import pytest

import headviz
from headviz import HeadMask
from headviz.notebook import board
from support.tiny import tiny_classifier


@pytest.fixture
def no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(board, "server_address", lambda: "http://127.0.0.1:1/")


def asked(url: str) -> dict[str, str]:
    return {k: v[0] for k, v in parse_qs(urlparse(url).query).items()}


@pytest.mark.usefixtures("no_server")
def test_the_demo_goes_by_its_name() -> None:
    clf, data = headviz.load("demo", device="cpu"), headviz.load_task("demo", limit=30)
    mask = HeadMask.full(12, 12).without("3.5")
    made = headviz.show(clf, data, mask, height=500)
    wanted = {"model": "demo", "task": "demo", "limit": "30", "mask": mask.hex, "embed": "true"}
    assert asked(made.url) == wanted
    assert urlparse(made.url).path == "/masklab"
    assert 'height="500"' in made._repr_html_()
    assert "&amp;mask=" in made._repr_html_()


@pytest.mark.usefixtures("no_server")
def test_what_has_no_name_is_written_down() -> None:
    clf, data = tiny_classifier(), headviz.load_task("demo", limit=30).subset(range(5, 17))
    view = asked(headviz.show(clf, data, page="heads").url)
    assert headviz.load(view["model"], device="cpu").digest == clf.digest
    again = headviz.load_task(
        "custom", data=view["data"], text_columns=view["columns"].split(","), label_column=view["label"]
    )
    assert again.texts == data.texts
    assert again.pairs == data.pairs
    assert [e.label for e in again] == [e.label for e in data]


@pytest.mark.usefixtures("no_server")
def test_a_name_that_stands_for_other_weights_is_not_used() -> None:
    clf = tiny_classifier()
    object.__setattr__(clf, "name", "demo")
    assert Path(asked(headviz.show(clf).url)["model"]).is_dir()


@pytest.mark.usefixtures("no_server")
@pytest.mark.parametrize("wrong", [{"page": "runs"}, {"height": 5}, {"height": True}])
def test_slips_are_named(wrong: dict) -> None:
    with pytest.raises(headviz.UserError):
        headviz.show("demo", **wrong)


@pytest.mark.slow
def test_the_server_answers_and_may_stand_in_a_notebooks_page() -> None:
    with urlopen(headviz.show("demo").url, timeout=30) as page:
        policy = page.headers["content-security-policy"]
    assert "frame-ancestors 'self' http://localhost:* http://127.0.0.1:*" in policy
