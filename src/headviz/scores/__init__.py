"""Head scores: how important each head is, by many definitions.

``SCORES`` and ``PRESETS`` list what there is, without torch. ``scoring`` has ``score_heads``, which gives one table,
``score_progressive``, which gives a growing one, and ``measure`` and ``join`` for parts of it, on several machines say.
"""

from .catalogue import DEFAULT, PRESETS, SCORES, Preset, Score

__all__ = ["DEFAULT", "PRESETS", "SCORES", "Preset", "Score"]
