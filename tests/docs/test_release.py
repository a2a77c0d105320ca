"""One version everywhere, and what a release is refused for."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

import headviz
from docs.test_site import script

ROOT = Path(__file__).resolve().parents[2]
faults = script(ROOT / "tools/try_wheel.py").release_faults


def git(root: Path, *words: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@b.c")
    subprocess.run(["git", "-C", str(root), *who, *words], check=True, capture_output=True)


@pytest.fixture
def ready(tmp_path: Path) -> Path:
    """A commit that can be released as 0.2.0."""
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## 0.2.0 – 2026-11-30\n\n- new\n\n## 0.1.0\n")
    (tmp_path / "CITATION.cff").write_text("version: 0.2.0\npreferred-citation:\n  version: 0.2.0\n")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "all")
    git(tmp_path, "tag", "-a", "v0.2.0", "-m", "0.2.0")
    return tmp_path


def test_a_finished_version_is_released(ready: Path) -> None:
    assert faults("0.2.0", ready) == []


def test_an_unfinished_version_is_not(ready: Path) -> None:
    git(ready, "tag", "v0.2.0.dev0")
    assert [fault.split()[0] for fault in faults("0.2.0.dev0", ready)] == ["0.2.0.dev0", "CHANGELOG.md", "CITATION.cff"]


def test_the_tag_stands_on_this_commit(ready: Path) -> None:
    git(ready, "commit", "-q", "--allow-empty", "-m", "later")
    assert faults("0.2.0", ready) == ["This commit has no tag v0.2.0: git tag -a v0.2.0"]


@pytest.mark.parametrize("heading", ["0.2.0 – unreleased", "0.2.0", "0.3.0 – unreleased\n\n## 0.2.0 – 2026-11-30"])
def test_the_changelog_begins_with_the_version_and_its_date(ready: Path, heading: str) -> None:
    (ready / "CHANGELOG.md").write_text(f"# Changelog\n\n## {heading}\n")
    (fault,) = faults("0.2.0", ready)
    assert fault.startswith("CHANGELOG.md begins with")


def test_both_places_of_the_citation_name_it(ready: Path) -> None:
    (ready / "CITATION.cff").write_text("version: 0.2.0\npreferred-citation:\n  version: 0.1.0\n")
    assert faults("0.2.0", ready) == ["CITATION.cff names 0.1.0, 0.2.0, not 0.2.0."]


def test_version_changelog_and_citation_agree() -> None:
    """Between releases the version is the next one's, with .dev0; the citation names the newest released one."""
    headings = re.findall(r"^## (\S+)( – unreleased)?", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.M)
    version, unreleased = headings[0]
    assert headviz.__version__ == version + (".dev0" if unreleased else "")
    released = next(version for version, open_ in headings if not open_)
    named = re.findall(r"^ *version: (\S+)$", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), re.M)
    assert named == [released, released]
