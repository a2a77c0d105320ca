"""The number of torch threads is lent, not taken."""

import torch

from headviz.scores.spare_core import room_for_statistics


def test_one_thread_fewer_and_back():
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        with room_for_statistics():
            assert torch.get_num_threads() == 2
            with room_for_statistics():
                assert torch.get_num_threads() == 2
            assert torch.get_num_threads() == 2
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)


def test_one_thread_stays_one_also_after_an_error():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with room_for_statistics():
            assert torch.get_num_threads() == 1
            raise KeyError
    except KeyError:
        assert torch.get_num_threads() == 1
    finally:
        torch.set_num_threads(before)
