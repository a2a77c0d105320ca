"""Models: loading, families, identity, real pruning, saving. The only place that knows module paths."""

NAMED = {"demo": "finetuned", "demo-pretrained": "pretrained", "demo-translation": "translation"}  # the shipped ones
LENGTH = 128  # tokens for which FLOPs and speeds are reported; speeds at the model's longest text, if that is shorter
