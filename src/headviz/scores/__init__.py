"""Head scores: how important each head is, by many definitions.

``SCORES`` and ``PRESETS`` list what there is, without torch. ``scoring`` has ``score_heads``, which gives one table,
``score_progressive``, which gives a growing one, and ``measure_part`` and ``join_parts`` for its parts, which
may be measured on several machines.
"""

from .catalogue import DEFAULT, PRESETS, SCORES, Preset, Score

__all__ = ["DEFAULT", "PRESETS", "SCORES", "Preset", "Score"]
