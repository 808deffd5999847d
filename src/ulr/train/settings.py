"""Settings, plan and report of a training run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from ulr.errors import TrainingError

DUAL_OBJECTIVES, SINGLE = ("dot", "l2"), "single"
_COUNTS = ("n_instances", "batch_size", "parts", "n_negatives", "checkpoint_every", "n_jobs")
_MINIMUM = dict.fromkeys(_COUNTS, 1) | {"max_tokens": 8, "random_state": 0, "n_held_out": 0}


@dataclass(frozen=True)
class TrainingSettings:
    """Settings of a training run; the defaults are the paper's.

    Attributes
    ----------
    objective
        ``dot`` (dot product, binary cross-entropy) or ``l2`` (squared distance, hinge) for a dual
        encoder, ``single`` for a single encoder.
    n_instances
        Texts to train on, with repetition; None for the most that uses no text twice.
    batch_size
        Texts per step.
    parts
        Equal parts that a batch is computed in, with accumulated gradients, to save memory.
    max_tokens
        Tokens that are read of a text, or of a pair with a single encoder.
    learning_rate
        The highest learning rate: it rises for a tenth of the steps, then falls to zero.
    margin
        γ of the hinge loss.
    random_state
        Seed of the order, of every draw, of dropout and of the weights of a new head.
    n_negatives
        False categories per text.
    n_held_out
        Texts held out for validation, at most a tenth; 0 for none.
    checkpoint_every
        Steps between checkpoints, each with a validation; None for a tenth of the run, at most 500.
    as_words
        Whether names of categories are split into words: ``MensRights``, ``comp.graphics``.
    n_jobs
        Threads of PyTorch on the CPU; None for every available core.
    trainer_arguments
        Further arguments of sentence-transformers' ``TrainingArguments``, such as
        ``{"weight_decay": 0.01}``, ``{"bf16": False}`` or ``{"use_cpu": True}``.
    """

    objective: str = "dot"
    n_instances: int | None = None
    batch_size: int = 32
    parts: int = 1
    max_tokens: int = 128
    learning_rate: float = 2e-5
    margin: float = 0.5
    random_state: int = 1
    n_negatives: int = 7
    n_held_out: int = 1000
    checkpoint_every: int | None = None
    as_words: bool = True
    n_jobs: int | None = None
    trainer_arguments: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        objectives = (*DUAL_OBJECTIVES, SINGLE)
        if self.objective not in objectives:
            raise TrainingError(
                f"objective must be one of {', '.join(objectives)}; got {self.objective!r}."
            )
        for name, least in _MINIMUM.items():
            value = getattr(self, name)
            if value is not None and value < least:
                raise TrainingError(f"{name} must be at least {least}; got {value}.")
        for name in ("learning_rate", "margin"):
            if not getattr(self, name) > 0:
                raise TrainingError(f"{name} must be above 0; got {getattr(self, name)}.")
        if self.batch_size % self.parts:
            raise TrainingError(
                f"batch_size must be a multiple of parts; got {self.batch_size} and {self.parts}."
            )


@dataclass(frozen=True)
class SourceSummary:
    """Content of a source; `named` describes the first malformed rows."""

    files: tuple[str, ...]
    texts: int
    held_out: int
    categories: int
    share: float
    malformed: int
    named: tuple[str, ...]
    negatives: str


@dataclass(frozen=True)
class TrainingPlan:
    """What a run will do, with the settings resolved; as a string, the plan in a few lines."""

    base: str
    settings: TrainingSettings
    sources: tuple[SourceSummary, ...]
    n_categories: int
    n_instances: int
    n_steps: int
    n_held_out: int
    n_parameters: int
    device: str
    n_jobs: int

    def __str__(self) -> str:
        settings = self.settings
        lines = [
            f"{self.base}, {self.n_parameters / 1e6:.1f}M weights, {settings.objective}, on "
            f"{self.device} ({self.n_jobs} threads)"
        ]
        for each in self.sources:
            files = each.files[0] if len(each.files) == 1 else f"{len(each.files)} files"
            lines.append(
                f"  {files}: {each.share:.1%} of the instances, {each.texts:,} texts (each used "
                f"{each.share * self.n_instances / each.texts:.2f} times), {each.categories:,} "
                f"categories, negatives: {each.negatives}"
            )
            if each.malformed:
                named = "; ".join(each.named)
                lines.append(f"    {each.malformed:,} malformed rows ignored: {named}")
        lines.append(
            f"{self.n_instances:,} instances in {self.n_steps:,} steps of {settings.batch_size}, "
            f"{settings.max_tokens} tokens, learning rate {settings.learning_rate:g}, "
            f"{self.n_held_out:,} texts for validation, seed {settings.random_state}"
        )
        return "\n".join(lines)


@dataclass(frozen=True)
class TrainingReport:
    """Result of a run; as a string, the result in a few lines.

    `loss` is the mean of the last logged steps. The accuracies of ranking held-out texts are those of
    the base and of the saved weights, which are the weights of `best_step`; None without validation.
    `seconds` covers all parts of a resumed run; `log` is the trainer's.
    """

    output: str
    plan: TrainingPlan
    loss: float
    accuracy_before: float | None
    accuracy: float | None
    best_step: int
    seconds: float
    instances_per_second: float
    log: list[dict[str, Any]]

    def __str__(self) -> str:
        plan = self.plan
        lines = [
            f"{plan.n_instances:,} instances in {timedelta(seconds=round(self.seconds))}, "
            f"{self.instances_per_second:,.1f} per second; loss {self.loss:.4f}."
        ]
        if self.accuracy is not None and self.accuracy_before is not None:
            n_ranked = min(plan.settings.n_negatives + 1, plan.n_categories)
            lines.append(
                f"Ranking accuracy among {n_ranked} categories: {self.accuracy_before:.1%} before, "
                f"{self.accuracy:.1%} after step {self.best_step:,}, whose weights were saved."
            )
            if self.accuracy < self.accuracy_before:
                lines.append(
                    "That is below the base: train on more instances, or with a higher learning "
                    "rate."
                )
        return "\n".join(lines)
