"""What a model answers with, as one idea: everything that depends on the job stands in one file, as an ``Answer``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import ModelError, NotFinite, OptionError, TaskError
from .comparison import Answers, Drawn
from .metrics import OWN, SAME_ANSWERS, Metric

if TYPE_CHECKING:
    from torch import Tensor

IGNORED = -100  # transformers' label for what the loss leaves out
JOB = "headviz_job"  # where a configuration holds the job that a user named, if nothing else in it tells
PREDICTED, GOLD = "predicted", "gold"  # what may be explained, besides a name
FIRST, EACH = "first", "each"  # the tokens that a head reads
Target = int | tuple[int, ...] | None  # the output to explain of one text; None = the predicted one


class Changed(NamedTuple):
    """The examples whose answer a mask changed, as a table. The number of the example stands last in each row."""

    title: str
    none: str  # the message where there is no such example
    caption: str
    header: tuple[str, ...]
    rows: list[list[Any]]
    widths: Mapping[str, int] = {}  # of columns, in pixels; others as wide as their cells


@dataclass(frozen=True)
class Lead:
    """What patching measures: a number of logits, in words, and what the model answers to the text and the donor."""

    of: Callable[[NDArray], NDArray]  # logits [..., C] -> [...]
    words: str
    text: str
    donor: str
    # between text and donor: of a smaller difference a share says nothing
    least: float = field(default=0.5, kw_only=True)


WORSE_FIRST = ("worse", "better", "other")  # in the column ``change`` of a ``Changed``


def change_of(before: float, after: float) -> str:
    """What became of an answer of this quality."""
    return "worse" if after < before else "better" if after > before else "other"


def no_numbers(clf: Any) -> NotFinite:
    """The error for a model that answers something else than numbers."""
    return NotFinite(f"'{clf.name}' answers NaN or infinity: its weights are damaged or overflow in {clf.dtype}.")


class Answer(ABC):
    """One job: what a model's output means, how it is explained, learned, judged and compared.

    There is one object per job, without state, in ``catalogue.ANSWERS``: ``clf.answer`` and ``data.answer`` are these.
    It knows neither a family nor a file: where a model's modules are is in ``models/``, how a job's files are read in
    ``tasks/``, how answers are drawn in the pages. Code outside ``models/`` and ``answers/`` calls a member and does
    not ask which job it is. Where other packages treat most jobs in the same way, ``own`` names a job's own functions.

    ``logits`` are arrays or tensors [n, C] in the model's order of outputs, ``labels`` the data's labels in the task's
    own order, ``order`` the model's output of each class of the task. ``clf`` is a model and ``data`` a data set; both
    are of packages above, so their classes are not named here.
    """

    # names -------------------------------------------------------------------------------------------------

    job: str  # as ``clf.job``, ``load(job=…)`` and ``headviz info`` have it
    kind: str  # as saved folders, scores and analyses have it; jobs that are read by the same modules share one
    after: str = ""  # the job that it stands after in lists; empty = it stands last
    # what is done -> "module:function", in place of the function for most jobs: "model" (models.kinds), "reader"
    # (tasks.loading), "evaluator" and "evaluate" (evaluation.dispatch), "judge" (pruning.judging), "gate parts",
    # "ablation" and "ablation cost" (scores), "compare" (the page), "bench" (the answer to a text on Workbench)
    own: Mapping[str, str] = {}

    # the model ---------------------------------------------------------------------------------------------

    architectures: tuple[str, ...]  # parts of the names of transformers' classes
    auto_class: str  # transformers' loader
    trained: str  # what a folder without this job's weights lacks
    decoder: bool | None = False  # whether it takes an encoder-decoder model; None = it takes either
    stacked: bool = False  # its models have several stacks of heads
    # the tokens that the head reads. With ``FIRST`` the last layer may be computed for the first token only; with
    # ``EACH`` an encoding has ``places``
    read_at: str = ""
    fresh: tuple[str, ...] = ("value",)  # the outputs of a new head, where the data name none
    num_texts: int | None = None  # texts that a model of this job reads; None = its configuration or classes tell
    instead: str = ""  # the job that its models may have as well, where the configuration leaves a doubt
    others: tuple[str, ...] = ()  # further jobs whose data its models answer
    # what an exported ONNX graph gives, by the names that optimum and sentence-transformers read; empty = no graph
    graph: tuple[str, ...] = ("logits",)
    explains: bool = True  # there is one number to explain: gradients, conductance and what builds on them

    def fits(self, problem: str | None, outputs: int, ranks: bool) -> bool:
        """Whether a model of this kind has this job by its configuration, see ``catalogue.answer_in``; False for a job
        that only the user can name."""
        return True

    @property
    def reads(self) -> tuple[str, ...]:
        """The jobs whose data its models answer."""
        return self.job, *self.others

    def choice(self, settings: Mapping[str, Any]) -> str:
        """The message where a configuration leaves a doubt about the job; empty where it has none."""
        return ""

    def possible(self, outputs: int) -> bool:
        """Whether a model of this kind with so many outputs may have this job, if the user says so."""
        return True

    def claim(self, config: Any) -> None:
        """Write into a configuration what other programs read of this job; headviz's own entry comes to it."""
        return

    # judging -----------------------------------------------------------------------------------------------

    metrics: Mapping[str, Metric] = {}
    usual: tuple[str, ...] = ()  # metrics of the user's own data, the primary one first
    flips: bool = False  # an answer stays or flips as a whole, see ``margin``
    graded_in: str = ""  # the metric of ``drawn``
    # what ``Answers.agreement`` with another model is called; any other than this is no share
    agrees: str = SAME_ANSWERS
    unscored: tuple[str, ...] = ()  # metrics in which no ablation is measured
    functions: bool = False  # metrics may be a user's own functions, see ``Answers.as_rows``
    decides: bool = False  # an answer is one of several names: it can flip, be restored, and has a probability
    # how its label columns are read, a name of ``tasks.columns.READ_LABELS``; empty = no such columns
    columns: str = ""
    several_columns: bool = False  # there is one label column for each name
    text_columns: tuple[str, ...] = ()  # what its columns are called, where files of the job have names of their own
    label_column: str = ""
    label_needed: bool = True  # an empty cell is no label, rather than a mistake, where it is False
    paired: bool = False  # ``rows`` reads answers for ``headviz.paired``
    grouped: bool = False  # and which rows make a unit together
    formula: str = ""  # TeX: how ``values`` come from logits
    does: str = "reads {texts} and answers it"  # what its model does; {texts} = "a text" or "two texts", {n} = outputs
    costs: str = "loss, added without the head"  # what a head costs in the loss
    gold_name: str = "labels"  # what gold answers are called
    named: tuple[str, str] = ("class", "examples")  # what an output's name stands for, and what ``counts`` counts
    unit: tuple[str, str] = ("example", "examples")  # what is drawn, resampled and paired as a whole
    text_names: tuple[str, str] = ("Text", "Pair")  # what the texts of an example are called
    gold_is_pair: bool = False  # the second text is the gold answer: it is not written by hand, and nothing is balanced
    negatives: bool = False  # another text of its batch can stand for a wrong answer in training
    quick: bool = True  # answering dev takes less time than an epoch of training
    label_type: str = ""  # torch's type of the labels that the loss takes; empty = there are none

    @abstractmethod
    def answers(self, gold: NDArray, full: NDArray, names: Sequence[Any]) -> Answers:
        """Gold answers with the predictions that masks are compared with: units, intervals and tests."""

    def measures(self, metric: str) -> bool:
        """Whether it has a metric of this name."""
        return metric in self.metrics or (self.functions and metric in OWN)

    def usual_for(self, names: Mapping[str, int]) -> tuple[str, ...]:
        """The metrics of a user's own data with these names, and so many examples of each."""
        return self.usual

    def judged(self, data: Any) -> Any:
        """The data with the metrics that answers of this job's models are judged by, where the user named none."""
        return data

    def read_by(self, metric: str, predicted: NDArray, gold: NDArray) -> tuple[NDArray, NDArray]:
        """What a metric reads of predictions and gold answers: all of them as a rule, a user's own function a row for
        each unit."""
        if metric not in OWN or not len(gold):
            return predicted, gold
        return self.answers(gold, predicted, ()).as_rows(predicted)[::-1]

    def rows(self, metric: str, gold: Any, before: Any, after: Any, groups: Any = None) -> tuple[Answers, NDArray]:
        """What ``headviz.paired`` is given, checked: gold answers with those before, and those after; ``groups`` names
        the unit of each row."""
        raise TaskError(f"'{metric}' is not compared from rows of answers.")

    def drawn(self, gold: NDArray, weights: NDArray) -> Drawn:
        """What orders of heads are graded by, on draws of the examples: how often each is drawn, [R, n]."""
        raise TaskError(f"Orders of heads are not graded for the job '{self.job}'.")

    def at(self, thresholds: Sequence[float], names: Sequence[str]) -> Answer:
        """The same with a threshold for each name, above which it is predicted."""
        raise TaskError(f"Thresholds are of several labels, not of the job '{self.job}' (--thresholds, thresholds=).")

    def in_outputs(self, order: NDArray) -> Answer:
        """What decides about a model's outputs, in their order."""
        return self

    def counts(self, predictions: NDArray, names: Sequence[str]) -> dict[str, int] | None:
        """How often each name is predicted; None where answers have no names."""
        return None

    def changed(self, data: Any, full: NDArray, masked: NDArray) -> Changed | None:
        """The examples whose answer changed; None where every answer moves a little."""
        return None

    # the data ----------------------------------------------------------------------------------------------

    def checked(self, labels: NDArray, names: Sequence[str]) -> NDArray:
        """The labels of a data set, one for each text, in the type that they are kept in."""
        raise TaskError("These data carry no labels.")

    def check_texts(self, texts: Sequence[str], labels: NDArray) -> None:
        """A ``TaskError`` where checked labels do not fit their texts."""
        return

    def label(self, value: Any, names: Sequence[str]) -> str | float:
        """One label for reading."""
        raise TaskError("These data carry no labels.")

    def gold(self, data: Any) -> NDArray:
        """The gold answers in the task's own terms; a ``TaskError`` without any."""
        if data.labels is None:
            raise TaskError("These examples carry no gold labels, and this needs them. Name the label column.")
        labels: NDArray = data.labels
        return labels

    def has_gold(self, data: Any) -> bool:
        return data.labels is not None

    def unread(self, places: Sequence[int], label: Any) -> bool:
        """Whether a text was cut before its gold answer; ``places`` as an encoding has them."""
        return False

    def references(self, data: Any) -> tuple[str, ...]:
        """The texts that an answer in words is compared with."""
        raise TaskError(f"Task '{data.task.name}' has no reference translations.")

    def units(self, data: Any) -> NDArray[np.int64]:
        """The number of each example's unit, from 0: examples of one unit stay together."""
        return np.arange(len(data))

    def slices(self, data: Any) -> tuple[str, list[str]] | None:
        """What the job's own slices are called, and the slice of each example, for data without a slice column."""
        return None

    def groups(self, data: Any) -> tuple[NDArray[np.int64], list[str]]:
        """The group of each example that samples are balanced over, and what the groups are called."""
        return np.zeros(len(data), dtype=np.int64), ["examples"]

    def doubts(self, data: Any) -> list[str]:
        """The message on examples that no metric counts, where data are read."""
        return []

    def notes(self, data: Any) -> list[str]:
        """What a report says of how its metrics are computed on these data."""
        return []

    def refuse(self, clf: Any, data: Any) -> None:
        """Raise a ``TaskError`` where the model does not read such texts; asked of the model's job and the data's."""
        return

    def order(self, clf: Any, data: Any, label_order: Sequence[str] | str | None) -> NDArray[np.int64] | None:
        """The model's output of each class of the task, None where there is none; a ``TaskError`` for a misfit."""
        return None

    def in_model(self, labels: NDArray, order: NDArray) -> NDArray:
        """Labels in the model's own terms."""
        return labels

    # the output --------------------------------------------------------------------------------------------

    def places(
        self, texts: Sequence[str], offsets: Sequence[tuple[int, int]], sides: Sequence[int | None]
    ) -> tuple[int, ...]:
        """The tokens whose outputs are the answer to a text, or pair: of each token where it stands in which text."""
        raise ModelError(f"A model for the job '{self.job}' does not answer token by token.")

    def shape(self, encodings: Sequence[Any], outputs: int) -> tuple[int, ...]:
        """The shape of each text's logits, where all are put into one table."""
        return (max(len(e.places) for e in encodings), outputs) if self.read_at == EACH else (outputs,)

    def unanswered(self, logits: NDArray) -> bool:
        """Whether some answers are no numbers."""
        return not np.isfinite(logits).all()

    def described(self, names: Sequence[str]) -> str:
        """What a model answers with, in words."""
        return ", ".join(names)

    def predicted(self, logits: NDArray, order: NDArray) -> NDArray:
        """What the model answers to each example, in the task's terms."""
        raise ModelError(f"A model for the job '{self.job}' has no predictions of its own.")

    def plain(self, logits: NDArray) -> NDArray:
        """What the model answers to each example, in its own terms."""
        raise ModelError(f"A model for the job '{self.job}' has no predictions of its own.")

    def shares(self, values: NDArray, names: Sequence[str]) -> list[tuple[str, float]]:
        """What is answered to one text, from its ``values``: names with their probabilities; a number has no name."""
        return [("", float(values[0]))]

    def marked(
        self, text: str, pair: str | None, values: NDArray, names: Sequence[str]
    ) -> list[tuple[str, str]] | None:
        """A text in pieces, each with what is answered of it, "" for nothing; None where the answer is of the whole."""
        return None

    def values(self, logits: NDArray) -> NDArray:
        """The output as people read it: probabilities [n, C], or the numbers themselves."""
        return logits

    def margin(self, logits: NDArray, kept: Any) -> float:
        """By how much one text's logits [C] answer ``kept``, a row of ``plain``; not above 0 where they do not."""
        raise TaskError(f"The job '{self.job}' has no single decision.")

    # the scalar to explain -----------------------------------------------------------------------------------

    def targets(self, names: Sequence[str], labelled: bool) -> list[str]:
        """What a user may have explained."""
        return [PREDICTED]

    def target(self, clf: Any, target: str | int, label: Any = None) -> Target:
        """The output to explain; None = the predicted one. An ``OptionError`` for one that the model does not have."""
        clf.check_classes()  # says that there is nothing to explain
        return None

    def target_table(self, targets: Sequence[Target]) -> Tensor:
        """[B] or [B, …]: what ``target`` gave for each text."""
        import torch

        return torch.tensor([-1 if t is None else t for t in targets])

    def at_word(self, target: Target, word: int) -> Target:
        """The same output, at one word alone; words are numbered from 0."""
        raise OptionError(f"A word is explained of a class per token; the job '{self.job}' has none (--word, word=).")

    def words(self, text: str) -> list[str]:
        """The words of a text that are explained one by one; none where the answer is of the whole."""
        return []

    def check_word(self, encoding: Any, word: int | None) -> None:
        """An ``OptionError`` where a text has no such word."""
        return

    def chosen(self, logits: Tensor, targets: Tensor) -> Tensor:
        """[B] or [B, …] the output to explain of each text; ``targets`` comes from ``self.target_table``."""
        import torch

        return torch.where(targets < 0, logits.argmax(dim=1), targets)

    def explained(self, logits: Tensor, chosen: Tensor) -> Tensor:
        """F: the number to explain of each row of logits; ``chosen`` has an entry for each row."""
        return logits.gather(1, chosen.view(-1, 1))

    def probable(self, logits: Tensor) -> Tensor:
        """Probabilities in place of logits, to be explained."""
        raise OptionError(f"The job '{self.job}' has no probability to explain. Choose the logit (of='logit').")

    def target_of(self, chosen: NDArray) -> int | tuple[int, ...]:
        """What was explained of one text, to be kept."""
        return int(chosen)

    def explained_name(self, target: int | tuple[int, ...], names: Sequence[str]) -> str:
        """What was explained, for people."""
        return names[int(target)]  # type: ignore[arg-type]

    def followed(self, logits: NDArray, target: Any) -> NDArray:
        """[N] what a curve of the explained value shows, of logits [N, C]."""
        shown: NDArray = self.values(logits)[:, target]
        return shown

    def target_name(self, name: str) -> str:
        """What a curve of the explained value shows."""
        return f"probability of {name}"

    def lead(self, text: NDArray, donor: NDArray, target: Target, names: Sequence[str]) -> Lead:
        """The logit of one output, else the lead of the donor's answer over the text's; of one text's logits [C]."""
        answers = int(text.argmax()), int(donor.argmax())
        toward = int(target) if isinstance(target, int) else answers[1]
        away = None if isinstance(target, int) or answers[0] == answers[1] else answers[0]

        def of(logits: NDArray) -> NDArray:
            value = logits[..., toward].astype(np.float64)
            return value if away is None else value - logits[..., away]

        over = "" if away is None else f" minus the logit of {names[away]}"
        return Lead(of, f"logit of {names[toward]}{over}", *(names[answer] for answer in answers))

    # learning ------------------------------------------------------------------------------------------------

    def tensor(self, gold: Any, device: Any = None) -> Tensor:
        """Gold answers in the model's terms, as the loss takes them."""
        if not self.label_type:
            raise ModelError(f"A model for the job '{self.job}' has no labels.")
        import torch

        return torch.tensor(self.learned(gold), dtype=getattr(torch, self.label_type), device=device)

    def learned(self, gold: Any) -> NDArray:
        """What of the gold answers the loss takes."""
        return np.asarray(gold)

    def loss(self, logits: Tensor, labels: Tensor, reduction: str = "mean") -> Tensor:
        """The loss that the model is trained with."""
        raise ModelError(f"A model for the job '{self.job}' has no labels.")

    def imitated(self, logits: Tensor, theirs: Tensor, temperature: float) -> Tensor:
        """What a student loses whose answers are not its teacher's: KL divergence of the softened probabilities."""
        from torch.nn.functional import kl_div

        # the factor t² keeps the gradient's size independent of the temperature
        ours, teachers = ((z / temperature).log_softmax(-1) for z in (logits, theirs))
        return temperature**2 * kl_div(ours, teachers, reduction="batchmean", log_target=True)

    def losses(self, logits: NDArray, gold: NDArray) -> NDArray[np.float64]:
        """The same of each row of logits [..., C], without gradients; ``gold`` has the rows' shape, or fits it."""
        raise ModelError(f"A model for the job '{self.job}' has no labels.")


def one_for_each(labels: NDArray) -> NDArray:
    """Labels that are one for each text."""
    if labels.ndim != 1:
        raise TaskError(f"Labels are one for each text; these have {labels.ndim} dimensions.")
    return labels
