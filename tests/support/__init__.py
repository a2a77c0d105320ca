"""What tests and benchmarks share: tiny models, data, recorded runs."""
