"""Runs as one HTML file that needs no network, or as JSON, CSV and LaTeX."""
