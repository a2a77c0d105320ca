"""Analyses of what heads do to a metric. One file each: its result, how it runs, its view, its figure and its recipe.

[M] Michel, Levy, Neubig 2019: ``ablation``, ``all_but_one``, ``cross_dataset``, ``pruning_curve``, ``stacks``,
``speed``, ``dynamics``. [T] the 2024 thesis: ``correlation`` (grids and bands), ``scatter``. Ours: ``harmful`` heads,
``redundant`` pairs, ``by_slice``. Import a function from its module; ``catalogue.figure`` draws any result.
"""
