"""The model card of a pruned model, and its way to the hub, which a server here plays."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import ModelCard

import headviz
from headviz.errors import UserError
from headviz.models.saving import Measured
from support.tiny import tiny_classifier

OFF = {0: [1], 2: [0, 3]}
CHANGE = headviz.paired([0, 1] * 50, [0, 1] * 50, [0, 1] * 48 + [1, 1, 1, 1])


def small() -> Any:
    return headviz.prune(tiny_classifier(), OFF)


@pytest.mark.slow
def test_a_card_says_what_was_removed_what_it_costs_and_how_to_load_it(tmp_path: Path) -> None:
    measured = Measured("sst2", {"accuracy": 0.98}, CHANGE.to_dict(), (2.0, 1.9, 2.1), "batches of 32, this processor")
    folder = small().save(tmp_path / "m", portable=True, measured=measured)
    card = ModelCard.load(folder / "README.md")
    facts = card.data.to_dict()
    assert facts["library_name"] == "transformers"
    assert facts["pipeline_tag"] == "text-classification"
    (result,) = card.data.eval_results
    assert (result.dataset_name, result.metric_type, result.metric_value) == ("sst2", "accuracy", 0.98)
    for text in ("3 of 12", "| L2 | 1 2 |", "-0.0200", "95 %", "2.00 times", "this processor", "pip install headviz"):
        assert text in card.text
    assert "trust_remote_code" in card.text


def test_what_was_not_measured_is_not_claimed(tmp_path: Path) -> None:
    card = ModelCard.load(small().save(tmp_path / "m") / "README.md")
    assert card.data.eval_results is None
    assert "Not measured" in card.text
    assert "trust_remote_code" not in card.text


def test_the_model_below_is_named_if_it_is_one_of_the_hub(tmp_path: Path) -> None:
    import dataclasses

    clf = dataclasses.replace(small(), name="someone/bert-sst2")
    facts = ModelCard.load(clf.save(tmp_path / "m") / "README.md").data.to_dict()
    assert (facts["base_model"], facts["base_model_relation"]) == ("someone/bert-sst2", "finetune")


def test_a_saved_folder_keeps_what_was_measured_and_where_it_comes_from(tmp_path: Path) -> None:
    import dataclasses

    measured = Measured("sst2", {"accuracy": 0.98}, CHANGE.to_dict(), (2.0, 1.9, 2.1), "this processor")
    before = dataclasses.replace(small(), name="someone/bert-sst2")
    first = before.save(tmp_path / "first", measured=measured)
    again = headviz.load(first, device="cpu")
    card = ModelCard.load(again.save(tmp_path / "again") / "README.md")
    assert card.content == (first / "README.md").read_text(encoding="utf-8")
    assert card.data.base_model == "someone/bert-sst2"
    less = headviz.prune(again, {1: [1]})  # another model: nothing of that holds
    assert "Not measured" in (less.save(tmp_path / "less") / "README.md").read_text(encoding="utf-8")


def test_what_has_no_value_is_left_out_of_a_card(tmp_path: Path) -> None:
    """Matthews' correlation of one gold class has none, nor has a difference of such."""
    undefined = CHANGE.to_dict() | {"low": None, "high": None}
    lines = Measured("sst2", {"matthews": None, "accuracy": 0.98}, undefined).lines()
    assert "no interval" in lines[0]
    assert not any("matthews" in line for line in lines)
    assert len(Measured("sst2", {}, undefined | {"difference": None}).lines()) == 0
    folder = small().save(tmp_path / "small", measured=Measured("sst2", {"matthews": None, "accuracy": 0.98}))
    assert [result.metric_type for result in ModelCard.load(folder / "README.md").data.eval_results] == ["accuracy"]


def test_results_of_headviz_become_a_card() -> None:
    assert Measured.of(CHANGE, "sst2").lines()
    with pytest.raises(UserError, match="prune_faster"):
        Measured.of(small().cost())


class Hub(BaseHTTPRequestHandler):
    """What of the hub an upload asks. Files come in the commit."""

    files: dict[str, bytes]
    repos: list[str]
    refuses = False

    def do_POST(self) -> None:
        body = self.body()
        if self.refuses:
            self.reply(403, {"error": "no"})
        elif self.path.endswith("/create"):
            self.repos.append(json.loads(body)["name"])
            self.reply(200, {"url": "https://huggingface.co/someone/small"})
        elif "/preupload/" in self.path:
            names = [one["path"] for one in json.loads(body)["files"]]
            self.reply(200, {"files": [{"path": n, "uploadMode": "regular", "shouldIgnore": False} for n in names]})
        elif "/commit/" not in self.path:  # the check of a card's metadata
            self.reply(200, {"errors": [], "warnings": []})
        else:
            for line in map(json.loads, body.decode().splitlines()):
                if line["key"] == "file":
                    self.files[line["value"]["path"]] = base64.b64decode(line["value"]["content"])
            self.reply(
                200, {"commitUrl": "https://huggingface.co/someone/small/commit/1", "commitOid": "1", "success": True}
            )

    def body(self) -> bytes:
        if "Content-Length" in self.headers:
            return self.rfile.read(int(self.headers["Content-Length"]))
        pieces = []
        while size := int(self.rfile.readline(), 16):  # sent in chunks
            pieces.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(pieces)

    def do_GET(self) -> None:
        self.reply(404, {"error": "nothing here"})

    def reply(self, status: int, content: Any) -> None:
        raw = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(raw)))
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Hub]]:
    own = type("Own", (Hub,), {"files": {}, "repos": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), own)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setenv("HF_TOKEN", "hf_not_a_token")
    yield own
    server.shutdown()


def test_a_pushed_model_is_the_saved_one(hub: type[Hub], tmp_path: Path) -> None:
    clf = small()
    assert clf.push_to_hub("someone/small").endswith("commit/1")
    assert hub.repos == ["small"]
    for name, content in hub.files.items():
        (tmp_path / name).write_bytes(content)
    assert ModelCard.load(tmp_path / "README.md").data.library_name == "transformers"
    assert headviz.load(tmp_path, device="cpu").digest == clf.digest


def test_a_hub_that_refuses_is_one_line(hub: type[Hub]) -> None:
    hub.refuses = True
    with pytest.raises(UserError, match="HF_TOKEN"):
        small().push_to_hub("someone/small")
    with pytest.raises(UserError, match="name of a repository"):
        small().push_to_hub("small")
