"""The implementation of ``algorithms.Loop``: score, remove the lowest heads, mask, retrain. One object per work."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import RunError
from ..heads import HeadId, HeadMask
from ..models.pruning import prune
from ..progress import Cancel, PhaseProgress, Progress, of_phase
from ..scores.gate_scores import gate_gradients
from ..scores.learned import OPEN
from ..scores.statistics import total
from ..ties import Seed, grid_values, lowest, tied
from .algorithms import ALGORITHMS
from .finetune.sharing import trained_once
from .finetune.training import Trained, fine_tune
from .judging import judge_of
from .options import FinetuneOptions
from .plan import DRAWN, PruningPlan
from .records import Chosen, Result, Scored
from .repair.apply import Repaired, repaired
from .repair.kinds import NOTHING
from .rows import rows_of
from .search import rearranged, search
from .state import BUILD, Choice, Done, ScorePart, State, Work, checkpoint_folder
from .step_scores import Scoring, exact_gates, measured_part, plain_table, score_table, scored

if TYPE_CHECKING:
    from ..models.classifier import Classifier
    from .context import Context


class _Part(Exception):
    """Raised when a choice asks for its scores while only a part of them is wanted; holds that part."""

    def __init__(self, tables: Mapping[str, np.ndarray]) -> None:
        super().__init__()
        self.tables = tables


class Loop:
    """One step of one seed. Nothing here changes the state. ``parts`` are the parts of its scoring, if measured."""

    def __init__(
        self,
        context: Context,
        plan: PruningPlan,
        state: State,
        work: Work,
        progress: PhaseProgress | None = None,
        cancel: Cancel | None = None,
        parts: Sequence[ScorePart] | None = None,
    ) -> None:
        self.context, self.plan, self.state, self.work = context, plan, state, work
        self.progress, self.cancel = progress, cancel
        self.parts = parts
        self._only: int | None = None
        self.algorithm = ALGORITHMS[plan.algorithm]

    # the two kinds of work --------------------------------------------------------------------

    def choose(self) -> Done:
        """Find the mask of this step."""
        start = time.perf_counter()
        chosen = self.algorithm.choose(self)
        s = chosen.scores
        choice = Choice(
            seed=self.work.seed,
            step=self.work.step,
            mask=chosen.mask.hex,
            scores=s.values,
            interval_low=s.low,
            interval_high=s.high,
            samples=s.samples,
            seconds=time.perf_counter() - start + sum(p.seconds for p in self.parts or ()),
            notes=s.notes,
        )
        return Done(self.work, choice=choice, notes=s.notes)

    def measure_part(self, part: int) -> ScorePart:
        """One part of the scores that ``choose`` asks for."""
        start = time.perf_counter()
        self._only = part
        try:
            self.algorithm.choose(self)
        except _Part as found:
            return ScorePart(found.tables, time.perf_counter() - start)
        raise RunError(f"The choice {self.work.key} asks for no scores, so it has no parts.")

    def build(self) -> Done:
        """Make the model of this step and evaluate it."""
        choice = self.state.choice(self.work.seed, self.work.step)
        if choice is None:
            result = self._full_result()
            mask = self.full
        else:
            mask = self._mask(choice.mask)
            result = self.algorithm.result(self, mask)
        seconds = 0.0 if choice is None else choice.seconds
        reference = self.state.logits[self.state.reference.logits]
        record = judge_of(self.context, self.plan.label_order, self.plan.flops_length).record(
            result, mask, self.work, seconds, reference
        )
        if result.trained is not None:
            folder = self.context.keep_trained(self.work.seed, self.work.step, result.trained)
            record = replace(record, model=folder, model_digest=result.trained.digest)
        if choice is not None and choice.scores is not None:
            record = replace(record, tied=tied(grid_values(choice.scores, self.candidates)))
        return Done(self.work, record=record, logits=result.answers)

    # masks ------------------------------------------------------------------------------------

    @property
    def full(self) -> HeadMask:
        return HeadMask.full(self.state.num_layers, self.state.num_heads)

    @property
    def mask(self) -> HeadMask:
        """The mask of the previous step."""
        before = self.state.choice(self.work.seed, self.work.step - 1)
        return self.full if before is None else self._mask(before.mask)

    @property
    def size(self) -> int:
        """How many heads are off after this step."""
        return self.state.sizes[self.work.step - 1]

    def without_lowest(self, scores: Scored) -> Chosen:
        """The mask of the previous step with more heads off, the lowest ones, up to this step's size."""
        before = self.mask
        values = np.array(scores.values, dtype=float)  # None becomes NaN
        count = self.size - len(before.off)
        more = lowest(values, count, self.candidates, self.plan.keep_per_layer, seed=self.tie_seed)
        return Chosen(before.without(more), scores)

    def search_by_fisher(self) -> Chosen:
        """Search and rearrange for this step's size, from θ*'s gradients (computed once per seed)."""
        context, plan = self.context, self.plan
        data = context.sample(plan, self.work.seed, plan.samples)
        key = ("gradients", plan.label_order, data.digest)  # with the label order, because plans share a context
        if key not in context.memory:
            context.memory[key] = gate_gradients(
                context.clf, data, plan.label_order, self.progress_of("score"), self.cancel
            )
        gradients = context.memory[key]  # [n, L, H]
        mask = search(gradients, self.size, plan.keep_per_layer, rows_of(plan, context.clf), self.tie_seed)
        found = total(gradients**2)
        low, high = plain_table(found.low), plain_table(found.high)
        scores = Scored(plain_table((gradients**2).sum(axis=0)), low, high, len(data))
        return Chosen(rearranged(mask, gradients, self.tie_seed), scores)

    def search_by_gates(self) -> Chosen:
        """The heads that gates keep when exactly so many may stay. The gates go on from the step before."""
        clf, plan = self.context.clf, self.plan
        data = self.context.sample(plan, self.work.seed, plan.samples)
        rows, before = rows_of(plan, clf), self.state.choice(self.work.seed, self.work.step - 1)
        heads = [h for h in self.full.kept if h.layer in rows]
        if before is None:
            table = np.full((clf.num_layers, clf.num_heads), np.nan)
            table[rows.start : rows.stop] = OPEN
            start, first = plain_table(table), len(heads)
        else:
            assert before.scores is not None
            start, first = before.scores, len(heads) - len(self.mask.off)
        counts = first, len(heads) - self.size
        logits = exact_gates(clf, data, plan, self._how(None), start, counts)
        off = lowest(logits, self.size, heads, plan.keep_per_layer, seed=self.tie_seed)
        return Chosen(self.full.without(off), Scored(plain_table(logits), samples=len(data)))

    # scores -----------------------------------------------------------------------------------

    def first_scores(self) -> Scored:
        """S(θ*), computed once at the first step."""
        first = self.state.choice(self.work.seed, 1)
        return self.score_masked(self.full) if first is None else Scored.of(first)

    def score_masked(self, mask: HeadMask) -> Scored:
        """S(θ* under a mask), repaired as the plan says."""
        if mask.is_full or self.plan.repair == NOTHING:
            return self.score(self.context.clf, mask)
        # all parts of a scoring need the same model
        key = (self.plan.digest, self.work, mask.hex)
        known = self.context.memory.get("repaired")
        if known is None or known[0] != key:
            known = (key, self.repaired(self.context.clf, mask).classifier)
            self.context.memory["repaired"] = known
        return self.score(known[1], None)

    def score_trained(self) -> Scored:
        """S(the model that the previous step has trained); at the first step S(θ*)."""
        before = self.state.record(self.work.seed, self.work.step - 1)
        if before is None or before.step == 0:
            return self.score(self.context.clf, None)
        model = self.context.trained(before)
        if model is None:  # its folder is gone: the same seed trains the same model again
            again = Loop(
                self.context, self.plan, self.state, Work(BUILD, before.seed, before.step), self.progress, self.cancel
            )
            model = again.retrained(self._mask(before.mask)).trained
            assert model is not None
        return self.score(model, None)

    def score(self, clf: Classifier, mask: HeadMask | None) -> Scored:
        """Scores of a model on the seed's sample."""
        data = self.context.sample(self.plan, self.work.seed, self.plan.samples)
        function = self.context.score
        how = self._how(mask)
        if self._only is not None:
            raise _Part(measured_part(clf, data, self.plan, self._only, how, self.context.memory))
        if self.plan.score_source == "masked-lm":
            from .masked_lm import masked_lm_scores

            # θ0 under the mask so far, not the model that was given
            clf, how = self.context.masked_lm(), replace(how, mask=self.mask)
            options = dict(self.plan.score_options)
            found = masked_lm_scores(clf, data, self.plan.score, options=options, **how.given)
            return scored(found, clf, data, self.plan, how.mask)
        parts = None if self.parts is None else [p.tables for p in self.parts]
        return score_table(function, clf, data, self.plan, how, parts)

    def _how(self, mask: HeadMask | None) -> Scoring:
        place = checkpoint_folder(self.context.folder, self.work.seed, self.work.step) / "score.safetensors"
        return Scoring(self.work.seed, mask, self.progress_of("score"), self.cancel, place)

    # results ----------------------------------------------------------------------------------

    def masked(self, mask: HeadMask) -> Result:
        """θ* under a mask, repaired as the plan says; nothing is trained."""
        clf = self.context.clf
        if self.plan.repair == NOTHING:
            return self._evaluated(clf, mask)
        fixed = self.repaired(clf, mask)
        return self._evaluated(fixed.classifier, None, {"repair": fixed.seconds}, fixed.error)

    def retrained(self, mask: HeadMask) -> Result:
        """θ0 pruned by a mask, repaired as the plan says, then fine-tuned."""
        base = self.context.base(self.work.seed)
        seconds: dict[str, float] = {}
        error = None
        if mask.is_full:
            small = base
        elif self.plan.repair == NOTHING:
            small = prune(base, mask)
        else:
            fixed = self.repaired(base, mask)
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
                progress=self.progress_of("train"),
                cancel=self.cancel,
            )

        store = context.store if small.present.is_full else None
        return trained_once(store, small, context.train, options, seed, dev=dev, label_order=order, training=training)

    def repaired(self, clf: Classifier, mask: HeadMask) -> Repaired:
        """A model pruned by a mask, with the kept weights repaired on the seed's sample."""
        return repaired(
            clf,
            mask,
            self.context.sample(self.plan, self.work.seed, self.plan.repair_samples),
            self.plan.repair,
            memory=self.context.memory,
            progress=self.progress_of("repair"),
            cancel=self.cancel,
        )

    def _full_result(self) -> Result:
        """The result of step 0, the model with every head. θ* itself has been evaluated already."""
        if self.algorithm.retrains and self.plan.retrain_full:
            return self.retrained(self.full)
        reference = self.state.reference
        return Result(
            answers=self.state.logits[reference.logits],
            parameters=reference.parameters,
            flops=reference.flops,
            seconds=dict(reference.seconds),
        )

    def _evaluated(
        self,
        clf: Classifier,
        mask: HeadMask | None,
        seconds: Mapping[str, float] | None = None,
        error: dict[str, Any] | None = None,
    ) -> Result:
        """The evaluated model; ``seconds`` and ``error`` are those of its making."""
        judge = judge_of(self.context, self.plan.label_order, self.plan.flops_length)
        result = judge.evaluated(clf, mask, self.progress_of("evaluate"), self.cancel)
        return replace(result, seconds={**(seconds or {}), **result.seconds}, repair_error=error)

    # helpers ----------------------------------------------------------------------------------

    @property
    def tie_seed(self) -> Seed:
        """What breaks ties: the same draw at every step, and when the run goes on."""
        return self.work.seed if self.plan.ties == DRAWN else None

    @property
    def candidates(self) -> tuple[HeadId, ...]:
        """The heads that may be removed: those that are on, in the plan's rows."""
        rows = rows_of(self.plan, self.context.clf)
        return tuple(h for h in self.mask.kept if h.layer in rows)

    def _mask(self, text: str) -> HeadMask:
        return HeadMask.from_hex(text, self.state.num_layers, self.state.num_heads)

    def progress_of(self, phase: str) -> Progress | None:
        """The progress callback of one phase."""
        return of_phase(self.progress, phase)
