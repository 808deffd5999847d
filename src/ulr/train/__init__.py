"""Fine-tuning of encoders on naturally annotated text; needs the extra ``ulr[train]``."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ulr.errors import TrainingError, require
from ulr.train.examples import (
    Examples,
    base_settings,
    draw_examples,
    few_shot_instances,
    read_examples,
)
from ulr.train.pairs import PairSource, parse_source
from ulr.train.settings import TrainingPlan, TrainingReport, TrainingSettings

if TYPE_CHECKING:
    from ulr.train.run import make_plan, train

__all__ = [
    "Examples",
    "PairSource",
    "TrainingPlan",
    "TrainingReport",
    "TrainingSettings",
    "base_settings",
    "draw_examples",
    "few_shot_instances",
    "make_plan",
    "parse_source",
    "read_examples",
    "train",
]


def __getattr__(name: str) -> Any:
    if name not in ("make_plan", "train"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    for package in ("torch", "sentence_transformers", "datasets", "accelerate"):
        require(package, "train", TrainingError)
    return getattr(import_module("ulr.train.run"), name)
