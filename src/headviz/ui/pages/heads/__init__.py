"""The parts of the page heads."""
