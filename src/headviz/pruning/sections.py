"""What pruning runs say of themselves besides their steps. The entries come through the plugins' door."""

from __future__ import annotations

from collections.abc import Mapping

from .. import plugins
from ..plugins import Section

SECTIONS: Mapping[str, Section] = plugins.Entries("sections", ())
