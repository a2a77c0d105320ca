"""What pruning runs say of themselves besides their steps. The entries come through the plugins' door."""

from __future__ import annotations

from .. import plugins
from ..plugins import Section

SECTIONS: dict[str, Section] = plugins.table("sections", ())
