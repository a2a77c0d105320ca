"""Bayesian distillation: the teacher's posterior, conditioned on the removal of a part, is the student's prior.

``remove`` takes a part out of a model and partitions its weights; ``Posterior`` is a Gaussian around the teacher's
weights; ``Prior`` is that Gaussian given that the removed part's weights are zero. Students start at random, from
copied weights, from the prior's mean, or are trained by variational inference against it.
"""
