"""Fine-tuning of encoders on naturally annotated text; needs the extra ``ulr[train]``."""

from ulr.train.examples import (
    Examples,
    base_settings,
    draw_examples,
    estimate_few_shot,
    few_shot,
    refine_with_examples,
)
from ulr.train.run import estimate, train
from ulr.train.settings import TrainingPlan, TrainingProgress, TrainingReport, TrainingSettings
from ulr.train.sources import PairSource, parse_source

__all__ = [
    "Examples",
    "PairSource",
    "TrainingPlan",
    "TrainingProgress",
    "TrainingReport",
    "TrainingSettings",
    "base_settings",
    "draw_examples",
    "estimate",
    "estimate_few_shot",
    "few_shot",
    "parse_source",
    "refine_with_examples",
    "train",
]
