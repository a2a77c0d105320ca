"""Analyses of what heads do to a metric. One file each: its result, how it runs, its view, its figure and its recipe.

[M] is Michel, Levy, Neubig 2019; [T] is the 2024 thesis. Import a function from its module; ``catalogue.figure`` draws
any result.
"""
