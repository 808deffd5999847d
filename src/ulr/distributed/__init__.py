"""Beyond one machine: workers sample and label files, the fit is local."""

from ulr.distributed.executors import Workers, open_workers
from ulr.distributed.job import (
    PartitionsResult,
    classify_partitions,
    find_partitions,
    open_first,
)

__all__ = [
    "PartitionsResult",
    "Workers",
    "classify_partitions",
    "find_partitions",
    "open_first",
    "open_workers",
]
