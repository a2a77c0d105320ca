"""The parts of the page Distil."""
