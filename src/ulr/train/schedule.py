"""The learning rate of each step: a linear rise, then a linear fall to zero."""

from __future__ import annotations


def rate_at(step: int, n_steps: int, peak: float, warmup: float = 0.1) -> float:
    """The rate of a step, counted from 0: up to the peak, then down to zero behind the last.

    Parameters
    ----------
    step
        Steps done before.
    n_steps
        Steps of the whole run.
    peak
        The highest rate.
    warmup
        Share of the steps over which the rate rises.
    """
    n_rising = int(warmup * n_steps)
    if step < n_rising:
        return peak * step / n_rising
    return peak * (n_steps - step) / (n_steps - n_rising)
