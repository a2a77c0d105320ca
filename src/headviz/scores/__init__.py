"""Head scores: how important each head is, by many definitions.

``SCORES`` and ``PRESETS`` list what there is, without torch. ``scoring`` has ``score_heads``, which gives one table,
and ``score_progressive``, a growing one; ``parts`` measures a table in parts, on several machines say.
"""

from .catalogue import DEFAULT, PRESETS, SCORES, Preset, Score

__all__ = ["DEFAULT", "PRESETS", "SCORES", "Preset", "Score"]
