"""``python -m attribution.long_text``: conductance of 512 tokens by a third of BERT; prints the peak memory in KiB."""

import resource

from transformers import BertConfig, BertForSequenceClassification

import headviz
from headviz.attribution.integration import sweep
from headviz.attribution.rules import PathOptions
from headviz.models.classifier import Encoding
from support.tiny import tiny_tokenizer

if __name__ == "__main__":
    clf = headviz.wrap(BertForSequenceClassification(BertConfig(num_hidden_layers=4)), tiny_tokenizer())
    text = Encoding([2, *[7] * 510, 3], [0] * 512, False, [True, *[False] * 510, True])
    sweep(clf, [text], [0], PathOptions(2), budget=2**30)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, flush=True)
