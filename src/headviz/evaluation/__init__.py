"""Metrics under one mask or many, for classifiers and translations, and the uncertainty of differences."""
