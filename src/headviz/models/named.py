"""The models that ship with headviz: the name that ``load`` takes -> the folder's kind in ``headviz.demo``."""

NAMED = {"demo": "finetuned", "demo-pretrained": "pretrained", "demo-translation": "translation"}
