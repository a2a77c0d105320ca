"""Nothing of the hub is fetched before a press that names it; what is in its local cache opens without one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import huggingface_hub
import pytest
from huggingface_hub.errors import LocalEntryNotFoundError

from headviz.storage.paths import wait_for_press

GLUE = "nyu-mll/glue"


class Hub:
    """A hub in the place of the client's functions: what it has, what lies in the local cache, and what was asked."""

    def __init__(self, model: Path, files: Path) -> None:
        self.model, self.files = model, files
        self.here: set[tuple[str, str | None]] = set()
        self.asked: list[tuple[str, str | None]] = []
        self.online = True

    def _get(self, name: str, part: str | None) -> None:
        self.asked.append((name, part))
        if not self.online:
            raise LocalEntryNotFoundError("no network")
        self.here.add((name, part))

    def snapshot(self, repo: str, revision: str | None = None, **_: Any) -> str:
        self._get(repo, revision)
        return str(self.model)

    def file(self, repo: str, name: str, repo_type: str) -> str:
        self._get(repo, name)
        return str(self._path(name))

    def _path(self, name: str) -> Path:
        return self.files / ("train" if "train" in name else "dev")

    def cached(self, repo: str, name: str, revision: str | None = None, repo_type: str = "model") -> str | None:
        """As ``try_to_load_from_cache``."""
        if (repo, revision if repo_type == "model" else name) not in self.here:
            return None
        return str(self.model / name if repo_type == "model" else self._path(name))


@pytest.fixture
def hub(small_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """A dashboard's process, and what it asks of the hub."""
    import pyarrow
    from pyarrow import parquet

    columns = {"sentence1": ["a b c"] * 12, "sentence2": ["b c"] * 12, "label": [0, 1] * 6, "idx": list(range(12))}
    for split in ("train", "dev"):
        parquet.write_table(pyarrow.table(columns), tmp_path / split)
    made = Hub(small_folder / "model", tmp_path)
    monkeypatch.setattr(huggingface_hub, "snapshot_download", made.snapshot)
    monkeypatch.setattr(huggingface_hub, "hf_hub_download", made.file)
    monkeypatch.setattr(huggingface_hub, "try_to_load_from_cache", made.cached)
    from headviz.ui.shell import loaders
    from headviz.ui.shell.job import Memo

    for name in ("_models", "_datasets"):
        monkeypatch.setattr(loaders, name, Memo(4))
    from headviz.ui.shell import jobs

    monkeypatch.setattr(jobs, "_jobs", type(jobs._jobs)())
    wait_for_press()
    yield made
    wait_for_press(None)


def offers(app: Any) -> list[str]:
    labels = (button.label.replace("\\", "") for button in app.button)
    return [label for label in labels if label.startswith("Download ") and "Hugging Face Hub" in label]


def press(app: Any) -> Any:
    return next(b for b in app.button if b.label.replace("\\", "") in offers(app)).click().run()


TASK = {"task": "mrpc", "data": "", "columns": "", "label": "", "groups": ""}
LINKS = [
    ("scores", {"model": "someone/x"}, "someone/x"),
    ("masklab", {"model": "someone/x", "revision": "v2"}, "someone/x at revision v2"),
    ("compare", {"other": "someone/y"}, "someone/y"),
    ("data", TASK, f"MRPC ({GLUE})"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("page", "link", "name"), LINKS)
def test_a_link_fetches_nothing_before_the_press(
    page: str, link: dict[str, str], name: str, open_page: Callable[..., Any], hub: Hub
) -> None:
    app = open_page(page, **link)
    assert not app.exception
    assert hub.asked == []
    assert offers(app) == [f"Download {name} from the Hugging Face Hub"]
    app = press(app)
    assert not app.exception
    assert offers(app) == []
    files = {(GLUE, f"mrpc/{split}-00000-of-00001.parquet") for split in ("train", "validation")}
    word, _, revision = name.partition(" at revision ")
    assert set(hub.asked) == (files if "task" in link else {(word, revision or None)})
    asked = len(hub.asked)
    again = open_page(page, **link)
    assert offers(again) == []
    assert len(hub.asked) == asked


@pytest.mark.slow
@pytest.mark.parametrize("link", [{"model": "someone/x"}, TASK])
def test_what_is_in_the_local_cache_opens_by_link(
    link: dict[str, str], open_page: Callable[..., Any], hub: Hub
) -> None:
    hub.here |= {("someone/x", None)}
    hub.here |= {(GLUE, f"mrpc/{split}-00000-of-00001.parquet") for split in ("train", "validation")}
    app = open_page("masklab", **link)
    assert not app.exception
    assert (offers(app), hub.asked) == ([], [])


@pytest.mark.slow
def test_a_press_without_a_network_is_answered_in_one_line(open_page: Callable[..., Any], hub: Hub) -> None:
    hub.online = False
    app = press(open_page("masklab", model="someone/x"))
    for now in (app, app.run()):
        (line,) = [e.value for e in now.error]
        assert "cannot be reached" in line
        assert len(offers(now)) == 1
    assert hub.asked == [("someone/x", None)]
    hub.online = True
    assert offers(press(app)) == []


@pytest.mark.slow
def test_a_base_model_of_a_link_is_not_fetched_for_a_job(
    open_page: Callable[..., Any], small: dict[str, str], hub: Hub
) -> None:
    """The computation is asked for by a press; what it needs is named by another."""
    app = open_page("scores", **small, base="someone/base", weights="pre-trained", score="magnitude")
    for button in [b for b in app.button if b.label.startswith("Compute")]:
        app = button.click().run()
    assert hub.asked == []
    assert offers(app) == ["Download someone/base from the Hugging Face Hub"]
    app = press(app)
    assert hub.asked == [("someone/base", None)]
    assert not [e.value for e in app.error]


def test_what_the_command_line_named_needs_no_press(
    open_page: Callable[..., Any], hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    wait_for_press({"someone/x", "task mrpc"})
    app = open_page("masklab", model="someone/x", **TASK)
    assert offers(app) == []
    assert {name for name, _ in hub.asked} == {"someone/x", GLUE}
    assert offers(open_page("masklab", model="someone/x", revision="other")) != []
    assert offers(open_page("masklab", model="mrpc")) != []
