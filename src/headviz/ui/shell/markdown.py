"""The one way from a text of somebody else's into a call of Streamlit's that reads Markdown."""

from __future__ import annotations

import re

_SPECIAL = re.compile(r"([\\`*_{}\[\]()#+\-.!|<>$~:^=&])")
# What turns a text into a link or a symbol even where its special characters are escaped: addresses with and without
# their beginning, e-mail addresses, names between colons. A space of no width stops that and is not seen.
_LINKED = re.compile(r"(:)(?=[A-Za-z/_+-])|\b(www)(?=\.)|(\w)(?=@\w)", re.IGNORECASE)
_GAP = "\u200b"


def plain(text: str) -> str:
    """A text that Markdown shows as it stands: nothing typed or uploaded is drawn, fetched or made clickable."""
    gapped = _LINKED.sub(lambda found: found[0] + _GAP, text)
    return _SPECIAL.sub(r"\\\1", gapped)
