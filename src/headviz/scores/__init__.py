"""Head scores: how important each head is, by many definitions.

``score_heads`` gives one table, ``score_progressive`` a growing one; ``SCORES`` and ``PRESETS`` list what there is.
``scores.parts`` measures a table in parts, on several machines say. The list is read without torch, which is
imported when the first score is computed.
"""

from typing import TYPE_CHECKING, Any

from .catalogue import DEFAULT, PRESETS, SCORES, Preset, Score

if TYPE_CHECKING:
    from .scoring import score_heads, score_progressive

__all__ = ["DEFAULT", "PRESETS", "SCORES", "Preset", "Score", "score_heads", "score_progressive"]


def __getattr__(name: str) -> Any:
    if name not in ("score_heads", "score_progressive"):
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    from . import scoring

    return getattr(scoring, name)
