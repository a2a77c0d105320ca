"""Models: loading, families, identity, real pruning, saving. The only place that knows module paths."""
