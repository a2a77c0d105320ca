"""The parts of the page Data & model."""
