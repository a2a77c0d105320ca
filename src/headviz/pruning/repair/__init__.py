"""What may be done for the heads that stay, without training: bias, refit, tune."""

from typing import TYPE_CHECKING

from ...compat.old_names import names_of

if not TYPE_CHECKING:
    __getattr__ = names_of(__name__, "kinds")
