"""Growing and gating the demo network."""

import torch
from transformers import BertForMaskedLM, BertForSequenceClassification

from tools.demo.network import HEADS, LAYERS, HeadGates, configuration, fold, gated, grow


def _inputs() -> dict[str, torch.Tensor]:
    torch.manual_seed(0)
    ids = torch.randint(5, 50, (3, 9))
    return {
        "input_ids": ids,
        "token_type_ids": (torch.arange(9) > 4).long().expand(3, 9),
        "attention_mask": ids * 0 + 1,
    }


def test_a_grown_network_computes_almost_the_same() -> None:
    torch.manual_seed(1)
    small = BertForMaskedLM(configuration(50, 3)).eval()
    # layer norms away from their first values, as after training
    for name, weight in small.named_parameters():
        if "LayerNorm" in name:
            torch.nn.init.normal_(weight, 1.0 if name.endswith("weight") else 0.0, 0.1)
    big = grow(small).eval()
    assert big.config.num_hidden_layers == 6
    with torch.no_grad():
        before = small.bert(**_inputs()).last_hidden_state
        after = big.bert(**_inputs()).last_hidden_state
        other = BertForMaskedLM(configuration(50, 6)).eval().bert(**_inputs()).last_hidden_state
    similar = torch.nn.functional.cosine_similarity(before, after, dim=-1).min()
    assert similar > 0.97
    assert torch.nn.functional.cosine_similarity(before, other, dim=-1).max() < similar


def test_folded_gates_compute_what_gates_compute() -> None:
    torch.manual_seed(2)
    model = BertForSequenceClassification(configuration(50)).eval()
    gates = torch.rand(LAYERS, HEADS)
    with torch.no_grad():
        expected = model(**_inputs(), headviz=gated(gates)).logits
        plain = model(**_inputs()).logits
        fold(model, gates)
        folded = model(**_inputs()).logits
    assert not torch.allclose(plain, expected, atol=1e-4)
    torch.testing.assert_close(folded, expected)


def test_gates_stay_in_range_and_the_price_pulls_them_shut() -> None:
    gates = HeadGates()
    generator = torch.Generator().manual_seed(0)
    drawn = gates.sampled(generator).detach()
    assert drawn.shape == (LAYERS, HEADS)
    assert 0 <= float(drawn.min()) <= float(drawn.max()) <= 1
    assert float(gates.settled().min()) > 0.9
    optimizer = torch.optim.Adam(gates.parameters(), lr=0.3)
    for _ in range(60):
        optimizer.zero_grad()
        gates.price().backward()
        optimizer.step()
    assert float(gates.settled().max()) == 0.0
    assert float(gates.settled(floor=0.1).min()) >= 0.1 - 1e-6
