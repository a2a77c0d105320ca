"""Winning tickets, the thesis's tables of them, and masks given to the models of other tasks."""
