"""Tabs of pruning runs: masks of several runs, each on the models and data of all of them; and winning tickets."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import streamlit as st

from ....display.recipes import call, command
from ....display.table import Table
from ....errors import UserError
from ....evaluation.verdict import MARGIN
from ....options import Option
from ....pruning import algorithms
from ....storage.paths import read_small
from ....ui.pages.runs import listing
from ....ui.pages.runs.listing import state_of
from ....ui.shell import controls, frame, jobs, loaders, recorded, show, state
from ....ui.shell.job import Memo
from ....ui.shell.messages import plain, refused
from ..thesis_tables import table_62
from ..transfer_figure import transfer_figure, transfer_table
from ..transfer_matrix import DRAWS, Cell, Matrix, finding, matrix
from ..transfer_spec import LARGEST, cells_of, finished_prunings, measure, of_same_grid, plan_of, shares_of
from ..winning import together

if TYPE_CHECKING:
    from ....runs.reading import RunView
    from ..transfer_spec import TransferOfRuns


FORMULA = r"\text{kept} = \frac{m(\text{mask}) - m(\text{one answer})}{m(\text{every head}) - m(\text{one answer})}"
SOURCE = (
    "2024 thesis, §7.2. With 95 %, a random mask lies within mean ± t·sd·√(1 + 1/n) of the n that were drawn; q values "
    "are Benjamini–Hochberg over the matrix."
)


def draw(cells: Sequence[Cell], own_targets: Mapping[str, str] | None) -> None:
    """``own_targets`` says which target each mask was found on; None = the one of its name."""
    result = matrix(cells)
    show.finding(finding(result, own_targets, state.view().margin))
    show.figure(
        transfer_figure(result, own_targets), "transfer_matrix", _caption(result), formula=FORMULA, source=SOURCE
    )
    if unknown := [e for e in result.entries if e.why]:
        first, others = unknown[0], len(unknown) - 1
        more = f" The same for {others} more." if others else ""
        st.caption(plain(f"Without a share: {first.source} on {first.target}, because {first.why}.{more}"))
    show.table(transfer_table(result), record=result.to_dict())


def _caption(result: Matrix) -> str:
    paired = "over the seeds" if result.retrained else "over the examples"
    suffix = ""
    if result.random:
        counts = sorted({e.count for e in result.random})
        suffix = f" ▲: better than {' to '.join(map(str, counts))} random masks of as many heads (q < 0.05)."
    return (
        "The share of the metric above one answer for all that each mask keeps; below it the metric. Outlined: the "
        "mask's own task. Orange lost, blue gained; grey: the 95 % interval, paired "
        f"{paired}, includes no change. Bold: q < 0.05.{suffix}"
    )


AS_IT_IS, RETRAINED = "Without retraining", "With retraining"
RANDOM = Option(
    "random",
    DRAWS,
    "of the same size, on each model. A mask that is no better than those has not transferred",
    most=200,
    title="Random masks",
)
SEEDS = (0, 1, 2)  # of the retraining that is proposed
FILE, OUT = "transfer.json", "cells.jsonl"
RECIPE = "transfer_recipe"
_measured: Memo[list[Any]] = Memo(6)  # cells by their transfer; a computation that was stopped goes on with them


def tab(views: Sequence[RunView]) -> None:
    """The transfer among these runs and others that are chosen."""
    runs = [v for v in finished_prunings(views) if not recorded.of(v.record.id)]
    if not runs:
        st.info("A transfer begins with a finished run: its masks are given to the models of other runs.")
        return
    way = AS_IT_IS
    if frame.controls():
        way = (
            st.segmented_control(
                "Networks",
                (AS_IT_IS, RETRAINED),
                default=AS_IT_IS,
                required=True,
                key="transfer_way",
                label_visibility="collapsed",
            )
            or AS_IT_IS
        )
    planned = _chosen(runs, way == RETRAINED)
    if way == RETRAINED:
        _with_retraining(planned)
    elif planned is not None:
        _without_retraining(planned)


# ---- what is asked


def _chosen(runs: Sequence[RunView], retrain: bool) -> TransferOfRuns | None:
    """The runs, their share of heads off, and how many random masks; None while that makes no transfer."""
    others = [v for v in finished_prunings(listing.overview()) if not recorded.of(v.record.id)]
    by_id = {v.record.id: v for v in of_same_grid([*runs, *others], runs[0])}
    titles = listing.labels(list(by_id.values()))
    first = _one_of_each_place(runs)
    picked = st.session_state.get("transfer_runs", first)
    if frame.controls():
        picked = st.multiselect(
            "Masks, models and data of these runs",
            list(by_id),
            [i for i in first if i in by_id],
            key="transfer_runs",
            format_func=lambda i: titles.get(i, i),
            help="Finished pruning runs with as many heads. Of a run with several seeds, the masks of the first",
        )
    chosen = [by_id[i] for i in picked if i in by_id]
    if why := _why_not(chosen):
        st.info(plain(why), icon=":material/info:")
        return None
    shares = shares_of(chosen)
    near = min(shares, key=lambda s: abs(s - 0.5))
    share, draws = st.session_state.get("transfer_share", near), st.session_state.get("transfer_draws", DRAWS)
    if frame.controls():
        with st.container(horizontal=True, vertical_alignment="bottom"):
            share = st.selectbox(
                "Share of heads off",
                shares,
                shares.index(near),
                key="transfer_share",
                width=170,
                format_func=lambda s: f"{100 * s:.0f} %",
            )
            if not retrain:
                read = controls.field(st.container(width=240), RANDOM, "transfer_draws")
                try:
                    draws = read()
                except UserError as error:
                    refused(error)
                    return None
    if retrain:
        return plan_of(chosen, share, retrain=True, seeds=SEEDS)
    return plan_of(chosen, share, random=int(draws))


def _one_of_each_place(runs: Sequence[RunView]) -> list[str]:
    """The first run of each model and data: a sweep has many of one."""
    ids: dict[str, str] = {}
    for v in runs:
        spec = v.record.spec
        ids.setdefault(json.dumps([spec.get(n) for n in ("model", "task", "data")]), v.record.id)
    return list(ids.values())


def _why_not(chosen: Sequence[RunView]) -> str:
    """Why these runs make no transfer; empty if they do."""
    if len(chosen) < 2:
        return "Choose a second run, of another task or model: masks are given from one to the other."
    grids = {(s.num_layers, s.num_heads) for v in chosen if (s := state_of(v)) is not None}
    if len(grids) > 1:
        shapes = " and ".join(f"{a}×{b}" for a, b in sorted(grids))
        return f"These runs have grids of {shapes} heads, so a mask of one does not fit the other."
    if not shares_of(chosen):
        return "These runs have no share of heads off in common. Choose runs with the same steps."
    return ""


# ---- without retraining


def _without_retraining(planned: TransferOfRuns) -> None:
    spec = planned.spec
    text = json.dumps(spec.to_dict(), sort_keys=True)
    key = ("transfer", text)
    if jobs.find(key) is None and st.session_state.get("transfer_asked") != text:
        count = len(spec.targets) * (1 + len(spec.masks) + (spec.random or 0))
        masks = f"under {len(spec.masks)} masks, and under {spec.random} random ones of the same size"
        st.caption(plain(f"{count} evaluations: {len(spec.targets)} models, each with every head on, {masks}."))
        if frame.controls():
            st.button(
                "Measure", key="transfer_run", type="primary", icon=":material/play_arrow:", on_click=_ask, args=(text,)
            )
        return
    try:
        for target in spec.targets.values():  # the dashboard reads below the allowed folders only
            loaders.model_name(str(target["model"]))
            if target.get("data"):
                loaders.confined(str(target["data"]))
    except UserError as error:
        refused(error)
        return
    measured: list[Cell] = _measured.get(key, list)

    def work(progress: jobs.Progress, cancel: jobs.Cancel) -> list[Cell]:
        return measure(planned, tuple(measured), measured.append, progress, cancel)

    cells = jobs.need(key, "Evaluating masks", work)
    if cells is not None:
        draw(cells, planned.own_targets)
        st.session_state[RECIPE] = _recipe(planned)


def _ask(text: str) -> None:
    st.session_state["transfer_asked"] = text


def _recipe(planned: TransferOfRuns) -> tuple[str, str]:
    """The same in Python, and as a file for the command."""
    record = planned.spec.to_dict()
    words = {k: v for k, v in record.items() if k not in ("masks", "targets")}
    code = call("headviz.transfer", record["masks"], record["targets"], **words)
    python = f"import headviz\nresult = {code}\nresult.entries"
    line = command(f"transfer {FILE}", [("out", OUT)])
    return python, f"echo {shlex.quote(json.dumps(record, ensure_ascii=False))} > {FILE}\n{line}"


def recipe() -> tuple[str, str] | None:
    """The recipe of the transfer that was drawn just now; None where another tab is open."""
    texts: tuple[str, str] | None = st.session_state.pop(RECIPE, None)
    return texts


# ---- with retraining


def _with_retraining(planned: TransferOfRuns | None) -> None:
    """Cells that the command has measured, from a file; and the file that makes the command do it."""
    if frame.controls():
        st.caption(
            "One training for every mask, model and seed: too long for a page. The command below does it, goes on "
            "where it was stopped, and its output is shown here, complete or not."
        )
    if planned is not None and frame.controls():
        with st.container(horizontal=True, vertical_alignment="center"):
            text = json.dumps(planned.spec.to_dict(), indent=1, ensure_ascii=False)
            st.download_button(
                f"↓ {plain(FILE)}", text, FILE, "application/json", key="transfer_spec", on_click="ignore"
            )
            st.code(f"headviz transfer {FILE} --out {OUT}", language="bash")
        if baseless := [n for n, t in planned.spec.targets.items() if not t.get("base") and t["model"] != "demo"]:
            st.caption(plain(f"The file lacks “base”, the pre-trained model, of {'; '.join(baseless)}: add it."))
        st.session_state[RECIPE] = _recipe(planned)
    upload = st.file_uploader(f"The output of headviz transfer ({OUT})", type=["jsonl"], key="transfer_file")
    place = st.text_input("or its place on the dashboard's machine", "", key="transfer_place")
    if upload is None and not place.strip():
        return
    try:
        if upload is not None:
            raw, name = upload.getvalue(), upload.name
        else:
            path = loaders.confined(place.strip())
            raw, name = read_small(path, LARGEST, "the output"), path.name
        cells = cells_of(raw.decode("utf-8", "replace"), name)
    except UserError as error:
        refused(error)
        return
    if not any(c.source for c in cells):
        st.info("This file has no cell of a mask yet.", icon=":material/hourglass_top:")
        return
    own_targets = None
    if planned is not None and set(planned.own_targets) >= {c.source for c in cells if c.source}:
        own_targets = planned.own_targets
    draw(cells, own_targets)


def retrains(view: RunView) -> bool:
    """Whether the run's algorithm retrains the pruned models; only then are there tickets."""
    return algorithms.retrains(str(view.record.spec.get("algorithm")))


