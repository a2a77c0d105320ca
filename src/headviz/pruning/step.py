"""The heavy part of a run: answer what an algorithm asks, make its mask, and make and evaluate the model under it."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import plugins
from ..errors import ModelError, OptionError, RunError
from ..heads import HeadId, HeadMask, Seed, grid_values, lowest, tied
from ..models.pruning import prune
from ..progress import Cancel, PhaseProgress, Progress, of_phase
from ..results import plain
from ..scores import PRESETS, SCORES
from ..scores.learned import OPEN, gate_gradients, learn_count
from ..scores.masked_words import masked_lm_scores
from ..scores.scoring import Scoring, join_parts, measure_part, part_count, score_heads
from ..scores.statistics import total
from .algorithms import ALGORITHMS, NOTHING, FisherSearch, LearnGates, Question, Remove, Score
from .finetuning import Trained, fine_tune, trained_once
from .judging import Evaluated, judge_of
from .options import FinetuneOptions
from .plan import DRAWN, PruningPlan
from .removal import Repaired, repaired
from .search import rearranged, search
from .state import BUILD, Choice, Done, Replay, Scored, ScorePart, State, Table, Work, checkpoint_folder, trained_at

if TYPE_CHECKING:
    from ..models.classifier import Classifier
    from ..tasks import Dataset
    from .context import Context, ScoreFunction


class Step:
    """One step of one seed. Nothing here changes the state."""

    def __init__(
        self,
        context: Context,
        plan: PruningPlan,
        state: State,
        work: Work,
        progress: PhaseProgress | None = None,
        cancel: Cancel | None = None,
    ) -> None:
        self.context, self.plan, self.state, self.work = context, plan, state, work
        self.progress, self.cancel = progress, cancel
        self.full = HeadMask.full(state.num_layers, state.num_heads)
        self.rows = plan.rows(context.clf)
        before = state.choice(work.seed, work.step - 1)
        self.before = self.full if before is None else state.mask(before)  # the mask of the previous step

    # the kinds of work ------------------------------------------------------------------------

    def choose(self, parts: Sequence[ScorePart] = ()) -> Done:
        """Find the mask of this step. ``parts`` are all parts of its scoring, in order, if they are measured."""
        start = time.perf_counter()
        algorithm = Replay(self.plan, self.state, self.work.seed, self.work.step)
        if algorithm.question is not None:
            algorithm.answer(self._answer(algorithm.question, parts))
        mask, scored = self._mask(algorithm.mask, algorithm.scores or Scored())
        seconds = time.perf_counter() - start + sum(p.seconds for p in parts)
        tables = scored.values, scored.low, scored.high, scored.samples
        return Done(self.work, choice=Choice(self.work.seed, self.work.step, mask.hex, *tables, seconds))

    def measure_part(self, number: int) -> ScorePart:
        """One part of the scores that this step asks for."""
        start = time.perf_counter()
        question = Replay(self.plan, self.state, self.work.seed, self.work.step).question
        if not isinstance(question, Score):
            raise RunError(f"The choice {self.work.key} asks for no scores, so it has no parts.")
        clf, mask = self._model_and_mask(question)
        # the encoded texts are kept for the other parts
        key = (clf.digest, clf.under(mask).hex, self.sample.digest, self.plan.digest, self.work.seed)
        scoring = self.context.reuse("scoring", key, lambda: Scoring(clf, self.sample, **self._keywords(mask)))
        scoring.progress, scoring.cancel = self._progress("score"), self.cancel
        return ScorePart(measure_part(scoring, number), time.perf_counter() - start)

    def build(self) -> Done:
        """Make the model of this step and evaluate it."""
        choice = self.state.choice(self.work.seed, self.work.step)
        mask = self.full if choice is None else self.state.mask(choice)
        result = self._evaluation(mask)
        seconds = 0.0 if choice is None else choice.seconds
        reference = self.state.logits[self.state.reference.logits]
        record = judge_of(self.context, self.plan.label_order, self.plan.flops_length).record(
            result, mask, self.work, seconds, reference
        )
        if result.trained is not None:
            folder = self.context.keep_trained(self.work.seed, self.work.step, result.trained)
            record = replace(record, model=folder, model_digest=result.trained.digest)
        if choice is not None and choice.scores is not None:
            record = replace(record, tied=tied(grid_values(self._compared(choice), self._removable(self.before))))
        return Done(self.work, record=record, logits=result.answers)

    # masks ------------------------------------------------------------------------------------

    def _mask(self, request: Remove | FisherSearch | HeadMask, scores: Scored) -> tuple[HeadMask, Scored]:
        """The mask that an algorithm asks for, and what it was chosen by."""
        if isinstance(request, FisherSearch):
            return self._searched(request.size)
        if isinstance(request, HeadMask):
            return request, scores
        mask, count = request.mask, request.size - len(request.mask.off)
        heads = lowest(request.scores, count, self._removable(mask), self.plan.keep_per_layer, seed=self._tie_seed)
        return mask.without(heads), scores

    def _searched(self, size: int) -> tuple[HeadMask, Scored]:
        """Search and rearrange for a size, from θ*'s gradients (computed once per seed)."""
        context, plan, data = self.context, self.plan, self.sample
        key = ("gradients", plan.label_order, data.digest)  # with the label order, because plans share a context
        if key not in context.memory:
            context.memory[key] = gate_gradients(
                context.clf, data, plan.label_order, self._progress("score"), self.cancel
            )
        gradients = context.memory[key]  # [n, L, H]
        mask = search(gradients, size, plan.keep_per_layer, self.rows, self._tie_seed)
        fisher = total(gradients**2, data.units)
        low, high = plain_table(fisher.low), plain_table(fisher.high)
        scores = Scored(plain_table((gradients**2).sum(axis=0)), low, high, len(data))
        return rearranged(mask, gradients, self._tie_seed), scores

    def _removable(self, mask: HeadMask) -> tuple[HeadId, ...]:
        """The heads that may be removed: those that are on, in the plan's rows."""
        return tuple(h for h in mask.kept if h.layer in self.rows)

    def _compared(self, choice: Choice) -> Any:
        """The table [L][H] by which a choice compared heads: its scores, or what the algorithm made of them."""
        algorithm = Replay(self.plan, self.state, choice.seed, choice.step)
        if algorithm.question is not None:
            algorithm.answer(Scored.of(choice))
        return algorithm.mask.scores if isinstance(algorithm.mask, Remove) else choice.scores

    @property
    def _tie_seed(self) -> Seed:
        """What breaks ties: the same draw at every step, and when the run goes on."""
        return self.work.seed if self.plan.ties == DRAWN else None

    # scores -----------------------------------------------------------------------------------

    def _answer(self, question: Question, parts: Sequence[ScorePart]) -> Scored:
        if isinstance(question, LearnGates):
            return self._learned(question)
        context, plan, data = self.context, self.plan, self.sample
        call: dict[str, Any] = {"seed": self.work.seed, "progress": self._progress("score"), "cancel": self.cancel}
        call["options"] = dict(plan.score_options)
        scores: Any
        if plan.score_source == "masked-lm":  # θ0 at its own task under the mask, not the model that was given
            clf, mask = context.masked_lm(), question.trained if question.mask is None else question.mask
            scores = masked_lm_scores(clf, data, plan.score, mask=mask, **call)
        else:
            clf, mask = self._model_and_mask(question)
            if context.score is not None:
                scores = context.score(clf, data, plan.score, mask=mask, label_order=plan.label_order, **call)
            elif parts:
                scores = join_parts(Scoring(clf, data, **self._keywords(mask)), [dict(part.tables) for part in parts])
            else:
                scores = score_heads(clf, data, **self._keywords(mask))
        return checked_scores(scores, clf, data, plan, mask)

    def _model_and_mask(self, question: Score) -> tuple[Classifier, HeadMask | None]:
        """The model that a question is about, and the mask that it is scored under."""
        if question.trained is not None:
            return self._trained_under(question.trained), None
        mask = self.full if question.mask is None else question.mask
        if mask.is_full or self.plan.repair == NOTHING:
            return self.context.clf, mask
        # all parts of a scoring need the same model
        key = (self.plan.digest, self.work, mask.hex)
        clf = self.context.clf
        return self.context.reuse("repaired", key, lambda: self._repaired(clf, mask).classifier), None

    def _trained_under(self, mask: HeadMask) -> Classifier:
        """The model that an earlier step trained; θ* if nothing is off."""
        number = trained_at(self.state, self.work.seed, mask)
        record = self.state.record(self.work.seed, number)
        if number == 0 or record is None:
            return self.context.clf
        model = self.context.trained(record)
        if model is None:  # its folder is gone: the same seed trains the same model again
            again = Work(BUILD, self.work.seed, number)
            model = Step(self.context, self.plan, self.state, again, self.progress, self.cancel).retrained(mask).trained
            assert model is not None
        return model

    def _learned(self, question: LearnGates) -> Scored:
        """The logits of gates that are learned until exactly so many are open."""
        heads, start = len(self._removable(self.full)), question.gates
        if start is None:
            start = np.full((self.state.num_layers, self.state.num_heads), np.nan)
            start[self.rows.start : self.rows.stop] = OPEN
        counts = heads - len(question.mask.off), heads - question.size
        scoring = Scoring(self.context.clf, self.sample, **self._keywords(None))
        return Scored(plain_table(learn_count(scoring, start, *counts)), samples=len(self.sample))

    @cached_property
    def sample(self) -> Dataset:
        return self.context.sample(self.plan, self.work.seed, self.plan.samples)

    def _keywords(self, mask: HeadMask | None) -> dict[str, Any]:
        checkpoint = checkpoint_folder(self.context.folder, self.work.seed, self.work.step) / "score.safetensors"
        call = {"mask": mask, "progress": self._progress("score"), "cancel": self.cancel, "checkpoint": checkpoint}
        return score_keywords(self.plan, self.work.seed, **call)

    # models -----------------------------------------------------------------------------------

    def _evaluation(self, mask: HeadMask) -> Evaluated:
        """The evaluation of the model that the algorithm makes under a mask. For θ* at step 0 it is the state's
        ``reference``."""
        if ALGORITHMS[self.plan.algorithm].retrains and (self.work.step > 0 or self.plan.retrain_full):
            return self.retrained(mask)
        if self.work.step > 0:
            return self.masked(mask)
        reference = self.state.reference
        return Evaluated(
            answers=self.state.logits[reference.logits],
            parameters=reference.parameters,
            flops=reference.flops,
            seconds=dict(reference.seconds),
        )

    def masked(self, mask: HeadMask) -> Evaluated:
        """θ* under a mask, repaired as the plan says; nothing is trained."""
        clf = self.context.clf
        if self.plan.repair == NOTHING:
            return self._evaluated(clf, mask)
        fixed = self._repaired(clf, mask)
        return self._evaluated(fixed.classifier, None, {"repair": fixed.seconds}, fixed.error)

    def retrained(self, mask: HeadMask) -> Evaluated:
        """θ0 pruned by a mask, repaired as the plan says, then fine-tuned."""
        base = self.context.base(self.work.seed)
        seconds: dict[str, float] = {}
        error = None
        if mask.is_full:
            small = base
        elif self.plan.repair == NOTHING:
            small = prune(base, mask)
        else:
            fixed = self._repaired(base, mask)
            small, error, seconds["repair"] = fixed.classifier, fixed.error, fixed.seconds
        trained = self._trained(small)
        seconds["train"] = trained.seconds
        result = self._evaluated(trained.classifier, None, seconds, error)
        return replace(result, curve=trained.curve, trained=trained.classifier)

    def _trained(self, small: Classifier) -> Trained:
        """FT(θ0 pruned). With all heads it is the same for every algorithm and score, so it is shared."""
        context, seed = self.context, self.work.seed
        options = FinetuneOptions.from_dict(self.state.finetune or {})
        dev, order = context.dev, self.plan.label_order

        def training() -> Trained:
            return fine_tune(
                small,
                context.train,
                options,
                seed,
                dev=dev,
                label_order=order,
                folder=checkpoint_folder(context.folder, seed, self.work.step) / "finetuning",
                progress=self._progress("train"),
                cancel=self.cancel,
            )

        store = context.store if small.present.is_full else None
        return trained_once(store, small, context.train, options, seed, dev=dev, label_order=order, training=training)

    def _repaired(self, clf: Classifier, mask: HeadMask) -> Repaired:
        """A model pruned by a mask, with the kept weights repaired on the seed's sample."""
        return repaired(
            clf,
            mask,
            self.context.sample(self.plan, self.work.seed, self.plan.repair_samples),
            self.plan.repair,
            memory=self.context.memory,
            progress=self._progress("repair"),
            cancel=self.cancel,
        )

    def _evaluated(
        self,
        clf: Classifier,
        mask: HeadMask | None,
        seconds: Mapping[str, float] | None = None,
        error: dict[str, Any] | None = None,
    ) -> Evaluated:
        """The evaluated model; ``seconds`` and ``error`` are those of its making."""
        judge = judge_of(self.context, self.plan.label_order, self.plan.flops_length)
        result = judge.evaluated(clf, mask, self._progress("evaluate"), self.cancel)
        return replace(result, seconds={**(seconds or {}), **result.seconds}, repair_error=error)

    def _progress(self, phase: str) -> Progress | None:
        """The progress callback of one phase."""
        return of_phase(self.progress, phase)


