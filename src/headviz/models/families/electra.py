"""ELECTRA: BERT's layers, often with narrower embeddings, and a head of its own."""

from __future__ import annotations

from .bert import bert_like, classifier_head

ELECTRA = bert_like("ELECTRA", "electra", classifier_head, widen="embeddings_project", tiny={"embedding_size": 16})
