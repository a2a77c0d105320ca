"""``python -m scores.long_sweep FOLDER``: 40 texts scored into a cache there. For a test that kills it on the way."""

import sys
from pathlib import Path

from headviz.scores.scoring import score_heads
from headviz.storage.store import Store
from support.scored_data import made
from support.tiny import tiny_classifier

if __name__ == "__main__":
    score_heads(tiny_classifier("bert"), made(40), steps=16, cache=Store(Path(sys.argv[1])))