def score_keywords(plan: PruningPlan, seed: int, **call: Any) -> dict[str, Any]:
    """Keywords for ``score_heads``; ``call`` = mask, progress, cancel, checkpoint."""
    # Not cached: an interrupted scoring's values come from other batches, so their last bits may differ.
    options = table_options(plan.score, dict(plan.score_options), seed)
    return {**call, "label_order": plan.label_order, "cache": False, **options}


def checked_scores(scores: Any, clf: Classifier, data: Dataset, plan: PruningPlan, mask: HeadMask | None) -> Scored:
    """Scores as a state keeps them; a ``ModelError`` for a table of another shape or without any number."""
    values = np.asarray(scores.values, dtype=float)
    if values.shape != (clf.num_layers, clf.num_heads):
        raise ModelError(f"Score '{plan.score}' gave a table of {values.shape}, not of the model's heads.")
    on = clf.under(mask).array()
    if not np.isfinite(values[on]).any() and on.any():
        raise ModelError(f"Score '{plan.score}' could not be measured for any head of '{clf.name}'.")
    return Scored(plain_table(values), _optional(scores, "interval_low"), _optional(scores, "interval_high"), len(data))


def require_score(plan: PruningPlan, function: ScoreFunction | None) -> None:
    """An ``OptionError`` for an unknown score or option, or a score that the algorithm does not take."""
    only = ALGORITHMS[plan.algorithm].only_score
    if only is not None and plan.score != only:
        raise OptionError(
            f"'{plan.algorithm}' is defined by the score '{only}' and takes no other, such as '{plan.score}'."
        )
    if function is None:
        table_options(plan.score, dict(plan.score_options), 0)


