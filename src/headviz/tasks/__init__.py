"""Tasks: their data, labels, metrics and samples.

``load_task`` reads a split into a ``Dataset``; ``sample`` draws a balanced sample from it for scoring; ``label_map``
finds the model's output for each class of a task; ``metrics`` evaluates predictions.
"""

from ..answers.class_names import label_map
from ..answers.metrics import METRICS, constant, metric, metrics, points_in, why_undefined
from .catalogue import TASKS, Task, get_task, judged_by
from .dataset import Dataset, Example, LengthFilter, SampleReport, chosen_on, trained_on
from .loading import check_request, load_task
from .sampling import DEFAULT_SAMPLES, sample, text_lengths

__all__ = [
    "DEFAULT_SAMPLES",
    "METRICS",
    "TASKS",
    "Dataset",
    "Example",
    "LengthFilter",
    "SampleReport",
    "Task",
    "check_request",
    "chosen_on",
    "constant",
    "get_task",
    "judged_by",
    "label_map",
    "load_task",
    "metric",
    "metrics",
    "points_in",
    "sample",
    "text_lengths",
    "trained_on",
    "why_undefined",
]
