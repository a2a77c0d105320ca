"""The same work in several threads at once."""

import threading
from collections.abc import Callable


def together(count: int, work: Callable[[int], object]) -> None:
    """Call ``work`` with 0, 1, … in a thread each, and wait for all."""
    threads = [threading.Thread(target=work, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
