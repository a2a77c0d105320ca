"""The key-value cache for translating: sized by what comes, and right for layers that have lost all their heads."""

from __future__ import annotations

from typing import Any

from ..attention import transformers


class _Layer(transformers.cache_utils.DynamicLayer):
    """transformers takes a layer without heads for one that has seen no token, and the next token's place from it."""

    def get_seq_length(self) -> int:
        keys = self.keys
        return 0 if keys is None or keys.ndim != 4 else int(keys.shape[-2])


def new_cache() -> Any:
    """An empty cache. It grows layer by layer: transformers sizes a T5 decoder's by the layers of the encoder."""
    caches = transformers.DynamicCache(), transformers.DynamicCache()
    for cache in caches:
        cache.layer_class_to_replicate = _Layer
    return transformers.EncoderDecoderCache(*caches)
