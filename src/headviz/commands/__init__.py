"""One file per command of ``headviz``; ``headviz.cli`` holds their table."""
