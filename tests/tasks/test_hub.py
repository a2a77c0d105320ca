"""The hub, by patched answers and by a small server of our own that speaks its protocol."""

import inspect
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import huggingface_hub
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from huggingface_hub import errors as hub_errors

from headviz.errors import TaskError
from headviz.tasks import load_task

COMMIT = "0123456789abcdef0123456789abcdef01234567"

# What the hub's viewer shows for each data set: file, columns (with "idx" left out), type of the label.
ON_HUB = {
    "mnli": ("nyu-mll/glue", "mnli/{}-00000-of-00001.parquet", ("premise", "hypothesis"), "validation_matched"),
    "mnli-mm": ("nyu-mll/glue", "mnli/{}-00000-of-00001.parquet", ("premise", "hypothesis"), "validation_mismatched"),
    "qqp": ("nyu-mll/glue", "qqp/{}-00000-of-00001.parquet", ("question1", "question2"), "validation"),
    "qnli": ("nyu-mll/glue", "qnli/{}-00000-of-00001.parquet", ("question", "sentence"), "validation"),
    "mrpc": ("nyu-mll/glue", "mrpc/{}-00000-of-00001.parquet", ("sentence1", "sentence2"), "validation"),
    "sst2": ("nyu-mll/glue", "sst2/{}-00000-of-00001.parquet", ("sentence",), "validation"),
    "cola": ("nyu-mll/glue", "cola/{}-00000-of-00001.parquet", ("sentence",), "validation"),
    "rte": ("nyu-mll/glue", "rte/{}-00000-of-00001.parquet", ("sentence1", "sentence2"), "validation"),
    "wnli": ("nyu-mll/glue", "wnli/{}-00000-of-00001.parquet", ("sentence1", "sentence2"), "validation"),
    "stsb": ("nyu-mll/glue", "stsb/{}-00000-of-00001.parquet", ("sentence1", "sentence2"), "validation"),
    "rotten-tomatoes": ("cornell-movie-review-data/rotten_tomatoes", "{}.parquet", ("text",), "validation"),
    "imdb": ("stanfordnlp/imdb", "plain_text/{}-00000-of-00001.parquet", ("text",), "test"),
}


def _parquet(path: Path, columns: tuple[str, ...], regression: bool = False) -> Path:
    labels: list[float] | list[int] = [1.5, 0.0, 5.0] if regression else [1, 0, 1]
    table = {c: [f"{c} {i}" for i in range(3)] for c in columns}
    pq.write_table(pa.table({**table, "label": labels, "idx": [0, 1, 2]}), path)
    return path


