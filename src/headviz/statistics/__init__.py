"""Paired statistics of arrays alone: intervals, permutation tests, q values. Knows no model and no data set."""
