"""Everything stands in pyproject.toml, but for the dashboard's files and the README of the built package.

``app.py`` and ``pages/`` live at the top of the checkout. In a wheel they become
``headviz/dashboard/``, where ``headviz serve`` finds them. The README's links are relative to the
checkout; a package index shows it elsewhere, so in the package they are whole addresses.
"""

import re
import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

HERE = Path(__file__).resolve().parent
FILES = "https://github.com/headviz/headviz/blob/main/"
PICTURES = "https://raw.githubusercontent.com/headviz/headviz/main/"


class BuildWithDashboard(build_py):
    def run(self) -> None:
        super().run()
        if self.editable_mode:
            return
        target = Path(self.build_lib) / "headviz" / "dashboard"
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(parents=True)
        shutil.copy(HERE / "app.py", target)
        shutil.copytree(HERE / "pages", target / "pages", ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copytree(HERE / ".streamlit", target / ".streamlit", ignore=shutil.ignore_patterns("secrets.toml"))


def readme() -> str:
    text = (HERE / "README.md").read_text(encoding="utf-8")
    text = re.sub(r"(!\[[^\]]*\]\()(?!https?:)", rf"\1{PICTURES}", text)
    return re.sub(r"((?<!!)\[[^\]]*\]\()(?!https?:|#)", rf"\1{FILES}", text)


setup(
    cmdclass={"build_py": BuildWithDashboard}, long_description=readme(), long_description_content_type="text/markdown"
)
