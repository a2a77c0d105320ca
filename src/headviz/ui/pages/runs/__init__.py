"""The parts of the page runs."""
