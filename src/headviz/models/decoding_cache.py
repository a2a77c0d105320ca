"""The key-value cache for translating. It also works where a layer has lost all its heads."""

from __future__ import annotations

from typing import Any

from ..attention import transformers


class _Layer(transformers.cache_utils.DynamicLayer):
    """Counts the tokens of a layer without heads as well.

    transformers reads the next token's position from the cache. Its own count takes a layer without heads as empty.
    """

    def get_seq_length(self) -> int:
        keys = self.keys
        return 0 if keys is None or keys.ndim != 4 else int(keys.shape[-2])


def new_cache() -> Any:
    """An empty cache that grows layer by layer. transformers would give T5's decoder as many layers as its encoder."""
    caches = transformers.DynamicCache(), transformers.DynamicCache()
    for cache in caches:
        cache.layer_class_to_replicate = _Layer
    return transformers.EncoderDecoderCache(*caches)
