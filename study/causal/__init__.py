"""What the heads of the demo carry: patching, stand-ins and paths, measured into `study/causal.md`."""
