"""The options that name a model and data, for every plan and command."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

from ..errors import OptionError
from ..options import Options, option
from ..tasks import Dataset, check_request, load_task
from . import device_named
from .hub import refuse_absent

if TYPE_CHECKING:
    from .classifier import Classifier

PREFIX: dict[str, Any] = {"help": "of a translation model: put before every source, as T5 wants it", "metavar": "TEXT"}
LANGUAGES: dict[str, Any] = {
    "help": "of a translation model that knows several: source and target code",
    "metavar": "A,B",
}


@dataclass(frozen=True)
class Source(Options):
    """The model and the data that a plan is about."""

    model: str = option(help="'demo', a hub id, or a folder", metavar="M")
    task: str = option(help="demo, mnli, mrpc, sst2, …, or custom", metavar="T")
    _: KW_ONLY
    revision: str | None = option(None, "branch, tag or commit of a hub model", metavar="R")
    device: str = option("auto", "auto, cpu, cuda or mps", metavar="D")
    data: str | None = option(None, "folder with local files instead of the hub's", metavar="DIR")
    text_columns: tuple[str, ...] | None = option(None, "text columns of your own file", metavar="A[,B]")
    label_column: str | None = option(None, "label column of your own file", metavar="Y")
    label_order: tuple[str, ...] | None = option(
        None, "the task's classes in the order of the model's outputs", metavar="A,B,…"
    )
    job: str | None = option(
        None,
        "what the model answers with, where its configuration or your file does not tell",
        before=None,
        metavar="J",
    )

    separator: str | None = option(
        None, "what separates the columns of your csv or tsv: comma, semicolon, tab or bar", before=None, metavar="S"
    )
    skip_bad: bool = option(False, "leave out and count rows without text or label, which are an error", before=False)
    metrics: tuple[str, ...] | None = option(
        None, "in place of the task's own: accuracy, f1_macro, roc_auc, …", before=None, metavar="A,B"
    )
    thresholds: tuple[float, ...] | None = option(
        None,
        "of several labels: probabilities above which each is predicted, or one for all",
        usual="0.5",
        least=0,
        most=1,
        before=None,
        metavar="T[,T]",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("model", "task"):
            if not getattr(self, name).strip():
                raise OptionError(f"The plan needs a {name}.")

    def require_there(self) -> None:
        """Refuse, without torch and without a request, a task, a device or a model that is not there."""
        check_request(self.task)
        device_named(self.device)
        refuse_absent(self.model, self.revision)

    def dataset(self, split: str, limit: int | None = None) -> Dataset:
        """One split of the task."""
        return load_task(
            self.task,
            split=split,
            data=self.data,
            limit=limit,
            text_columns=self.text_columns,
            label_column=self.label_column,
            job=self.job if self.task == "custom" else None,
            separator=self.separator,
            skip_bad=self.skip_bad,
            metrics=self.metrics,
            thresholds=self.thresholds,
        )

    def classifier(
        self, fresh: tuple[str, ...] | None = None, seed: int = 0, job: str | None = None, device: str | None = None
    ) -> Classifier:
        """The model, with a fresh head for these classes where there are some. ``job`` counts where the options
        name none, ``device`` in place of theirs."""
        from .loading import load

        return load(
            self.model,
            revision=self.revision,
            device=device or self.device,
            fresh_labels=fresh,
            seed=seed,
            job=self.job or job,
        )
