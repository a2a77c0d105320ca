"""The parts of the page masklab."""
