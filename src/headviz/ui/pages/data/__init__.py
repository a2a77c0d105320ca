"""The parts of the page data."""
