"""Frozen linear layers by the fast kernel give torch's own values and gradients, also where a family adds to them."""

import pytest
import torch

from headviz.models.fast.linear import FastLinear


@pytest.mark.parametrize("bias", [True, False])
def test_a_result_may_be_added_to_in_place(bias: bool) -> None:
    layer = torch.nn.Linear(4, 5, bias=bias).requires_grad_(False)
    x = torch.randn(2, 3, 4, requires_grad=True)
    result = []
    for fast in (True, False):
        x.grad = None
        if fast:
            with FastLinear():
                out = layer(x)
        else:
            out = layer(x)
        out += 1
        out.square().sum().backward()
        assert x.grad is not None
        result.append((out.detach().clone(), x.grad.clone()))
    torch.testing.assert_close(result[0], result[1])
