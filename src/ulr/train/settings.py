"""What a run is to do, what it found, and how far it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

from ulr.errors import TrainingError
from ulr.train.instances import SourceFigures
from ulr.train.losses import MARGIN
from ulr.train.models import DUAL, SINGLE

PRECISIONS = ("float32", "float16", "bfloat16")


@dataclass(frozen=True)
class Settings:
    """The settings of a run; the paper's where nothing else is said.

    Attributes
    ----------
    objective
        ``dot`` or ``l2`` for a dual encoder, ``single`` for a single one.
    n_instances
        Texts trained on, with repetition; None for as many as use no text twice.
    batch_size
        Texts of a step.
    parts
        Pieces that a step's batch is run in, their gradients added up, where memory is short.
    max_tokens
        Tokens of a text (of a pair for a single encoder) that are read.
    peak_rate, warmup
        The highest learning rate, and the share of the steps in which it is reached.
    weight_decay
        Of AdamW.
    clip
        Longest gradient; longer ones are scaled to it.
    margin
        γ of the contrastive hinge loss.
    seed
        Decides the order of the texts, every draw, dropout and the first weights of a new head.
    n_negatives
        False categories of each text.
    n_held_out
        Texts kept for validation, at most a tenth; 0 for none.
    validate_every, checkpoint_every
        In steps; None for ten times a run, and for every 500 steps or ten times a run.
    as_words
        Whether the names of categories are put into words, see `category_words`.
    device
        ``cpu``, ``cuda``, ``cuda:N`` or ``mps``; None for the fastest there is.
    precision
        ``float32``, or ``float16`` or ``bfloat16`` for mixed precision; None for mixed precision
        on CUDA and float32 elsewhere.
    threads
        Of PyTorch on the CPU; None for every core that this process may use.
    """

    objective: str = "dot"
    n_instances: int | None = None
    batch_size: int = 32
    parts: int = 1
    max_tokens: int = 128
    peak_rate: float = 2e-5
    warmup: float = 0.1
    weight_decay: float = 0.0
    clip: float = 1.0
    margin: float = MARGIN
    seed: int = 1
    n_negatives: int = 7
    n_held_out: int = 1000
    validate_every: int | None = None
    checkpoint_every: int | None = None
    as_words: bool = True
    device: str | None = None
    precision: str | None = None
    threads: int | None = None

    def __post_init__(self) -> None:
        if self.objective not in (*DUAL, SINGLE):
            raise TrainingError(
                f"objective must be one of {', '.join((*DUAL, SINGLE))}; got {self.objective!r}."
            )
        if self.precision is not None and self.precision not in PRECISIONS:
            raise TrainingError(
                f"precision must be one of {', '.join(PRECISIONS)}; got {self.precision!r}."
            )
        for name, least in _LEAST.items():
            value = getattr(self, name)
            if value is not None and value < least:
                raise TrainingError(f"{name} must be at least {least}; got {value}.")
        for name in ("peak_rate", "clip", "margin"):
            if not getattr(self, name) > 0:
                raise TrainingError(f"{name} must be above 0; got {getattr(self, name)}.")
        if not 0 <= self.warmup < 1:
            raise TrainingError(f"warmup must be from 0 to below 1; got {self.warmup}.")

    def settled(self, n_instances: int) -> Settings:
        """The same with what was left open decided."""
        n_steps = -(-n_instances // self.batch_size)
        tenth = max(1, n_steps // 10)
        return replace(
            self,
            n_instances=n_instances,
            validate_every=self.validate_every or tenth,
            checkpoint_every=self.checkpoint_every or min(500, tenth),
        )


_LEAST = {
    "n_instances": 1,
    "batch_size": 1,
    "parts": 1,
    "max_tokens": 8,
    "weight_decay": 0,
    "seed": 0,
    "n_negatives": 1,
    "n_held_out": 0,
    "validate_every": 1,
    "checkpoint_every": 1,
    "threads": 1,
}


@dataclass(frozen=True)
class Plan:
    """What a run will do.

    Attributes
    ----------
    base, base_sha256
        The model to begin with.
    settings
        Settled.
    sources
        What was found in each.
    categories
        Different ones, over all sources.
    n_steps
        Of the whole run.
    n_held_out
        Texts that validate.
    n_parameters
        Weights of the model.
    device, precision, threads
        As decided.
    seconds
        Estimate for the whole run; None before it is made.
    """

    base: str
    base_sha256: str
    settings: Settings
    sources: tuple[SourceFigures, ...]
    categories: int
    n_steps: int
    n_held_out: int
    n_parameters: int
    device: str
    precision: str
    threads: int
    seconds: float | None = None

    @property
    def n_ranked(self) -> int:
        """Most categories that a text held out is ranked among, the true one being one of them."""
        return min(self.settings.n_negatives + 1, self.categories)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


@dataclass(frozen=True)
class Progress:
    """How far a run is.

    Attributes
    ----------
    step, n_steps, n_instances
        Steps done, of how many, and texts trained on.
    loss
        Of the last steps, averaged.
    instances_per_second
        Since the run began or was resumed.
    seconds_left
        At that speed.
    accuracy
        Of the last validation; None before the first.
    validated
        Whether this step was validated.
    """

    step: int
    n_steps: int
    n_instances: int
    loss: float
    instances_per_second: float
    seconds_left: float
    accuracy: float | None
    validated: bool


@dataclass(frozen=True)
class TrainingReport:
    """How a run went.

    Attributes
    ----------
    output
        The folder of the encoder.
    plan
        What was done.
    n_instances
        Texts trained on.
    loss
        Of the last steps, averaged.
    accuracy_before, accuracy, best_step
        Ranking accuracy on the texts held out: of the base, of the weights that were kept, and
        after how many steps they were; None without validation.
    seconds
        Of training in all, over resumed parts.
    seconds_of
        Of that, in each phase.
    """

    output: str
    plan: Plan
    n_instances: int
    loss: float
    accuracy_before: float | None
    accuracy: float | None
    best_step: int
    seconds: float
    seconds_of: dict[str, float]

    @property
    def instances_per_second(self) -> float:
        """Texts trained on per second, but for validation and checkpoints."""
        steps = sum(self.seconds_of[each] for each in ("data", "forward", "backward", "update"))
        return self.n_instances / steps

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self) | {"instances_per_second": self.instances_per_second}


def duration(seconds: float) -> str:
    """How long something takes, for people."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


OnPlan = Callable[[Plan], None]
OnProgress = Callable[[Progress], None]
