"""Repairs of the kept weights after heads were removed, without training: bias, tune, refit."""
