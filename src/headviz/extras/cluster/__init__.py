"""Runs on a Dask cluster: one process of this machine hands the pieces of work to it."""

from ...plugins import Executor

EXECUTORS = [
    Executor(
        "dask",
        "the cluster at $HEADVIZ_DASK",
        "headviz.extras.cluster.driver:cluster_address",
        "headviz.extras.cluster.driver:drive",
    )
]
