"""The parts of the page Analyses."""
