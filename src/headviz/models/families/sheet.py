"""The sheet that a model family fills in: where its matrices and layers are, and what cannot be done with it.

Paths are relative to ``model.base_model``. ``{i}`` in a path stands for the layer; a family that finds its layers
another way names its own placeholders and fills them in ``place``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor, nn

from ...attention import HeadCall
from ...errors import ModelError
from ...heads import ENCODER
from ..places import each_token

CROSS, DECODER = ("cross", "decoder")  # with ``heads.ENCODER`` the stacks of heads, in the order of the grid's rows


@dataclass(frozen=True)
class Attention:
    """One stack of heads."""

    query: str  # W_Q; for a fused matrix, the path of W_QKV
    key: str
    value: str
    output: str  # W_O
    further: tuple[str, ...] = ()  # other maps to the heads, below ``module``; those a model lacks are skipped
    side_by_side: bool = False  # of a fused matrix: query, key and value of each head are neighbours
    vectors: tuple[str, ...] = ()  # biases of the heads that are parameters of ``module`` itself
    position_table: str = ""  # an embedding with a column for each head of the stack
    reader: str = ""  # the module whose input is the residual sum after the attention

    @property
    def module(self) -> str:
        """The module that holds W_Q."""
        return self.query.rpartition(".")[0]


def fused(matrix: str, output: str, **facts: Any) -> Attention:
    """Heads with one matrix W_QKV; ``facts`` are further fields of ``Attention``."""
    return Attention(query=matrix, key=matrix, value=matrix, output=output, **facts)


@dataclass(frozen=True)
class Layers:
    """One stack of layers. Only removing layers needs more than ``modules``; those paths are relative to one layer.

    *Pre-norm* layers are x + f(norm(x)): with everything that they write at zero they are the identity.
    *Post-norm* layers are norm(x + f(x)): at zero they still normalise.
    """

    modules: str  # the module list
    count: str = ""  # its length in the configuration
    writes: tuple[str, ...] = ()  # linear maps whose output is added to the residual stream
    inner: tuple[str, ...] = ()  # W_1 of the feed-forward block; paths that a layer does not have are skipped
    outer: str = ""  # W_2 of the feed-forward block
    neurons: str = ""  # the configuration's name for the intermediate size
    gated: int = 1  # maps that are stacked in each matrix of ``inner`` (2: a GeGLU and its gate)
    pre_norm: bool = False
    reader: str = ""  # the module whose input is the residual sum after W_2; empty: a layer returns that sum
    own_count: str | None = None  # the same length in the stack's own configuration, where it has one
    first_differs: bool = False  # the first layer has parts that the others need, so it cannot be removed


@dataclass(frozen=True)
class PostNorm:
    """The rest of a post-norm layer, norm(y + W_2·act(W_1·y)) of y = norm(x + attention(x)), for the fast path."""

    attention_norm: str
    inner: str  # W_1
    activation: str
    outer: str  # W_2
    output_norm: str
    read_out: Callable[[Any, Tensor], Tensor]  # (model, first tokens' states [n, D]) -> logits [n, C]
    widen: str | None = None  # projection of the embeddings to the hidden size; skipped where a model has none
    bias: Callable[[Any, Tensor], Tensor] | None = None  # (base model, a text's states [1, T, D]) -> [1, heads, T, T]

    @property
    def layer(self) -> str:
        """The module of a whole layer, in which all of its parts are."""
        return self.inner[: self.inner.rindex("}") + 1]

    def widening(self, base: nn.Module) -> nn.Module | None:
        """The projection of the embeddings to the hidden size, where a model has one."""
        return dict(base.named_modules()).get(self.widen) if self.widen else None


@dataclass(frozen=True)
class OwnLayers:
    """How to run a family's own layer modules one by one on texts of equal length, which need no padding mask.

    B texts of T tokens, D hidden size, C classes.
    """

    layer: Callable[[Any, int, Tensor, HeadCall], Tensor]  # (base model, layer, [B, T, D], call) -> [B, T, D]
    read_out: Callable[[Any, Sequence[Tensor]], Tensor]  # (model, one [B, T, D] per length) -> logits [n, C]
    states: Callable[[Any, Tensor], Tensor] = lambda base, rows: rows  # (base model, last layer's) -> the base model's


# (model, batch, keywords of the forward pass) -> logits [B, C]
Forward = Callable[[Any, Mapping[str, Tensor], Mapping[str, Any]], Tensor]


def apart_mask(config: Any, apart: Tensor) -> Any:
    """The attention mask [B, 1, T, T] of rows that hold several texts; ``apart`` [B, T, T] is true within one text."""
    return apart[:, None]


def by_number(config: Any, layer: int) -> dict[str, int]:
    """Layers stand in one list."""
    return {"i": layer}


def usual_grid(config: Any) -> tuple[int, int]:
    """Layers and heads of an encoder, as most configurations name them."""
    return int(config.num_hidden_layers), int(config.num_attention_heads)


def usual_size(config: Any) -> int:
    """The size of a head, as most configurations give it."""
    return int(getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads)


def no_positions(config: Any, length: int, width: int) -> int:
    """FLOPs of an attention's products with positions: none, as in most families."""
    return 0


