"""Winning tickets, the thesis's tables of them, and the transfer of masks to other tasks."""

from typing import TYPE_CHECKING

from ...compat.old_names import names_of

if not TYPE_CHECKING:
    __getattr__ = names_of(__name__, "winning")
