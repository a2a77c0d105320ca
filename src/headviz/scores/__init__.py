"""Head scores: how important each head is, by ten definitions.

``score_heads`` gives one table, ``score_progressive`` a growing one; ``SCORES`` and ``PRESETS`` list what there is.
``scores.parts`` measures a table in parts, on several machines say.
"""

from .catalogue import DEFAULT, PRESETS, SCORES, Preset, Score
from .scoring import score_heads, score_progressive

__all__ = ["DEFAULT", "PRESETS", "SCORES", "Preset", "Score", "score_heads", "score_progressive"]
