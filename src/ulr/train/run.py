"""A training run: from a base model or a checkpoint to an encoder in a folder."""

from __future__ import annotations

import contextlib
import json
import math
import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from ulr.cores import available_cores
from ulr.encoders.pretrained import require_torch
from ulr.errors import TrainingError
from ulr.files import atomic_file, atomic_folder, refuse_existing
from ulr.plots import new_figure
from ulr.train.card import write_card, write_curve
from ulr.train.checkpoints import TrainingLog, check_disk_space, load_weights, write_errors
from ulr.train.instances import Batches, Instances, open_instances
from ulr.train.loop import Trainer, TrainingLoop
from ulr.train.losses import SINGLE
from ulr.train.models import DualEncoder, SingleEncoder, TrainableModel
from ulr.train.settings import (
    OnPlan,
    OnProgress,
    TrainingPlan,
    TrainingReport,
    TrainingSettings,
)
from ulr.train.sources import PairSource

_PLAN, _LOG, _LAST, _BEST = "plan.json", "log.jsonl", "checkpoint", "best"
_BYTES_PER_WEIGHT = 4 * (2 * 3 + 2)  # two checkpoints with moments, and two of the best weights
_TIMED_STEPS = 6


def train(
    base: str | Path,
    sources: Sequence[PairSource],
    output: str | Path,
    settings: TrainingSettings | None = None,
    *,
    resume: bool = False,
    force: bool = False,
    on_plan: OnPlan | None = None,
    on_progress: OnProgress | None = None,
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
    on_plan
        Called before the first step.
    on_progress
        Called after every step. An exception that it raises ends the run, which can be resumed.

    Returns
    -------
    TrainingReport
        The saved weights are those of the best validation.
    """
    require_torch()
    new_figure()  # fails now if Matplotlib is missing, not after the training
    output = Path(output)
    work = output.with_name(f"{output.name}.training")
    refuse_existing(output, force, TrainingError, "--force")
    if work.exists() and not resume:
        if not force:
            raise TrainingError(
                f"{work} holds an unfinished run; continue it with --resume, or start again with "
                "--force."
            )
        shutil.rmtree(work)
    with prepared(base, sources, settings or TrainingSettings()) as (learner, instances, plan):
        check_disk_space(output.parent, _BYTES_PER_WEIGHT * plan.n_parameters / 1e6)
        if on_plan is not None:
            on_plan(plan)
        _open_work_folder(work, plan, instances, resume)
        with TrainingLog(work / _LOG) as log, _own_random_numbers(plan):
            loop = TrainingLoop(learner, instances, plan, log, work / _LAST, work / _BEST)
            if (work / _LAST).is_dir():
                loop.resume()
            loop.run(on_progress)
        with write_errors(output):
            report = _write_output(work, output, learner, loop, plan)
    shutil.rmtree(work)
    return report


def estimate(
    base: str | Path, sources: Sequence[PairSource], settings: TrainingSettings | None = None
) -> TrainingPlan:
    """The plan of `train` with its estimated duration, from a few steps; writes nothing.

    Parameters
    ----------
    base, sources, settings
        As for `train`.
    """
    with prepared(base, sources, settings or TrainingSettings()) as (learner, instances, plan):
        n_instances = plan.settings.n_instances or 1
        window = Batches(instances, n_instances, plan.settings.batch_size).sorted_window(0)
        n_timed = min(_TIMED_STEPS, len(window))  # with short, medium and long texts
        timed = [window[(2 * i + 1) * len(window) // (2 * n_timed)] for i in range(n_timed)]
        trainer = Trainer(learner, plan)
        trainer.step(timed[0], 0.0)  # warm up
        start = time.perf_counter()
        for batch in timed:
            trainer.step(batch, 0.0)
        per_text = (time.perf_counter() - start) / sum(map(len, timed))
        # The forward pass of a validation takes about a third of a step.
        n_validations = 1 + -(-plan.n_steps // (plan.settings.validate_every or 1))
        n_texts = n_instances + plan.n_held_out * n_validations / 3
        return replace(plan, seconds=per_text * n_texts)


@contextlib.contextmanager
def prepared(
    base: str | Path, sources: Sequence[PairSource], settings: TrainingSettings
) -> Iterator[tuple[TrainableModel, Instances, TrainingPlan]]:
    """The model, the instances and the plan of a run; sets the threads of PyTorch meanwhile."""
    import torch

    before = torch.get_num_threads()
    n_jobs = settings.n_jobs or available_cores()
    torch.set_num_threads(n_jobs)
    names = ("random_state", "n_negatives", "n_held_out", "as_words")
    try:
        with open_instances(
            sources, **{name: getattr(settings, name) for name in names}
        ) as instances:
            resolved = settings.resolved(settings.n_instances or instances.natural_length)
            learner = _load_model(base, resolved)
            yield learner, instances, _plan(base, learner, instances, resolved, n_jobs)
    finally:
        torch.set_num_threads(before)


def _load_model(base: str | Path, settings: TrainingSettings) -> TrainableModel:
    common: dict[str, Any] = {
        name: getattr(settings, name) for name in ("max_tokens", "device", "random_state")
    }
    if settings.objective == SINGLE:
        return SingleEncoder(base, **common)
    return DualEncoder(base, objective=settings.objective, margin=settings.margin, **common)


def _plan(
    base: str | Path,
    learner: TrainableModel,
    instances: Instances,
    settings: TrainingSettings,
    n_jobs: int,
) -> TrainingPlan:
    import torch

    precision = settings.precision or "float32"
    if settings.precision is None and learner.device.type == "cuda":
        precision = "bfloat16" if torch.cuda.is_bf16_supported() else "float16"
    folder = Path(base).expanduser()
    return TrainingPlan(
        base=folder.resolve().name if folder.is_dir() else str(base),
        base_fingerprint=learner.fingerprint,
        settings=settings,
        sources=instances.summaries,
        categories=len(instances.categories),
        n_steps=len(Batches(instances, settings.n_instances or 1, settings.batch_size)),
        n_held_out=instances.n_held_out,
        n_parameters=sum(each.numel() for each in learner.model.parameters()),
        device=str(learner.device),
        precision=precision,
        n_jobs=n_jobs,
    )


def _open_work_folder(work: Path, plan: TrainingPlan, instances: Instances, resume: bool) -> None:
    """Create the folder of a run; refuse to resume a run with other settings or data."""
    content = {"plan": replace(plan, n_jobs=0).as_dict(), "data": instances.digest}
    content = json.loads(json.dumps(content))
    if resume and (work / _PLAN).is_file():
        before = json.loads((work / _PLAN).read_text(encoding="utf-8"))
        if different := _differences(before, content):
            raise TrainingError(
                f"{work} is a run with other {', '.join(different)}; resume it with the same ones, "
                "or start again with --force."
            )
        return
    with write_errors(work):
        work.mkdir(exist_ok=True)
        with atomic_file(work / _PLAN) as file:
            file.write(json.dumps(content, indent=1).encode())


def _differences(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """Names of the differences that change the result of a step."""
    different = [] if before["data"] == now["data"] else ["pairs"]
    for name, value in now["plan"]["settings"].items():
        if name != "n_jobs" and before["plan"]["settings"].get(name) != value:
            different.append(name)
    return different + [
        name
        for name in ("base_fingerprint", "precision")
        if before["plan"][name] != now["plan"][name]
    ]


def _write_output(
    work: Path, output: Path, learner: TrainableModel, loop: TrainingLoop, plan: TrainingPlan
) -> TrainingReport:
    """Write the encoder with the best weights, its model card, log and loss curve."""
    state, best_step = loop.state, plan.n_steps
    if (work / _BEST).is_dir():
        best_step = int(load_weights(work / _BEST, learner.model)["step"])
    report = TrainingReport(
        output=str(output),
        plan=plan,
        n_instances=state.n_instances,
        loss=math.nan if state.loss is None else state.loss,
        accuracy_before=state.accuracy_before,
        accuracy=state.best_accuracy,
        best_step=best_step,
        seconds=loop.seconds,
        phase_seconds=loop.phase_seconds,
    )
    with atomic_folder(output) as partial:
        learner.save(partial)
        shutil.copyfile(work / _LOG, partial / "training_log.jsonl")
        write_curve(partial / "training_log.jsonl", partial / "loss.png")
        (partial / "training.json").write_text(
            json.dumps(asdict(report) | {"output": output.name}, indent=1), encoding="utf-8"
        )
        write_card(partial / "README.md", output.name, report)
    return report


@contextlib.contextmanager
def _own_random_numbers(plan: TrainingPlan) -> Iterator[None]:
    """Seed the random number generators of PyTorch, and restore them afterwards."""
    import torch

    devices = list(range(torch.cuda.device_count())) if plan.device.startswith("cuda") else []
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed(plan.settings.random_state)
        yield
