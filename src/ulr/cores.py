"""Number of CPU cores that this process may use."""

from __future__ import annotations


def available_cores() -> int:
    """Cores available to this process, at least one.

    The CPU affinity of the process, the CPU quota of its container (cgroup) and the environment
    variable ``LOKY_MAX_CPU_COUNT`` are respected.
    """
    import joblib  # on use: ``import ulr`` stays light

    return int(joblib.cpu_count())
