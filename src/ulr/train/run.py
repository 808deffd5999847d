"""A training run: from a base model or a checkpoint to an encoder in a folder."""

from __future__ import annotations

import contextlib
import json
import random
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from transformers.trainer_utils import get_last_checkpoint
from transformers.utils import logging

from ulr.errors import TrainingError
from ulr.files import atomic_file, atomic_folder, check_destination, temporary_folder
from ulr.progress import NO_PROGRESS, Progress
from ulr.threads import available_cores
from ulr.train.instances import Instances
from ulr.train.pairs import PairSource
from ulr.train.settings import TrainingPlan, TrainingReport, TrainingSettings
from ulr.train.trainer import ACCURACY, RunCallback, load_model, make_trainer, write_dataset

_PLAN = "plan.json"
_ENCODER_OPTIONS = {"dot": "hf:{}", "l2": "hf:{} --distance l2", "single": "cross:{}"}


def train(
    base: str | Path,
    sources: Sequence[PairSource],
    output: str | Path,
    settings: TrainingSettings | None = None,
    *,
    resume: bool = False,
    force: bool = False,
    progress: Progress = NO_PROGRESS,
    log: Callable[[str], None] = lambda _: None,
) -> TrainingReport:
    """Fine-tune an encoder on texts and their categories.

    Checkpoints are kept in the folder ``OUTPUT.training``, which is removed when `output` has been
    written.

    Parameters
    ----------
    base
        The model to start from: a folder, or a name on the Hugging Face hub.
    sources
        Sources of texts and categories.
    output
        Folder for the encoder.
    settings
        Settings of the run.
    resume
        Continue from the last checkpoint of a run with the same output, if there is one.
    force
        Replace an existing output or an unfinished run.
    progress
        Receives the instances trained on. An exception that it raises ends the run, which can be
        resumed.
    log
        Called with the plan and with a line per validation, such as `print`.

    Returns
    -------
    TrainingReport
        The saved weights are those of the best validation.
    """
    output = Path(output).absolute()
    work = output.with_name(f"{output.name}.training")
    check_destination(output, force, TrainingError, "--force")
    if work.exists() and not resume:
        if not force:
            raise TrainingError(
                f"{work} holds an unfinished run; continue it with --resume, or start again with "
                "--force."
            )
        shutil.rmtree(work)
    with _prepared(base, sources, settings) as (model, instances, plan, scratch):
        log(str(plan))
        with _write_errors(work):
            checkpoint = _open_work_folder(work, plan, instances.digest)
            windows = instances.in_training_order(plan.n_instances)
            dataset = write_dataset(scratch / "instances.arrow", windows)
            callback = RunCallback(plan, progress, log)
            trainer = make_trainer(model, plan, dataset, instances.held_out(), work, callback)
            try:
                trainer.train(resume_from_checkpoint=checkpoint)
            except Exception as error:
                if callback.started or checkpoint is None:
                    raise
                raise TrainingError(
                    f"{checkpoint} cannot be read: {_reason(error)}. Start again with --force."
                ) from error
            report = _write_output(trainer, plan, output)
    shutil.rmtree(work)
    return report


def make_plan(
    base: str | Path, sources: Sequence[PairSource], settings: TrainingSettings | None = None
) -> TrainingPlan:
    """The plan of `train` with the same arguments; trains and writes nothing."""
    with _prepared(base, sources, settings) as (_, _, plan, _):
        return plan


@contextlib.contextmanager
def _prepared(
    base: str | Path, sources: Sequence[PairSource], settings: TrainingSettings | None
) -> Iterator[tuple[Any, Instances, TrainingPlan, Path]]:
    """The model, the instances and the plan of a run, and a temporary folder.

    The trainer changes state of the process: seeds, threads, messages. All is restored at the end.
    """
    settings = settings or TrainingSettings()
    with contextlib.ExitStack() as stack:
        stack.enter_context(torch.random.fork_rng())
        stack.callback(random.setstate, random.getstate())
        stack.callback(np.random.set_state, np.random.get_state())  # noqa: NPY002
        stack.callback(torch.set_num_threads, torch.get_num_threads())
        stack.callback(logging.set_verbosity, logging.get_verbosity())
        if logging.is_progress_bar_enabled():
            stack.callback(logging.enable_progress_bar)
        torch.set_num_threads(settings.n_jobs or available_cores())
        logging.set_verbosity_error()
        logging.disable_progress_bar()
        folder = stack.enter_context(temporary_folder())
        scratch = stack.enter_context(tempfile.TemporaryFile())
        instances = Instances(sources, scratch, settings)
        model = load_model(base, settings)
        yield model, instances, _plan(base, model, instances, settings), folder


