"""Settings, plan, progress and report of a training run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

from ulr.errors import TrainingError
from ulr.train.instances import SourceSummary
from ulr.train.losses import DUAL_OBJECTIVES, MARGIN, SINGLE

PRECISIONS = ("float32", "float16", "bfloat16")


@dataclass(frozen=True)
class TrainingSettings:
    """Settings of a training run; the defaults are the paper's.

    Attributes
    ----------
    objective
        ``dot`` or ``l2`` for a dual encoder, ``single`` for a single encoder.
    n_instances
        Texts to train on, with repetition; None for the most that uses no text twice.
    batch_size
        Texts per step.
    parts
        Parts that a batch is computed in, with accumulated gradients, to save memory.
    max_tokens
        Tokens that are read of a text, or of a pair with a single encoder.
    learning_rate, warmup
        The highest learning rate, and the share of the steps until it is reached.
    weight_decay
        Weight decay of AdamW.
    max_grad_norm
        Norm that gradients are clipped to.
    margin
        γ of the contrastive hinge loss.
    random_state
        Seed of the order, of every draw, of dropout and of the weights of a new head.
    n_negatives
        False categories per text.
    n_held_out
        Texts held out for validation, at most a tenth; 0 for none.
    validate_every, checkpoint_every
        Number of steps; None for a tenth of the run, for checkpoints at most 500 steps.
    as_words
        Whether names of categories are split into words, see `category_words`.
    device
        ``cpu``, ``cuda``, ``cuda:N`` or ``mps``; None for the fastest one.
    precision
        ``float32``, or ``float16`` or ``bfloat16`` for mixed precision; None for mixed precision
        on CUDA and float32 elsewhere.
    n_jobs
        Threads of PyTorch on the CPU; None for every available core.
    """

    objective: str = "dot"
    n_instances: int | None = None
    batch_size: int = 32
    parts: int = 1
    max_tokens: int = 128
    learning_rate: float = 2e-5
    warmup: float = 0.1
    weight_decay: float = 0.0
    max_grad_norm: float = 1.0
    margin: float = MARGIN
    random_state: int = 1
    n_negatives: int = 7
    n_held_out: int = 1000
    validate_every: int | None = None
    checkpoint_every: int | None = None
    as_words: bool = True
    device: str | None = None
    precision: str | None = None
    n_jobs: int | None = None

    def __post_init__(self) -> None:
        for name, allowed in (
            ("objective", (*DUAL_OBJECTIVES, SINGLE)),
            ("precision", (None, *PRECISIONS)),
        ):
            if (value := getattr(self, name)) not in allowed:
                names = ", ".join(each for each in allowed if each)
                raise TrainingError(f"{name} must be one of {names}; got {value!r}.")
        for name, least in _MINIMUM.items():
            value = getattr(self, name)
            if value is not None and value < least:
                raise TrainingError(f"{name} must be at least {least}; got {value}.")
        for name in ("learning_rate", "max_grad_norm", "margin"):
            if not getattr(self, name) > 0:
                raise TrainingError(f"{name} must be above 0; got {getattr(self, name)}.")
        if not 0 <= self.warmup < 1:
            raise TrainingError(f"warmup must be from 0 to below 1; got {self.warmup}.")

    def resolved(self, n_instances: int) -> TrainingSettings:
        """The settings with the number of instances and the intervals filled in."""
        tenth = max(1, -(-n_instances // self.batch_size) // 10)
        return replace(
            self,
            n_instances=n_instances,
            validate_every=self.validate_every or tenth,
            checkpoint_every=self.checkpoint_every or min(500, tenth),
        )


_COUNTS = "n_instances batch_size parts n_negatives validate_every checkpoint_every n_jobs"
_MINIMUM = dict.fromkeys(_COUNTS.split(), 1) | {
    "max_tokens": 8,
    "weight_decay": 0,
    "random_state": 0,
    "n_held_out": 0,
}


@dataclass(frozen=True)
class TrainingPlan:
    """What a run will do.

    Attributes
    ----------
    base, base_fingerprint
        The model to start from.
    settings
        Resolved settings.
    sources
        Content of each source.
    categories
        Number of different categories.
    n_steps, n_held_out, n_parameters
        Number of steps, of texts for validation, and of weights of the model.
    device, precision, n_jobs
        As chosen.
    seconds
        Estimated duration; None without an estimate.
    """

    base: str
    base_fingerprint: str
    settings: TrainingSettings
    sources: tuple[SourceSummary, ...]
    categories: int
    n_steps: int
    n_held_out: int
    n_parameters: int
    device: str
    precision: str
    n_jobs: int
    seconds: float | None = None

    @property
    def n_ranked(self) -> int:
        """Number of categories that validation ranks, the true one included."""
        return min(self.settings.n_negatives + 1, self.categories)

    def as_dict(self) -> dict[str, Any]:
        """The plan for JSON."""
        return asdict(self)


@dataclass(frozen=True)
class TrainingProgress:
    """Progress of a run after a step.

    Attributes
    ----------
    step, n_steps, n_instances
        Steps done, steps of the run, and texts trained on.
    loss
        Smoothed loss.
    instances_per_second
        Since the start or the resumption.
    accuracy
        Of the last validation; None before the first.
    validated
        Whether this step was followed by a validation.
    """

    step: int
    n_steps: int
    n_instances: int
    loss: float
    instances_per_second: float
    accuracy: float | None
    validated: bool

    @property
    def seconds_left(self) -> float:
        """Estimated time to the end."""
        per_instance = 1 / self.instances_per_second
        return (self.n_steps - self.step) * per_instance * self.n_instances / self.step


@dataclass(frozen=True)
class TrainingReport:
    """Result of a run.

    Attributes
    ----------
    output
        The folder of the encoder.
    plan
        The plan.
    n_instances
        Texts trained on.
    loss
        Smoothed loss after the last step.
    accuracy_before, accuracy, best_step
        Ranking accuracy on held-out texts of the base and of the saved weights, and the step of
        these weights; the accuracies are None without validation.
    seconds
        Duration, with all parts of a resumed run.
    phase_seconds
        Duration of each phase.
    """

    output: str
    plan: TrainingPlan
    n_instances: int
    loss: float
    accuracy_before: float | None
    accuracy: float | None
    best_step: int
    seconds: float
    phase_seconds: dict[str, float]

    @property
    def instances_per_second(self) -> float:
        """Texts per second, without validation and checkpoints."""
        phases = ("data", "forward", "backward", "update")
        return self.n_instances / sum(self.phase_seconds[each] for each in phases)

    def as_dict(self) -> dict[str, Any]:
        """The report for JSON."""
        return asdict(self) | {"instances_per_second": self.instances_per_second}


def duration(seconds: float) -> str:
    """A duration in hours, minutes and seconds."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


OnPlan = Callable[[TrainingPlan], None]
OnProgress = Callable[[TrainingProgress], None]
