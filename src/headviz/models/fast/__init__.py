"""Evaluation in stages: packed texts, the processor's fastest kernels, frozen linear layers."""