def _plan(
    base: str | Path, model: Any, instances: Instances, settings: TrainingSettings
) -> TrainingPlan:
    n_gpus = torch.cuda.device_count() if model.device.type == "cuda" else 0
    if n_gpus > 1:
        raise TrainingError(
            f"a run uses one GPU; found {n_gpus}. Choose one by setting CUDA_VISIBLE_DEVICES to its "
            "number."
        )
    n_instances = settings.n_instances or instances.natural_length
    n_steps = -(-n_instances // settings.batch_size)
    every = settings.checkpoint_every or min(500, max(1, n_steps // 10))
    return TrainingPlan(
        base=Path(base).resolve().name if Path(base).is_dir() else str(base),
        settings=replace(settings, n_instances=n_instances, checkpoint_every=every),
        sources=instances.summaries,
        n_categories=instances.n_categories,
        n_instances=n_instances,
        n_steps=n_steps,
        n_held_out=sum(each.held_out for each in instances.summaries),
        n_parameters=sum(each.numel() for each in model.parameters()),
        device=model.device.type,
        n_jobs=torch.get_num_threads(),
    )


def _open_work_folder(work: Path, plan: TrainingPlan, digest: str) -> str | None:
    """The last checkpoint of a run with the same settings and data; a new folder if there is none.

    The weights of a checkpoint continue those of the base, of which only the name is compared.
    """
    settings = asdict(plan.settings)
    del settings["n_jobs"]
    settings |= {"pairs": digest, "base": plan.base}
    content = json.loads(json.dumps(settings))
    if not (work / _PLAN).is_file():
        work.mkdir(exist_ok=True)
        with atomic_file(work / _PLAN) as file:
            file.write(json.dumps(content, indent=1).encode())
    before = json.loads((work / _PLAN).read_text(encoding="utf-8"))
    if different := [name for name, value in content.items() if before.get(name) != value]:
        raise TrainingError(
            f"{work} is a run with other {', '.join(different)}; resume it with the same ones, "
            "or start again with --force."
        )
    while checkpoint := get_last_checkpoint(work):
        # The trainer writes this file last; a process may have been killed before.
        try:
            json.loads(Path(checkpoint, "trainer_state.json").read_text(encoding="utf-8"))
            break
        except (OSError, ValueError):
            shutil.rmtree(checkpoint)
    return checkpoint


def _write_output(trainer: Any, plan: TrainingPlan, output: Path) -> TrainingReport:
    """Write the encoder, which has the best weights, with its model card and report."""
    state = trainer.state
    accuracies = {each["step"]: each[ACCURACY] for each in state.log_history if ACCURACY in each}
    best_step = state.best_global_step or plan.n_steps
    seconds = state.log_history[-1]["seconds"]
    report = TrainingReport(
        output=str(output),
        plan=plan,
        loss=[each["loss"] for each in state.log_history if "loss" in each][-1],
        accuracy_before=accuracies.get(0),
        accuracy=accuracies.get(best_step),
        best_step=best_step,
        seconds=seconds,
        instances_per_second=plan.n_instances / seconds,
        log=state.log_history,
    )
    encoder = _ENCODER_OPTIONS[plan.settings.objective].format(output.name)
    with atomic_folder(output) as partial:
        trainer.model.save_pretrained(str(partial), model_name=output.name)
        content = asdict(report) | {"output": output.name}
        (partial / "training.json").write_text(json.dumps(content, indent=1), encoding="utf-8")
        with (partial / "README.md").open("a", encoding="utf-8") as card:
            card.write(
                f"\n## Usage (ulr)\n\n    ulr classify FILE --labels LABELS --encoder {encoder}\n\n"
                f"```\n{plan}\n{report}\n```\n"
            )
    return report


@contextlib.contextmanager
def _write_errors(path: Path) -> Iterator[None]:
    """Turn errors of writing, such as a full disk, into one sentence."""
    try:
        yield
    except (OSError, SafetensorError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and "PytorchStreamWriter" not in str(error):
            raise
        raise TrainingError(
            f"{path} cannot be written: {_reason(error)}. The previous checkpoint is intact; free "
            "some space, then continue with --resume."
        ) from error


def _reason(error: Exception) -> str:
    return " ".join(str(error).split())[:200].rstrip(".")
