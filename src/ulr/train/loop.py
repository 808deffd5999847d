"""The training loop: forward, backward, update, with validation and checkpoints in between."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ulr.errors import TrainingError
from ulr.train.checkpoints import TrainingLog, load_checkpoint, save_checkpoint
from ulr.train.instances import Batches, Instance, Instances, TrainingBatch
from ulr.train.models import TrainableModel
from ulr.train.settings import OnProgress, TrainingPlan, TrainingProgress

if TYPE_CHECKING:
    import torch

PHASES = ("data", "forward", "backward", "update", "validation", "checkpoint")
_VALIDATION_BATCH = 64
_SMOOTHING = 0.95


def learning_rate_at(step: int, n_steps: int, peak: float, warmup: float = 0.1) -> float:
    """Learning rate of a step, from 0: a linear warmup to the peak, then linear to zero."""
    n_warmup = int(warmup * n_steps)
    if step < n_warmup:
        return peak * step / n_warmup
    return peak * (n_steps - step) / (n_steps - n_warmup)


class Trainer:
    """Single steps of a run: the gradient of a batch, computed in parts, and an update."""

    def __init__(self, learner: TrainableModel, plan: TrainingPlan) -> None:
        import torch

        self._learner, self._plan = learner, plan
        self.optimizer = torch.optim.AdamW(
            [each for each in learner.model.parameters() if each.requires_grad],
            lr=plan.settings.learning_rate,
            weight_decay=plan.settings.weight_decay,
            fused=learner.device.type in ("cpu", "cuda"),
        )
        self.scaler = torch.amp.GradScaler(learner.device.type, enabled=plan.precision == "float16")
        self.phase_seconds = dict.fromkeys(PHASES, 0.0)

    def step(self, instances: list[Instance], rate: float) -> float:
        """Update the model on a batch; returns the loss before the update."""
        settings = self._plan.settings
        self._learner.model.train()
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        loss = 0.0
        size = -(-len(instances) // settings.parts)
        for start in range(0, len(instances), size):
            part = instances[start : start + size]
            loss += self._gradient(part, len(part) / len(instances))
        with self.timed("update"):
            self._update(settings.max_grad_norm)
        return loss

    def _gradient(self, instances: list[Instance], weight: float) -> float:
        """Add the gradient of a part of a batch; returns its weighted loss."""
        with self.timed("forward"):
            loss = weight * self._forward(instances)[0]
            value = float(loss.detach())
        with self.timed("backward"):
            self.scaler.scale(loss).backward()
        return value

    def _forward(self, instances: list[Instance]) -> tuple[torch.Tensor, torch.Tensor, Any]:
        """The loss of instances, their scores and the mask of the scores."""
        import torch

        batch = TrainingBatch.of(instances)
        with self._mixed_precision():
            values = self._learner.compare(batch)
        mask = torch.from_numpy(batch.mask).to(self._learner.device)
        return self._learner.loss(values, mask), self._learner.scores(values), mask

    def _update(self, max_grad_norm: float) -> None:
        import torch

        self.scaler.unscale_(self.optimizer)
        torch.nn.utils.clip_grad_norm_(self._learner.model.parameters(), max_grad_norm)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.optimizer.zero_grad(set_to_none=True)

    def _mixed_precision(self) -> contextlib.AbstractContextManager[Any]:
        import torch

        if self._plan.precision == "float32":
            return contextlib.nullcontext()
        dtype = getattr(torch, self._plan.precision)
        return torch.autocast(self._learner.device.type, dtype=dtype)

    def validate(self, instances: list[Instance]) -> tuple[float, float]:
        """Ranking accuracy (share of texts whose true category is first) and loss."""
        import torch

        self._learner.model.eval()
        correct, total_loss = 0, 0.0
        ordered = sorted(instances, key=lambda each: len(each.text))
        with torch.inference_mode(), self.timed("validation"):
            for start in range(0, len(ordered), _VALIDATION_BATCH):
                part = ordered[start : start + _VALIDATION_BATCH]
                loss, scores, mask = self._forward(part)
                total_loss += float(loss) * len(part)
                correct += count_first(scores, mask)
        return correct / len(instances), total_loss / len(instances)

    @contextlib.contextmanager
    def timed(self, phase: str) -> Iterator[None]:
        """Add the duration of the block to a phase."""
        start = time.perf_counter()
        yield
        self.phase_seconds[phase] += time.perf_counter() - start


def count_first(scores: torch.Tensor, mask: torch.Tensor) -> int:
    """Number of texts whose first category scores higher than all others."""
    others = scores[:, 1:].masked_fill(~mask[:, 1:], -math.inf)
    return int((scores[:, 0] > others.max(dim=1).values).sum())


@dataclass
class LoopState:
    """State of a run that a checkpoint keeps; accuracies are None without validation."""

    step: int = 0
    n_instances: int = 0
    loss: float | None = None
    accuracy_before: float | None = None
    accuracy: float | None = None
    best_accuracy: float | None = None
    seconds: float = 0.0
    phase_seconds: dict[str, float] = field(default_factory=dict)
    scaler: dict[str, Any] = field(default_factory=dict)
    log_size: int = 0


class TrainingLoop:
    """All steps of a run.

    Parameters
    ----------
    learner, instances, plan
        The model, its data and the plan.
    log
        Log of losses and validations.
    last, best
        Folders of the last checkpoint and of the best weights.
    """

    def __init__(
        self,
        learner: TrainableModel,
        instances: Instances,
        plan: TrainingPlan,
        log: TrainingLog,
        last: Path,
        best: Path,
    ) -> None:
        self._learner, self._plan, self._log = learner, plan, log
        self._last, self._best = last, best
        settings = plan.settings
        self._batches = Batches(instances, settings.n_instances or 1, settings.batch_size)
        self._held_out = instances.held_out()
        self._trainer = Trainer(learner, plan)
        self.state = LoopState()
        self._start, self._first_step = time.perf_counter(), 0

    @property
    def seconds(self) -> float:
        """Duration of the run so far."""
        return self.state.seconds + time.perf_counter() - self._start

    @property
    def phase_seconds(self) -> dict[str, float]:
        """Duration of each phase so far."""
        return dict(self._trainer.phase_seconds)

    def resume(self) -> None:
        """Restore the last checkpoint."""
        saved = load_checkpoint(self._last, self._learner.model, self._trainer.optimizer)
        self.state = LoopState(**saved)
        self._first_step = self.state.step
        self._trainer.phase_seconds.update(self.state.phase_seconds)
        if self.state.scaler:
            self._trainer.scaler.load_state_dict(self.state.scaler)
        self._log.truncate(self.state.log_size)

    def run(self, on_progress: OnProgress | None = None) -> None:
        """Run the remaining steps."""
        state, settings, n_steps = self.state, self._plan.settings, self._plan.n_steps
        if state.step == 0 and self._held_out:
            state.accuracy_before = self._validate()
        batches = self._batches.from_step(state.step)
        while state.step < n_steps:
            with self._trainer.timed("data"):
                instances = next(batches)
            rate = learning_rate_at(state.step, n_steps, settings.learning_rate, settings.warmup)
            self._count(instances, self._trainer.step(instances, rate), rate)
            at_end = state.step == n_steps
            due = at_end or state.step % (settings.validate_every or 1) == 0
            if validated := bool(self._held_out) and due:
                self._keep_if_best(self._validate())
            if at_end or state.step % (settings.checkpoint_every or 1) == 0:
                self._checkpoint()
            if on_progress is not None:
                on_progress(self._progress(validated))

    def _count(self, instances: list[Instance], loss: float, rate: float) -> None:
        state = self.state
        if not math.isfinite(loss):
            raise TrainingError(
                f"the loss of step {state.step + 1} is {loss}; start again with a learning rate "
                f"below {self._plan.settings.learning_rate:g}."
            )
        state.step += 1
        state.n_instances += len(instances)
        before = loss if state.loss is None else state.loss
        state.loss = _SMOOTHING * before + (1 - _SMOOTHING) * loss
        self._log.write(step=state.step, instances=state.n_instances, loss=loss, rate=rate)

    def _validate(self) -> float:
        accuracy, loss = self._trainer.validate(self._held_out)
        self.state.accuracy = accuracy
        self._log.write(
            step=self.state.step,
            validation_accuracy=accuracy,
            validation_loss=loss,
            seconds=round(self.seconds, 1),
        )
        return accuracy

    def _keep_if_best(self, accuracy: float) -> None:
        if self.state.best_accuracy is None or accuracy > self.state.best_accuracy:
            self.state.best_accuracy = accuracy
            with self._trainer.timed("checkpoint"):
                saved = {"step": self.state.step, "accuracy": accuracy}
                save_checkpoint(self._best, self._learner.model, saved)

    def _checkpoint(self) -> None:
        with self._trainer.timed("checkpoint"):
            saved = asdict(self.state) | {
                "seconds": self.seconds,
                "phase_seconds": self.phase_seconds,
                "scaler": self._trainer.scaler.state_dict(),
                "log_size": self._log.size(),
            }
            save_checkpoint(self._last, self._learner.model, saved, self._trainer.optimizer)

    def _progress(self, validated: bool) -> TrainingProgress:
        state = self.state
        n_instances = (state.step - self._first_step) * self._plan.settings.batch_size
        return TrainingProgress(
            step=state.step,
            n_steps=self._plan.n_steps,
            n_instances=state.n_instances,
            loss=math.nan if state.loss is None else state.loss,
            instances_per_second=n_instances / (time.perf_counter() - self._start),
            accuracy=state.accuracy,
            validated=validated,
        )
