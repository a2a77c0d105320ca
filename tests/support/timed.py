"""A timer that counts a model's parts in place of seconds, so that tests of speed do not depend on the machine."""

from headviz.models.feed_forward import neurons
from headviz.pruning.latency import Timer


class Clock(Timer):
    def __call__(self, clf):
        return 10.0 + sum(clf.heads_per_layer) * 2.0 + sum(neurons(clf)) / 8
