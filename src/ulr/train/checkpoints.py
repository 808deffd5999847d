"""Checkpoints (safetensors and JSON, no pickle) and the log of a run."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ulr.errors import TrainingError
from ulr.files import atomic_folder

if TYPE_CHECKING:
    import torch

_MODEL, _OPTIMIZER, _RANDOM = "model.safetensors", "optimizer.safetensors", "random.safetensors"
_STATE = "state.json"


def save_checkpoint(
    folder: Path, model: Any, state: dict[str, Any], optimizer: torch.optim.Optimizer | None = None
) -> None:
    """Write weights and a JSON state atomically.

    With an optimizer, its moments and the states of the random number generators are included, so
    that the run can be resumed.
    """
    import torch
    from safetensors.torch import save_file, save_model

    with write_errors(folder), atomic_folder(folder) as partial:
        save_model(model, str(partial / _MODEL))
        if optimizer is not None:
            save_file(_moments(model, optimizer), partial / _OPTIMIZER)
            random = {"cpu": torch.get_rng_state()}
            if torch.cuda.is_available():
                states = torch.cuda.get_rng_state_all()
                random |= {f"cuda:{number}": each for number, each in enumerate(states)}
            save_file(random, partial / _RANDOM)
        (partial / _STATE).write_text(json.dumps(state, indent=1), encoding="utf-8")


def load_weights(folder: Path, model: Any) -> dict[str, Any]:
    """Load the weights of a checkpoint into the model; returns the state."""
    from safetensors.torch import load_model

    with read_errors(folder):
        load_model(model, folder / _MODEL)
        state: dict[str, Any] = json.loads((folder / _STATE).read_text(encoding="utf-8"))
    return state


def load_checkpoint(folder: Path, model: Any, optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    """Restore weights, optimizer and random number generators; returns the state."""
    import torch
    from safetensors.torch import load_file

    state = load_weights(folder, model)
    with read_errors(folder):
        moments = load_file(folder / _OPTIMIZER)
        random = load_file(folder / _RANDOM)
    for name, parameter in model.named_parameters():
        own = {
            key: moments[f"{name}/{key}"].to(parameter.device if key != "step" else "cpu")
            for key in ("step", "exp_avg", "exp_avg_sq")
            if f"{name}/{key}" in moments
        }
        if own:
            optimizer.state[parameter] = own
    torch.set_rng_state(random.pop("cpu"))
    for device, generator in random.items():
        torch.cuda.set_rng_state(generator, device)
    return state


@contextlib.contextmanager
def write_errors(path: Path) -> Iterator[None]:
    """Turn errors of writing, such as a full disk, into one sentence."""
    from safetensors import SafetensorError

    try:
        yield
    except (OSError, SafetensorError) as error:
        full = getattr(error, "errno", None) == errno.ENOSPC or "No space left" in str(error)
        why = "the disk is full" if full else str(getattr(error, "strerror", None) or error)
        raise TrainingError(
            f"{path} cannot be written: {why}. The previous checkpoint is intact; free some space, "
            "then continue with --resume."
        ) from error


@contextlib.contextmanager
def read_errors(folder: Path) -> Iterator[None]:
    """Turn errors of reading a damaged checkpoint into one sentence."""
    from safetensors import SafetensorError

    try:
        yield
    except (OSError, ValueError, RuntimeError, SafetensorError) as error:
        reason = " ".join(str(error).split())[:200]
        raise TrainingError(f"{folder} is not a complete checkpoint: {reason}.") from error


def check_disk_space(folder: Path, megabytes: float) -> None:
    """Refuse a disk without space for the checkpoints."""
    free = shutil.disk_usage(folder).free / 1e6
    if free < megabytes:
        raise TrainingError(
            f"checkpoints need {megabytes:,.0f} MB in {folder}, where {free:,.0f} MB are free."
        )


def _moments(model: Any, optimizer: torch.optim.Optimizer) -> dict[str, torch.Tensor]:
    return {
        f"{name}/{key}": value.detach().contiguous()
        for name, parameter in model.named_parameters()
        for key, value in optimizer.state.get(parameter, {}).items()
    }


class TrainingLog:
    """A file with one JSON line per step and per validation.

    It can be truncated to its size at a checkpoint.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> TrainingLog:
        with write_errors(self._path):
            self._file = self._path.open("ab")
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def write(self, **values: Any) -> None:
        """Write one line and flush it."""
        with write_errors(self._path):
            self._file.write(json.dumps(values).encode() + b"\n")
            self._file.flush()

    def size(self) -> int:
        """Size in bytes, after a sync to disk."""
        with write_errors(self._path):
            os.fsync(self._file.fileno())
        return self._path.stat().st_size

    def truncate(self, size: int) -> None:
        """Remove what was written after the log had that size."""
        self._file.truncate(size)


def read_log(path: Path) -> list[dict[str, Any]]:
    """The lines of a log."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
