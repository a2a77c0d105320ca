"""Metrics under a mask: plain, fast again and again, for translations, and what a difference is worth."""

from typing import TYPE_CHECKING

from ..compat.old_names import names_of

if not TYPE_CHECKING:
    __getattr__ = names_of(__name__, "plain", "dispatch")
