"""Checkpoints of a run: safetensors and JSON, never a pickle; written whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ulr.errors import TrainingError
from ulr.files import whole_folder

if TYPE_CHECKING:
    import torch

_MODEL, _OPTIMIZER, _RANDOM = "model.safetensors", "optimizer.safetensors", "random.safetensors"
_STATE = "state.json"


def save_checkpoint(
    folder: Path, model: Any, state: dict[str, Any], optimizer: torch.optim.Optimizer | None = None
) -> None:
    """Write the weights and a state; with an optimizer, also all that the next step depends on.

    Parameters
    ----------
    folder
        Takes the place of an older checkpoint of that name.
    model
        Whose weights are written.
    state
        Anything that JSON can hold.
    optimizer
        Its moments, and the states of the random numbers.
    """
    import torch
    from safetensors.torch import save_file

    with room_on_disk(folder), whole_folder(folder) as partial:
        save_file(_tensors(model), partial / _MODEL)
        if optimizer is not None:
            save_file(_moments(model, optimizer), partial / _OPTIMIZER)
            random = {"cpu": torch.get_rng_state()}
            if torch.cuda.is_available():
                states = torch.cuda.get_rng_state_all()
                random |= {f"cuda:{number}": each for number, each in enumerate(states)}
            save_file(random, partial / _RANDOM)
        (partial / _STATE).write_text(json.dumps(state, indent=1), encoding="utf-8")


def load_weights(folder: Path, model: Any) -> None:
    """Put a checkpoint's weights into the model."""
    import torch

    kept = _read(folder / _MODEL)
    with torch.no_grad():
        for name, tensor in _tensors(model).items():
            if name not in kept or kept[name].shape != tensor.shape:
                raise TrainingError(f"{folder} is a checkpoint of another model: it lacks {name}.")
            tensor.copy_(kept[name])


def load_checkpoint(folder: Path, model: Any, optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    """Put everything back as it was, and give the state."""
    import torch

    load_weights(folder, model)
    moments = _read(folder / _OPTIMIZER)
    for name, parameter in model.named_parameters():
        own = {
            key: moments[f"{name}/{key}"].to(parameter.device if key != "step" else "cpu")
            for key in ("step", "exp_avg", "exp_avg_sq")
            if f"{name}/{key}" in moments
        }
        if own:
            optimizer.state[parameter] = own
    random = _read(folder / _RANDOM)
    torch.set_rng_state(random.pop("cpu"))
    for device, state in random.items():
        torch.cuda.set_rng_state(state, device)
    return read_state(folder)


def read_state(folder: Path) -> dict[str, Any]:
    """The state of a checkpoint."""
    try:
        state: dict[str, Any] = json.loads((folder / _STATE).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise TrainingError(f"{folder} is not a whole checkpoint: {error}.") from error
    return state


@contextlib.contextmanager
def room_on_disk(place: Path) -> Iterator[None]:
    """Say so in one sentence where something cannot be written, most often for want of space."""
    from safetensors import SafetensorError

    try:
        yield
    except (OSError, SafetensorError) as error:
        full = getattr(error, "errno", None) == errno.ENOSPC or "No space left" in str(error)
        why = "the disk is full" if full else str(getattr(error, "strerror", None) or error)
        raise TrainingError(
            f"{place} cannot be written: {why}. What was written before is whole; make room, "
            "then go on with --resume."
        ) from error


def refuse_little_room(folder: Path, megabytes: float) -> None:
    """Say so before the work begins if the disk has no room for the checkpoints."""
    free = shutil.disk_usage(folder).free / 1e6
    if free < megabytes:
        raise TrainingError(
            f"checkpoints need {megabytes:,.0f} MB in {folder}, where {free:,.0f} MB are free."
        )


def _tensors(model: Any) -> dict[str, torch.Tensor]:
    """Weights by name, tied ones once, with the buffers that are part of the model."""
    kept = model.state_dict()
    buffers = {name: each for name, each in model.named_buffers() if name in kept}
    named = dict(model.named_parameters()) | buffers
    return {name: tensor.detach().contiguous() for name, tensor in named.items()}


def _moments(model: Any, optimizer: torch.optim.Optimizer) -> dict[str, torch.Tensor]:
    return {
        f"{name}/{key}": value.detach().contiguous()
        for name, parameter in model.named_parameters()
        for key, value in optimizer.state.get(parameter, {}).items()
    }


def _read(file: Path) -> dict[str, torch.Tensor]:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        return dict(load_file(file))
    except (OSError, SafetensorError) as error:
        raise TrainingError(f"{file.parent} is not a whole checkpoint: {error}.") from error
