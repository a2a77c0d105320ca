"""Analyses of what heads do to a metric: one file each, every result typed, serialisable and drawable.

[M] Michel, Levy, Neubig 2019: ``ablation``, ``all_but_one``, ``cross_dataset``, ``pruning_curve``, ``speed``,
``dynamics``. [T] the 2024 thesis: ``correlation`` (grids and bands), ``scatter``. Ours: ``harmful`` heads,
``redundant`` pairs, ``by_slice``. Import a function from its module; ``charts_analyses.figure`` draws any result.
"""
