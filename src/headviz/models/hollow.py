"""Feed-forward blocks that were removed: the configuration says which, so that a saved model is read back."""

from __future__ import annotations

from typing import Any

HOLLOW = "removed_feed_forward"  # in the configuration: {stack: [layers without a feed-forward block]}

Place = tuple[str, int]  # stack and layer


def hollowed(config: Any) -> list[Place]:
    """Which feed-forward blocks a configuration says are gone."""
    return [(stack, int(layer)) for stack, layers in getattr(config, HOLLOW, {}).items() for layer in layers]
