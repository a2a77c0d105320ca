import json
import random
import time

from headviz.engine import Job
from headviz.errors import Cancelled
from headviz.plugins import RunKind


class Dice(Job):
    """Rolls dice: one piece of work per roll. The state is the list of rolls so far."""

    def __init__(self, spec):
        self.rolls, self.seconds = int(spec.get("rolls", 3)), float(spec.get("seconds", 0))

    def begin(self):
        return []

    def ready(self, state):
        return [str(len(state))] if len(state) < self.rolls else []

    def work(self, piece, parcel, tools):
        """A pure function, which may be repeated: the same piece gives the same roll."""
        tools.progress("rolling", int(piece), self.rolls)
        until = time.monotonic() + self.seconds
        while time.monotonic() < until:
            if tools.cancel():
                raise Cancelled
            time.sleep(0.01)
        return json.dumps(random.Random(int(piece)).randint(1, 6)).encode()

    def absorb(self, state, piece, result):
        return [*state, json.loads(result)]

    def steps(self, state):
        return {
            n: {"sparsity": (n + 1) / self.rolls, "mask": None, "metrics": {"value": roll}, "seconds": self.seconds}
            for n, roll in enumerate(state)
        }

    def expected(self, state):
        return self.rolls

    def finish(self, state, folder):
        return {"sum": sum(state)}


RUNS = [RunKind("dice", "Dice", "rolls dice", Dice)]
