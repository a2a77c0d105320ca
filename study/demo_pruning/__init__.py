"""The pruning study on the demo: every algorithm and score, measured into `study/demo_pruning.md`."""
