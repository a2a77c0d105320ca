"""The parts of the page One head."""
