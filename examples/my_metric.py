from dataclasses import replace

import numpy as np

from headviz.tasks import get_task, judged_by


def weighted(gold, predicted):
    """1 less the share of wrong answers, where those to the first class count twice."""
    return 1 - float(np.mean((predicted != gold) * np.where(gold == 0, 2, 1)))


TASKS = [judged_by(replace(get_task("sst2"), name="reviews", title="Reviews"), weighted)]
