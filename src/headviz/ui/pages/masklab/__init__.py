"""The parts of the page Mask lab."""
