"""Tasks: their data, labels, metrics and samples.

``load_task`` reads a split into a ``Dataset``; ``sample`` draws a balanced sample from it for scoring; ``label_map``
finds the model's output for each class of a task; ``metrics`` evaluates predictions.
"""

from .catalogue import TASKS, Task, get_task
from .dataset import Dataset, Example
from .labels import OTHER, label_map, predicted
from .loading import check_request, load_task
from .metrics import METRICS, constant, metric, metrics, points_in, why_undefined
from .overlap import chosen_on, trained_on
from .sample_report import LengthFilter, SampleReport
from .sampling import DEFAULT_SAMPLES, sample, text_lengths

__all__ = [
    "DEFAULT_SAMPLES",
    "METRICS",
    "OTHER",
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
    "label_map",
    "load_task",
    "metric",
    "metrics",
    "points_in",
    "predicted",
    "sample",
    "text_lengths",
    "trained_on",
    "why_undefined",
]
