"""How the demo was made: `make test-demo`."""
