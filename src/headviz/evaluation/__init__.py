"""Metrics under a mask: plain, fast again and again, for translations, and what a difference is worth."""
