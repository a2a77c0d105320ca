"""The parts of the page distil."""
