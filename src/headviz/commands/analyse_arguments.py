"""What each analysis is asked on the command line."""

from __future__ import annotations

import argparse

from .ablate import add_evaluator
from .common import add_mask, add_model, add_task, positive_int

FRESH, MASKED = "fresh-head", "masked-lm"  # where a pre-trained model's F comes from


def evaluated(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    add_task(parser)
    add_evaluator(parser)


def masked(parser: argparse.ArgumentParser) -> None:
    evaluated(parser)
    add_mask(parser)


def sampled(parser: argparse.ArgumentParser, what: str) -> None:
    parser.add_argument(
        "--samples", type=positive_int, default=2000, metavar="N", help=f"{what} (default 2000)"
    )
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="of the sample (default 0)")


def all_but_one_arguments(parser: argparse.ArgumentParser) -> None:
    evaluated(parser)
    parser.add_argument(
        "--select",
        default="other",
        metavar="HOW",
        help="choose the heads on the 'same' data, or 'other' (default)",
    )
    sampled(parser, "train examples to choose the heads on")


def cross_arguments(parser: argparse.ArgumentParser) -> None:
    evaluated(parser)
    parser.add_argument("--other-task", metavar="T", help="the second data set (default: the same task)")
    parser.add_argument("--other-data", metavar="DIR", help="its folder (default: that of --data)")
    parser.add_argument("--other-split", metavar="S", help="its split (default: that of --split)")


def curves_arguments(parser: argparse.ArgumentParser) -> None:
    evaluated(parser)
    parser.add_argument(
        "--scores",
        default="conductance-spearman",
        metavar="A,B,…",
        help="score orders; 'oracle' is ablation's own",
    )
    parser.add_argument("--step", type=float, default=0.1, metavar="K", help="share per step (default 0.1)")
    parser.add_argument("--until", type=float, default=1.0, metavar="S", help="last sparsity (default 1)")
    parser.add_argument(
        "--keep-per-layer",
        type=int,
        default=0,
        metavar="N",
        help="heads that stay in every layer (default 0)",
    )
    sampled(parser, "train examples for scoring")


def speed_arguments(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    add_mask(parser)
    parser.add_argument(
        "--remove",
        type=float,
        default=0.5,
        metavar="S",
        help="without a mask: this share, at random (default 0.5)",
    )
    parser.add_argument("--length", type=positive_int, default=128, metavar="T", help="tokens (default 128)")
    parser.add_argument("--repeats", type=positive_int, default=7, metavar="N", help="default 7")
    parser.add_argument("--batches", default="1,4,16,64", metavar="A,B,…", help="batch sizes")


def dynamics_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--checkpoints", required=True, metavar="DIR", help="folder with one folder per checkpoint"
    )
    parser.add_argument("--device", default="auto", metavar="D", help="auto (default), cpu, cuda, mps")
    add_task(parser)
    add_evaluator(parser)
    parser.add_argument("--score", default="taylor", metavar="NAME", help="order of pruning (default taylor)")
    parser.add_argument("--step", type=float, default=0.1, metavar="K", help="share per step (default 0.1)")
    sampled(parser, "train examples for scoring")


def correlation_arguments(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    add_task(parser)
    parser.add_argument(
        "--base", required=True, metavar="BASE", help="the pre-trained model it was made from"
    )
    parser.add_argument("--score", default="conductance-spearman", metavar="NAME", help="a correlation score")
    parser.add_argument(
        "--source",
        default=FRESH,
        metavar="F",
        help="pre-trained model's F: fresh-head (default) or masked-lm",
    )
    parser.add_argument(
        "--heads", type=positive_int, default=5, metavar="N", help="fresh heads to average (default 5)"
    )
    sampled(parser, "train examples")


def scatter_arguments(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    parser.add_argument("--text", required=True, metavar="A", help="the text")
    parser.add_argument("--text-pair", metavar="B", help="its pair")
    parser.add_argument("--head", required=True, metavar="L.H", help="the head, such as 3.5")
    parser.add_argument(
        "--coefficient", default="spearman", metavar="C", help="spearman (default), kendall, pearson"
    )
    parser.add_argument(
        "--target", default="predicted", metavar="T", help="class to explain (default: predicted)"
    )


def redundant_arguments(parser: argparse.ArgumentParser) -> None:
    evaluated(parser)
    parser.add_argument(
        "--seconds", type=float, default=60.0, metavar="S", help="time for the search (default 60)"
    )