@pytest.mark.parametrize(("name", "split"), [*((name, "dev") for name in ON_HUB), ("mnli", "train"), ("imdb", "train")])
def test_reads_the_right_file(name: str, split: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repo, pattern, columns, dev = ON_HUB[name]
    asked = []

    def download(repo_id: str, filename: str, *, repo_type: str) -> str:
        asked.append((repo_id, filename, repo_type))
        return str(_parquet(tmp_path / "x.parquet", columns, name == "stsb"))

    monkeypatch.setattr(huggingface_hub, "hf_hub_download", download)
    data = load_task(name, split)
    assert asked == [(repo, pattern.format("train" if split == "train" else dev), "dataset")]
    assert data.texts == tuple(f"{columns[0]} {i}" for i in range(3))
    assert (data.pairs is None) == (len(columns) == 1)
    if len(columns) == 2:
        assert data.pairs == tuple(f"{columns[1]} {i}" for i in range(3))
    assert data.gold.tolist() == ([1.5, 0.0, 5.0] if name == "stsb" else [1, 0, 1])
    assert data.notes == ()


def _http(kind: type[Exception]) -> Exception:
    response = type("Response", (), {"headers": {}, "request": None, "status_code": 404, "text": ""})()
    return kind("refused", response=response) if "response" in inspect.signature(kind).parameters else kind("refused")


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (hub_errors.LocalEntryNotFoundError("x"), "cannot be reached"),
        (hub_errors.OfflineModeIsEnabled("x"), "cannot be reached"),
        (_http(hub_errors.GatedRepoError), "HF_TOKEN"),
        (_http(hub_errors.RepositoryNotFoundError), "has no file"),
        (_http(hub_errors.HfHubHTTPError), "broke off"),
        (ConnectionResetError("reset by peer"), r"broke off \(reset by peer\)"),
        (OSError("No space left on device"), "No space left"),
        (PermissionError(13, "denied", "/cache"), r"folder cannot be written \(/cache\).*HF_HOME"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_failures_in_one_line(error: Exception, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def download(*_: object, **__: object) -> str:
        raise error

    monkeypatch.setattr(huggingface_hub, "hf_hub_download", download)
    with pytest.raises(TaskError, match=says) as caught:
        load_task("sst2")
    assert "\n" not in str(caught.value)
    assert "--data FOLDER" in str(caught.value)


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[dict]:
    """A server with one data set; ``state["send"]`` is how many bytes of the file it sends before it hangs up."""
    body = _parquet(tmp_path / "served.parquet", ("sentence",)).read_bytes()
    state: dict = {"send": len(body), "gets": 0}

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _head(self) -> bool:
            if "/resolve/" not in self.path or not self.path.endswith("sst2/validation-00000-of-00001.parquet"):
                self.send_response(404)
                self.send_header("X-Error-Code", "EntryNotFound")
                self.send_header("Content-Length", "0")
                self.end_headers()
                return False
            start = int(self.headers.get("Range", "bytes=0-").removeprefix("bytes=").split("-")[0])
            self.send_response(206 if start else 200)
            self.send_header("ETag", '"served-1"')
            self.send_header("X-Repo-Commit", COMMIT)
            self.send_header("Content-Length", str(len(body) - start))
            self.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
            self.end_headers()
            state["start"] = start
            return True

        def do_HEAD(self) -> None:
            self._head()

        def do_GET(self) -> None:
            state["gets"] += 1
            if self._head():
                self.wfile.write(body[state["start"] : state["send"]])
                self.wfile.flush()
                if state["send"] < len(body):
                    self.close_connection = True

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    state["url"] = f"http://127.0.0.1:{server.server_port}"
    state["size"] = len(body)
    yield state
    server.shutdown()
    server.server_close()
    thread.join()


def _load_in_fresh_process(url: str, home: Path, offline: bool = False) -> dict:
    # the hub's client reads its endpoint and its cache folder when it is imported
    script = (
        "import json, huggingface_hub.file_download as f\n"
        "from headviz.errors import TaskError\n"
        "from headviz.tasks import load_task\n"
        "try:\n    print(json.dumps({'texts': load_task('sst2').texts}))\n"
        "except TaskError as error:\n    print(json.dumps({'error': str(error)}))\n"
    )
    env = {
        **os.environ,
        "HF_ENDPOINT": url,
        "HF_HOME": str(home),
        "HF_HUB_OFFLINE": "1" if offline else "0",
        "HF_HUB_DISABLE_XET": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
    }
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        env.pop(name, None)
    done = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.slow
def test_the_real_client_is_interrupted_then_downloads_then_works_offline(hub: dict, tmp_path: Path) -> None:
    hub["send"] = hub["size"] // 2
    answer = _load_in_fresh_process(hub["url"], tmp_path / "home")
    assert "broke off" in answer["error"]
    assert "\n" not in answer["error"]
    hub["send"] = hub["size"]
    expected = {"texts": [f"sentence {i}" for i in range(3)]}
    assert _load_in_fresh_process(hub["url"], tmp_path / "home") == expected
    gets = hub["gets"]
    assert _load_in_fresh_process(hub["url"], tmp_path / "home", offline=True) == expected
    assert hub["gets"] == gets