def tickets(views: Sequence[RunView]) -> None:
    """The highest share of heads removed at which a retrained model is as good as the full one, and published ones."""

    retrained = [v for v in views if retrains(v) and v.record.spec.get("retrain_full", True)]
    states = together([s for v in retrained if (s := state_of(v)) is not None])
    if not table_62(states).rows:
        retrain = ", ".join(a.title for a in algorithms.ALGORITHMS.values() if a.retrains)
        st.info(
            f"No winning tickets yet. They need an algorithm that retrains ({plain(retrain)}), the full model "
            "trained too, and at least one finished step of every seed.",
            icon=":material/confirmation_number:",
        )
        return
    if any(len(s.plan["seeds"]) < 2 for s in states):
        st.info("With one seed there is no spread, so nothing follows: give several seeds.", icon=":material/info:")
    option = Option("margin", MARGIN, least=0.1, most=100, title="Loss that would matter, points")
    margin = controls.field(st.container(), option, "run_tickets_margin", width=260, step=0.5)
    try:
        table = table_62(states, margin())
    except UserError as error:
        refused(error)
        return
    caption = (
        "Highest share of heads removed at which the mean over seeds, plus one standard deviation, reaches the full "
        "model's mean; metrics in per cent. Published: BERT-base, 2024 thesis, Table 6.2. "
    )
    cells = [["–" if v in ("", None) else v for v in row] for row in table.rows]
    show.table(Table("run_tickets", table.header, cells, caption + " ".join(table.notes)))
