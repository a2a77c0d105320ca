"""The parts of the page head."""