@dataclass(frozen=True)
class Family:
    """What headviz knows of one ``model_type``.

    Without ``post_norm`` and ``own_layers`` a family is evaluated in whole passes: right, but nothing is reused.
    """

    title: str
    model_type: str
    attention: Mapping[str, Attention]  # by stack of heads
    layers: Mapping[str, Layers]  # by stack of layers
    embeddings: str
    post_norm: PostNorm | None = None
    own_layers: OwnLayers | None = None
    grid: Callable[[Any], tuple[int, int]] = usual_grid  # configuration -> layers, heads (one stack only)
    head_size: Callable[[Any], int] = usual_size
    place: Callable[[Any, int], dict[str, int]] = by_number  # (configuration, layer) -> placeholders of paths
    position_flops: Callable[[Any, int, int], int] = no_positions  # configuration, tokens, entries of a row's heads
    own_attention: type | None = None  # puts headviz's attention into modules that never call transformers' interface
    each_token: Callable[[Any, Tensor], Tensor] = each_token  # (model, last states [N, D]) -> logits [N, C] of a tagger
    # what a base model takes that keeps the texts of one row apart; a ``ModelError`` where it cannot
    apart: Callable[[Any, Tensor], Any] = apart_mask
    forward: Forward | None = None  # where a pass of the model's own cannot be had from embeddings
    matrix: type[nn.Module] = nn.Linear  # the class of its linear maps
    position_offset: bool = False  # positions start behind the padding index, so the table holds two tokens fewer
    shared_layers: bool = False  # one module serves several layers
    why_not_prunable: str = ""  # why heads can be masked, but not really removed
    why_not_empty: str = ""  # why every layer must keep a head
    why_layers_stay: str = ""  # why layers and feed-forward blocks cannot be removed
    why_no_maps: str = ""  # why a classifier of this family has no conductance
    classifies: bool = True  # whether transformers has a …ForSequenceClassification of it
    tiny: Mapping[str, Any] = field(default_factory=dict)  # configuration of a tiny model for the contract tests

    @property
    def has_decoder(self) -> bool:
        """Whether it is an encoder-decoder model, with three stacks of heads."""
        return DECODER in self.attention

    def stacks(self, config: Any) -> dict[str, range]:
        """The rows of each stack of heads. A model of one stack has its layers as rows."""
        if not self.has_decoder:
            return {ENCODER: range(self.grid(config)[0])}
        e, d = int(config.num_hidden_layers), decoder_layers(config)
        return {ENCODER: range(e), CROSS: range(e, e + d), DECODER: range(e + d, e + 2 * d)}

    def whole_grid(self, config: Any) -> tuple[int, int]:
        """Rows and heads of a model with all its heads."""
        if not self.has_decoder:
            return self.grid(config)
        heads = int(config.num_attention_heads)
        if int(getattr(config, "decoder_attention_heads", heads)) != heads:
            raise ModelError(
                f"The encoder has {heads} heads per layer and the decoder {config.decoder_attention_heads}: "
                "headviz needs the same number in both."
            )
        return max(rows.stop for rows in self.stacks(config).values()), heads

    def read_by_post_norm(self) -> Iterator[tuple[str, type[nn.Module]]]:
        """The paths whose weights the fast path reads besides the attention's, and their classes."""
        if self.post_norm is not None:
            yield self.post_norm.attention_norm, nn.LayerNorm
            yield self.post_norm.output_norm, nn.LayerNorm
            yield self.post_norm.inner, self.matrix
            yield self.post_norm.outer, self.matrix

    @property
    def why_no_neurons(self) -> str:
        """Why single neurons of the feed-forward blocks cannot be removed; empty where they can."""
        if self.shared_layers:
            return "its layers share weights"
        if not all(parts.neurons for parts in self.layers.values()):
            return "headviz does not know how its feed-forward blocks are laid out"
        return ""

    @property
    def prunable(self) -> bool:
        """Whether heads can really be removed, not only masked."""
        return not self.why_not_prunable

    @property
    def shows_sums(self) -> bool:
        """Whether the residual sum after each attention can be read."""
        return all(attention.reader for attention in self.attention.values())

    def reader(self, stack: str, layer: int) -> str:
        """The path of the module that reads the sum behind one attention."""
        path = self.attention[stack].reader
        if not path:
            raise ModelError(f"headviz does not know where {self.title} adds its attention to the stream.")
        return path.format(i=layer)


def decoder_layers(config: Any) -> int:
    """How many layers the decoder of an encoder-decoder model has."""
    count = getattr(config, "num_decoder_layers", None)
    return int(config.decoder_layers if count is None else count)
