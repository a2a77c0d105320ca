"""The translation demo: a generated corpus of English and Veshan, an invented language, and a small model of it."""

from .corpus import SPLITS, Pair, generate, read_split

__all__ = ["SPLITS", "Pair", "generate", "read_split"]
