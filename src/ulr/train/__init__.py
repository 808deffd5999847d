"""Fine-tuning of encoders on naturally annotated text; needs the extra ``ulr[train]``."""

from ulr.train.estimate import estimate
from ulr.train.fewshot import (
    Examples,
    draw_examples,
    estimate_few_shot,
    few_shot,
    refine_with_examples,
)
from ulr.train.run import train
from ulr.train.settings import Plan, Progress, Settings, TrainingReport
from ulr.train.sources import Source, parse_source

__all__ = [
    "Examples",
    "Plan",
    "Progress",
    "Settings",
    "Source",
    "TrainingReport",
    "draw_examples",
    "estimate",
    "estimate_few_shot",
    "few_shot",
    "parse_source",
    "refine_with_examples",
    "train",
]
