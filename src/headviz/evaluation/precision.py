"""The precision of an evaluation, as Python and the command line ask for it."""

from __future__ import annotations

from ..options import Option

AUTO = "auto"
PRECISION = Option(
    "precision",
    AUTO,
    "of the layers; auto is float32, on a GPU the fastest that agrees with it on the first texts; tf32 is for NVIDIA's "
    "cards, elsewhere float32",
    choices=(AUTO, "float32", "tf32", "bfloat16"),
    metavar="P",
)
