"""The parts of the page analyses."""
