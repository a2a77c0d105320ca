"""Winning tickets, the thesis's tables of them, and the transfer of masks to other tasks."""
