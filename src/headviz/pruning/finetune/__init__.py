"""Training what is left of a model, resumable, and by which recipe."""
