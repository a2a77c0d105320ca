"""The byte-limited store: limits, eviction order, states in use."""

from headviz.evaluation.state_cache import StateCache


def _put(cache: StateCache, layer: int, size: int, pinned: bool = False) -> bool:
    name = (layer, ())
    if not cache.reserve(name, size, pinned):
        return False
    cache.publish(name, f"state {layer}")
    return True


def test_oldest_goes_first_and_the_limit_holds() -> None:
    cache = StateCache(100)
    assert all(_put(cache, i, 30) for i in range(3))
    cache.borrow([(0, ())])
    cache.give_back((0, ()))  # 0 is now younger than 1
    assert _put(cache, 3, 30)
    assert cache.held == 90
    assert cache.borrow([(1, ())]) is None
    assert cache.borrow([(0, ())]) is not None


def test_first_name_that_is_there_is_borrowed() -> None:
    cache = StateCache(100)
    _put(cache, 1, 10)
    _put(cache, 0, 10)
    assert cache.borrow([(2, ()), (1, ()), (0, ())]) == ((1, ()), "state 1")


def test_pinned_and_used_states_stay() -> None:
    cache = StateCache(100)
    assert _put(cache, 0, 50, pinned=True)
    assert _put(cache, 1, 50)
    cache.borrow([(1, ())])
    assert not _put(cache, 2, 50)  # nothing may go, so it is not kept
    cache.give_back((1, ()))
    assert _put(cache, 2, 50)
    assert cache.borrow([(0, ())]) is not None


def test_nothing_goes_for_a_state_that_does_not_fit_anyway() -> None:
    cache = StateCache(100)
    _put(cache, 0, 60, pinned=True)
    _put(cache, 1, 40)
    assert not _put(cache, 2, 50)
    assert not _put(cache, 3, 101)
    assert cache.borrow([(1, ())]) is not None


def test_a_released_place_is_free_again_and_unpublished_states_are_not_lent() -> None:
    cache = StateCache(10)
    assert cache.reserve((0, ()), 10)
    assert cache.borrow([(0, ())]) is None
    assert not cache.reserve((0, ()), 10)
    cache.release((0, ()))
    assert cache.held == 0
    assert _put(cache, 0, 10)


def test_clear_forgets_what_nobody_uses() -> None:
    cache = StateCache(100)
    _put(cache, 0, 10)
    _put(cache, 1, 10)
    cache.borrow([(1, ())])
    cache.clear()
    assert (len(cache), cache.held) == (1, 10)
