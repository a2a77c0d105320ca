"""MiniLM on SST-2, made faster: what stands behind the first table of docs/faster.md."""
