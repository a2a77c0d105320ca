"""``python -m headviz`` is ``headviz``."""

import sys

from .cli import main

sys.exit(main())
