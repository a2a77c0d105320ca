"""Do head scores beat random ones, and does retraining make them equal? A resumable study of pruning runs.

    python -m study.demo_pruning --out cache/study --minutes 60      # do as much as fits, cheap things first
    python -m study.demo_pruning --out cache/study --report study/demo_pruning.md

Every (algorithm, score) is one plan with a folder and a state of its own. Works are done one at a time over all plans
and saved one by one, so the study can be stopped at any moment and continued. The report says what has not been run.
"""

import argparse
import time
from pathlib import Path
from typing import Any

from headviz.engine import Execution, Workplace
from headviz.errors import RunError
from headviz.pruning import ALGORITHMS, PruningPlan, State
from headviz.pruning.check import start
from headviz.pruning.context import Context, open_context
from headviz.pruning.job import PruningJob, works
from headviz.pruning.state import states_in
from study.demo_pruning.plans import MASKED, RETRAINED, SAME, plans


def run(args: argparse.Namespace) -> None:
    """Do the next work, cheapest kind first, until time is up."""
    until = time.monotonic() + 60 * args.minutes
    todo = {name: p for name, p in plans(args).items() if p.algorithm in args.only and name not in SAME}
    executions: dict[str, Execution] = {}
    workplaces: dict[str, Workplace] = {}
    shared: dict[bool, Any] = {}
    for name, plan in todo.items():
        folder = args.out / name
        retrains = ALGORITHMS[plan.algorithm].retrains
        if retrains not in shared:
            shared[retrains] = open_context(plan, folder)
        one = shared[retrains]
        context = Context(
            folder, one.clf, one.train, one.dev, one.load_base, one.load_masked_lm, None, one.recipe, one.pool
        )
        job = PruningJob(plan)
        try:
            state = State.load(folder)
            if state.plan_digest != plan.digest:
                raise SystemExit(f"{folder} holds a study with other options. Use another --out.")
        except RunError:
            state = start(context, plan)
        executions[name], workplaces[name] = Execution(job, states_in(folder), state), Workplace(job, folder, context)
        executions[name].keep(state)
    while time.monotonic() < until:
        waiting = [
            (_price(plan, piece, executions[name].state), name, piece)
            for name, plan in todo.items()
            for piece in executions[name].ready()
        ]
        if not waiting:
            break
        _, name, piece = min(waiting)
        began, execution = time.perf_counter(), executions[name]
        execution.absorb(piece, workplaces[name].do(execution.order(piece)))
        print(f"{name} {piece}: {time.perf_counter() - began:.1f} s", flush=True)


def _price(plan: PruningPlan, piece: str, state: State) -> tuple[Any, ...]:
    """No training before training, full models early, then seed by seed."""
    work = next(work for work in works(plan, state) if work.key == piece.partition("-p")[0])
    trains = ALGORITHMS[plan.algorithm].retrains
    return (trains, work.seed if trains else 0, RETRAINED.index(plan.algorithm) if trains else 0, work.step, work.kind)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder of the study; the same one continues it")
    parser.add_argument("--model", default="demo")
    parser.add_argument("--base", default="demo-pretrained")
    parser.add_argument("--task", default="demo")
    parser.add_argument("--sparsities", type=float, nargs="+", default=[0.3, 0.5, 0.7, 0.9])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--samples", type=int, default=500, help="examples to score on")
    parser.add_argument("--examples", type=int, help="pairs to retrain on (default: the model's recipe)")
    parser.add_argument("--warmup", type=float, default=0.05, help="at least this share of the updates")
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument(
        "--only",
        nargs="+",
        choices=(*MASKED, *RETRAINED),
        default=(*MASKED, *RETRAINED),
        help="run these algorithms alone, so that two processes can share the work",
    )
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--report", type=Path, help="write this page instead of running")
    parser.add_argument(
        "--beside", type=Path, nargs="+", default=[], help="folders of other studies, shown on the page too"
    )
    args = parser.parse_args()
    import torch

    torch.set_num_threads(args.threads)
    if args.report is None:
        run(args)
    else:
        from study.demo_pruning.report import report

        report(args)


if __name__ == "__main__":
    main()
