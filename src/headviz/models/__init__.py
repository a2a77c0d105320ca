"""Models: loading, families, identity, real pruning, saving. The only place that knows module paths."""

NAMED = {"demo": "finetuned", "demo-pretrained": "pretrained", "demo-translation": "translation"}  # the shipped ones
LENGTH = 128  # tokens for which FLOPs and speeds are told; a speed at the most that the model reads, if that is less
