"""The steps of a run: forward, backward, update; validation and checkpoints in between."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ulr.errors import TrainingError
from ulr.train.batches import Batches, as_batch
from ulr.train.checkpoints import load_checkpoint, save_checkpoint
from ulr.train.instances import Instance, Instances
from ulr.train.log import Log
from ulr.train.models import Learner
from ulr.train.schedule import rate_at
from ulr.train.settings import OnProgress, Plan, Progress

if TYPE_CHECKING:
    import torch

PHASES = ("data", "forward", "backward", "update", "validation", "checkpoint")
_VALIDATED_AT_ONCE = 64
_SMOOTHING = 0.95


class Stepper:
    """Makes single steps: the gradient of a batch, in parts, and an update.

    Parameters
    ----------
    learner
        The model.
    plan
        How it is trained.
    """

    def __init__(self, learner: Learner, plan: Plan) -> None:
        import torch

        self._learner, self._plan = learner, plan
        self.optimizer = torch.optim.AdamW(
            [each for each in learner.model.parameters() if each.requires_grad],
            lr=plan.settings.peak_rate,
            weight_decay=plan.settings.weight_decay,
            fused=learner.device.type in ("cpu", "cuda"),
        )
        self.scaler = torch.amp.GradScaler(learner.device.type, enabled=plan.precision == "float16")
        self.seconds_of = dict.fromkeys(PHASES, 0.0)

    def step(self, instances: list[Instance], rate: float) -> float:
        """Learn from a batch at a rate, and give its loss before."""
        settings, model = self._plan.settings, self._learner.model
        model.train()
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        loss = 0.0
        size = -(-len(instances) // settings.parts)
        for start in range(0, len(instances), size):
            part = instances[start : start + size]
            loss += self._gradient(part, len(part) / len(instances))
        with self.timed("update"):
            self._update(settings.clip)
        return loss

    def _gradient(self, instances: list[Instance], weight: float) -> float:
        """Add the gradient of a part of a batch; the part's loss by its weight."""
        import torch

        batch = as_batch(instances)
        with self.timed("forward"):
            with self._mixed_precision():
                figures = self._learner.figures(batch)
            real = torch.from_numpy(batch.real).to(self._learner.device)
            loss = weight * self._learner.loss(figures, real)
            value = float(loss.detach())
        with self.timed("backward"):
            self.scaler.scale(loss).backward()
        return value

    def _update(self, clip: float) -> None:
        import torch

        self.scaler.unscale_(self.optimizer)
        torch.nn.utils.clip_grad_norm_(self._learner.model.parameters(), clip)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.optimizer.zero_grad(set_to_none=True)

    def _mixed_precision(self) -> contextlib.AbstractContextManager[Any]:
        import torch

        if self._plan.precision == "float32":
            return contextlib.nullcontext()
        dtype = getattr(torch, self._plan.precision)
        return torch.autocast(self._learner.device.type, dtype=dtype)

    def ranking(self, instances: list[Instance]) -> tuple[float, float]:
        """Share of texts whose true category fits better than every false one, and the loss."""
        import torch

        model = self._learner.model
        model.eval()
        right, lost = 0, 0.0
        ordered = sorted(instances, key=lambda each: len(each.text))
        with torch.inference_mode(), self.timed("validation"):
            for start in range(0, len(ordered), _VALIDATED_AT_ONCE):
                batch = as_batch(ordered[start : start + _VALIDATED_AT_ONCE])
                real = torch.from_numpy(batch.real).to(self._learner.device)
                with self._mixed_precision():
                    figures = self._learner.figures(batch)
                lost += float(self._learner.loss(figures, real)) * len(batch.texts)
                right += true_first(self._learner.fits(figures), real)
        return right / len(instances), lost / len(instances)

    @contextlib.contextmanager
    def timed(self, phase: str) -> Iterator[None]:
        """Count the time of the block towards a phase."""
        began = time.perf_counter()
        yield
        self.seconds_of[phase] += time.perf_counter() - began


def true_first(fits: torch.Tensor, real: torch.Tensor) -> int:
    """Texts whose first category fits better than all their others."""
    others = fits[:, 1:].masked_fill(~real[:, 1:], -math.inf)
    return int((fits[:, 0] > others.max(dim=1).values).sum())


