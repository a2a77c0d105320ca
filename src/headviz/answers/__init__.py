"""What a model answers with: one file per job. ``catalogue`` lists them; ``answer`` says what each must tell."""

from .catalogue import ANSWERS

__all__ = ["ANSWERS"]
