"""Model types that headviz refuses, and why: their attention would pass a mask over, or is no grid of heads."""

from __future__ import annotations

_PASSES_OVER = "its attention does not pass through transformers' attention interface, so a mask would be passed over"
_WINDOWS = "its attention is cut into windows or blocks of its own, which do not call transformers' attention interface"
_NO_HEADS = "it mixes tokens without attention heads"

REFUSED = {
    **dict.fromkeys(
        "layoutlmv3 lilt luke mluke roformer rembert megatron-bert ibert canine squeezebert bloom gptj gpt_neo falcon "
        "xlm flaubert xlnet nystromformer tapas funnel mpt codegen ctrl".split(),
        _PASSES_OVER,
    ),
    **dict.fromkeys("longformer big_bird bigbird_pegasus led reformer yoso mra".split(), _WINDOWS),
    **dict.fromkeys("fnet mamba mamba2 falcon_mamba rwkv xlstm".split(), _NO_HEADS),
    "convbert": "it mixes heads with convolutions in one layer",
    "gpt_oss": "its attention has sinks, which headviz's attention does not compute",
    "gemma3": "it reads images as well; the text model alone is supported (gemma3_text)",
}
UNKNOWN = "headviz does not know where its heads are"
