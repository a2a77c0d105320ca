"""Repairs of the kept weights after heads were removed, without training: bias, tune, refit."""

from typing import TYPE_CHECKING

from ...compat.old_names import names_of

if not TYPE_CHECKING:
    __getattr__ = names_of(__name__, "kinds")
