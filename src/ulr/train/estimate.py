"""What a run would do and how long it would take, from a few steps that are then forgotten."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ulr.train.batches import Batches
from ulr.train.loop import Stepper
from ulr.train.run import prepared
from ulr.train.settings import Plan, Settings
from ulr.train.sources import Source

_TRIED_STEPS = 6


def estimate(base: str | Path, sources: Sequence[Source], settings: Settings | None = None) -> Plan:
    """The plan of a run with an estimate of its time; nothing is written.

    The steps that are timed have short, middling and long texts, as the run has.

    Parameters
    ----------
    base, sources, settings
        As for `train`.
    """
    with prepared(base, sources, settings or Settings()) as (learner, instances, plan):
        batches = Batches(instances, plan.settings.n_instances or 1, plan.settings.batch_size)
        window = batches.sorted_window(0)
        n_tried = min(_TRIED_STEPS, len(window))
        tried = [window[(2 * i + 1) * len(window) // (2 * n_tried)] for i in range(n_tried)]
        stepper = Stepper(learner, plan)
        stepper.step(tried[0], 0.0)  # the first one also sets everything up
        began = time.perf_counter()
        for batch in tried:
            stepper.step(batch, 0.0)
        a_text = (time.perf_counter() - began) / sum(map(len, tried))
        n_texts = plan.settings.n_instances or 1
        seconds = a_text * n_texts
        if plan.n_held_out:
            # Going forward takes about a third of a step.
            n_validations = 1 + -(-plan.n_steps // (plan.settings.validate_every or 1))
            seconds += a_text / 3 * plan.n_held_out * n_validations
        return replace(plan, seconds=seconds)