class Loop:
    """All steps of a run.

    Parameters
    ----------
    learner, instances, plan
        What learns, from what, and how.
    log
        Where figures go.
    last, best
        Folders of the last checkpoint and of the best weights.

    Attributes
    ----------
    n_instances
        Texts trained on.
    last_loss
        Of the last steps, averaged.
    accuracy_before, best_accuracy
        Ranking accuracy of the base and of the best weights; None without validation.
    seconds
        Of the whole run, over resumed parts.
    """

    def __init__(
        self, learner: Learner, instances: Instances, plan: Plan, log: Log, last: Path, best: Path
    ) -> None:
        self._learner, self._plan, self._log = learner, plan, log
        self._last, self._best = last, best
        settings = plan.settings
        self._batches = Batches(instances, settings.n_instances or 1, settings.batch_size)
        self._held_out = instances.held_out()
        self._stepper = Stepper(learner, plan)
        self._step = self.n_instances = 0
        self._losses: float | None = None
        self.accuracy_before: float | None = None
        self.best_accuracy: float | None = None
        self._accuracy: float | None = None
        self._seconds_before = 0.0
        self._began, self._began_at = time.perf_counter(), 0

    @property
    def seconds(self) -> float:
        """Of the whole run so far."""
        return self._seconds_before + time.perf_counter() - self._began

    @property
    def seconds_of(self) -> dict[str, float]:
        """Of that, in each phase."""
        return self._stepper.seconds_of

    @property
    def last_loss(self) -> float:
        """Of the last steps, averaged."""
        return math.nan if self._losses is None else self._losses

    def resume(self) -> None:
        """Go back to the last checkpoint."""
        state = load_checkpoint(self._last, self._learner.model, self._stepper.optimizer)
        self._step = self._began_at = state["step"]
        self.n_instances, self._losses = state["n_instances"], state["loss"]
        self.accuracy_before, self._accuracy = state["accuracy_before"], state["accuracy"]
        self.best_accuracy = state["best_accuracy"]
        self._seconds_before = state["seconds"]
        self._stepper.seconds_of.update(state["seconds_of"])
        if state["scaler"]:
            self._stepper.scaler.load_state_dict(state["scaler"])
        self._log.cut(state["log_size"])

    def run(self, on_progress: OnProgress | None = None) -> None:
        """Make the steps that are left."""
        settings, n_steps = self._plan.settings, self._plan.n_steps
        if self._step == 0 and self._held_out:
            self.accuracy_before = self._validate()
        batches = self._batches.from_step(self._step)
        while self._step < n_steps:
            with self._stepper.timed("data"):
                instances = next(batches)
            rate = rate_at(self._step, n_steps, settings.peak_rate, settings.warmup)
            loss = self._stepper.step(instances, rate)
            self._count(instances, loss, rate)
            at_end = self._step == n_steps
            due = at_end or self._step % (settings.validate_every or 1) == 0
            if validated := bool(self._held_out) and due:
                self._keep_if_best(self._validate())
            if at_end or self._step % (settings.checkpoint_every or 1) == 0:
                self._checkpoint()
            if on_progress is not None:
                on_progress(self._progress(validated))

    def _count(self, instances: list[Instance], loss: float, rate: float) -> None:
        if not math.isfinite(loss):
            raise TrainingError(
                f"the loss of step {self._step + 1} is {loss}; begin anew with a lower rate than "
                f"{self._plan.settings.peak_rate:g}."
            )
        self._step += 1
        self.n_instances += len(instances)
        before = loss if self._losses is None else self._losses
        self._losses = _SMOOTHING * before + (1 - _SMOOTHING) * loss
        self._log.write(step=self._step, instances=self.n_instances, loss=loss, rate=rate)

    def _validate(self) -> float:
        accuracy, loss = self._stepper.ranking(self._held_out)
        self._accuracy = accuracy
        self._log.write(
            step=self._step,
            validation_accuracy=accuracy,
            validation_loss=loss,
            seconds=round(self.seconds, 1),
        )
        return accuracy

    def _keep_if_best(self, accuracy: float) -> None:
        if self.best_accuracy is None or accuracy > self.best_accuracy:
            self.best_accuracy = accuracy
            state = {"step": self._step, "accuracy": accuracy}
            with self._stepper.timed("checkpoint"):
                save_checkpoint(self._best, self._learner.model, state)

    def _checkpoint(self) -> None:
        with self._stepper.timed("checkpoint"):
            state = {
                "step": self._step,
                "n_instances": self.n_instances,
                "loss": self._losses,
                "accuracy_before": self.accuracy_before,
                "accuracy": self._accuracy,
                "best_accuracy": self.best_accuracy,
                "seconds": self.seconds,
                "seconds_of": self._stepper.seconds_of,
                "scaler": self._stepper.scaler.state_dict(),
                "log_size": self._log.size(),
            }
            save_checkpoint(self._last, self._learner.model, state, self._stepper.optimizer)

    def _progress(self, validated: bool) -> Progress:
        elapsed = time.perf_counter() - self._began
        done = self._step - self._began_at
        left = (self._plan.n_steps - self._step) * elapsed / done
        speed = done * self._plan.settings.batch_size / elapsed
        return Progress(
            self._step,
            self._plan.n_steps,
            self.n_instances,
            self.last_loss,
            speed,
            left,
            self._accuracy,
            validated,
        )
