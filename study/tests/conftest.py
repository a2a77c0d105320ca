"""The pages of the study, from the folder of its results."""

from types import ModuleType

import pytest

from study import page
from tests.conftest import homes, own_home  # noqa: F401  # no test reads or writes the developer's own cache


@pytest.fixture
def study() -> ModuleType:
    return page
