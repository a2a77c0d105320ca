"""Tags, spans, rankings and vectors on real weights: what a head costs there, and what is left without some."""
