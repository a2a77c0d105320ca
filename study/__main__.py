"""Compute what is missing of the study: ``python -m study --help``."""

from study.cells import main

main()
