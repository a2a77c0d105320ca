"""RoBERTa, CamemBERT and XLM-R: BERT's layers, positions that start behind the padding index, a head of their own."""

from __future__ import annotations

from .bert import bert_like, classifier_head
from .sheet import Family


def _roberta_like(title: str, model_type: str) -> Family:
    return bert_like(
        title,
        model_type,
        classifier_head,
        position_offset=True,
        tiny={"max_position_embeddings": 66, "type_vocab_size": 1, "pad_token_id": 1},
    )


ROBERTA = _roberta_like("RoBERTa", "roberta")
CAMEMBERT = _roberta_like("CamemBERT", "camembert")
XLM_R = _roberta_like("XLM-R", "xlm-roberta")
