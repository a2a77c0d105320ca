"""The study on real weights: its programs, results, pages and tests. Nothing outside this folder imports from it."""
