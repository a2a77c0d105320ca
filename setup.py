"""Everything stands in pyproject.toml; this only copies the dashboard's files into the built package.

``app.py`` and ``pages/`` live at the top of the checkout. In a wheel they become
``headviz/dashboard/``, where ``headviz serve`` finds them.
"""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

HERE = Path(__file__).resolve().parent


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


setup(cmdclass={"build_py": BuildWithDashboard})