def table_options(score: str, options: dict[str, Any], seed: int) -> dict[str, Any]:
    """Keywords for ``score_heads``: the score or preset, its options, and the seed if the score draws at random."""
    if score in PRESETS:
        preset = PRESETS[score]
        entry, chosen, named = SCORES[preset.score], {**preset.options, **options}, {"preset": score}
    elif score in SCORES:
        entry, chosen, named = SCORES[score], options, {"score": score}
    else:
        raise OptionError(plugins.unknown("score", score, (*SCORES, *PRESETS)))
    entry.options_from(chosen)
    if entry.seeded:
        options = {"seed": seed, **options}
    return {**named, **options}


def parts_of(plan: PruningPlan, function: ScoreFunction | None, examples: int) -> int:
    """Into how many parts each scoring of a plan can be split; 1 = it cannot be split."""
    if function is not None or plan.score_source != "fine-tuned" or ALGORITHMS[plan.algorithm].only_score:
        return 1
    return part_count(plan.score, examples)


def plain_table(values: np.ndarray) -> Table:
    """Rows of numbers, None for NaN."""
    return tuple(map(tuple, plain(values)))


def _optional(scores: Any, name: str) -> Table | None:
    values = getattr(scores, name, None)
    return None if values is None else plain_table(np.asarray(values, dtype=float))
