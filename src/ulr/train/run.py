"""A training run from its first step to an encoder in a folder, and from a checkpoint on."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from ulr.encoders.pretrained import require_torch
from ulr.errors import TrainingError
from ulr.files import refuse_existing, whole_file, whole_folder
from ulr.plots import new_figure
from ulr.refine.threads import available_cores
from ulr.train.batches import Batches
from ulr.train.card import write_card
from ulr.train.checkpoints import (
    load_weights,
    read_state,
    refuse_little_room,
    room_on_disk,
)
from ulr.train.curve import write_curve
from ulr.train.instances import Instances, open_instances
from ulr.train.log import Log
from ulr.train.loop import Loop
from ulr.train.models import SINGLE, DualEncoder, Learner, SingleEncoder
from ulr.train.settings import OnPlan, OnProgress, Plan, Settings, TrainingReport
from ulr.train.sources import Source

_PLAN, _LOG, _LAST, _BEST = "plan.json", "log.jsonl", "checkpoint", "best"
_BYTES_A_WEIGHT = 4 * (2 * 3 + 2)  # two checkpoints with moments at once, and two of the best


def train(
    base: str | Path,
    sources: Sequence[Source],
    output: str | Path,
    settings: Settings | None = None,
    *,
    resume: bool = False,
    force: bool = False,
    on_plan: OnPlan | None = None,
    on_progress: OnProgress | None = None,
) -> TrainingReport:
    """Fine-tune an encoder on texts and the categories they come with.

    While it runs, its checkpoints are in the folder ``OUTPUT.training``; `output` appears, whole,
    at the end, and that folder goes.

    Parameters
    ----------
    base
        The model to begin with: a folder, or a name on the Hugging Face hub.
    sources
        Where texts and categories come from.
    output
        Folder for the encoder.
    settings
        How it is trained.
    resume
        Go on from the last checkpoint of a run into the same output, if there is one.
    force
        Replace what is there already.
    on_plan
        Called before the first step.
    on_progress
        Called after every step.

    Returns
    -------
    How it went. The weights are those of the best validation.
    """
    require_torch()
    new_figure()  # the curve comes last, and must not fail then
    output = Path(output)
    work = output.with_name(f"{output.name}.training")
    refuse_existing(output, force, TrainingError, "--force")
    _refuse_unfinished(work, resume, force)
    settings = settings or Settings()
    with prepared(base, sources, settings) as (learner, instances, plan):
        refuse_little_room(output.parent, _BYTES_A_WEIGHT * plan.n_parameters / 1e6)
        if on_plan is not None:
            on_plan(plan)
        _begin(work, plan, instances, resume)
        with Log(work / _LOG) as log, _random_numbers_of_its_own(plan):
            loop = Loop(learner, instances, plan, log, work / _LAST, work / _BEST)
            if (work / _LAST).is_dir():
                loop.resume()
            loop.run(on_progress)
        with room_on_disk(output):
            report = _finish(work, output, learner, loop, plan)
    shutil.rmtree(work)
    return report


@contextlib.contextmanager
def prepared(
    base: str | Path, sources: Sequence[Source], settings: Settings
) -> Iterator[tuple[Learner, Instances, Plan]]:
    """The model, the instances and the plan of a run, with PyTorch's threads set for it."""
    import torch

    before = torch.get_num_threads()
    threads = settings.threads or available_cores()
    torch.set_num_threads(threads)
    try:
        with open_instances(
            sources,
            seed=settings.seed,
            n_negatives=settings.n_negatives,
            n_held_out=settings.n_held_out,
            as_words=settings.as_words,
        ) as instances:
            n_instances = settings.n_instances or instances.natural_length
            settled = settings.settled(n_instances)
            learner = load_learner(base, settled)
            yield learner, instances, _plan(base, learner, instances, settled, threads)
    finally:
        torch.set_num_threads(before)


def load_learner(base: str | Path, settings: Settings) -> Learner:
    """The model to train."""
    common: dict[str, Any] = {
        "max_tokens": settings.max_tokens,
        "device": settings.device,
        "seed": settings.seed,
    }
    if settings.objective == SINGLE:
        return SingleEncoder(base, **common)
    return DualEncoder(base, objective=settings.objective, margin=settings.margin, **common)


def _plan(
    base: str | Path, learner: Learner, instances: Instances, settings: Settings, threads: int
) -> Plan:
    import torch

    precision = settings.precision or "float32"
    if settings.precision is None and learner.device.type == "cuda":
        precision = "bfloat16" if torch.cuda.is_bf16_supported() else "float16"
    local = Path(base).expanduser().is_dir()
    return Plan(
        base=Path(base).expanduser().resolve().name if local else str(base),
        base_sha256=learner.base_sha256,
        settings=settings,
        sources=instances.figures,
        categories=len(instances.categories),
        n_steps=len(Batches(instances, settings.n_instances or 1, settings.batch_size)),
        n_held_out=instances.n_held_out,
        n_parameters=sum(each.numel() for each in learner.model.parameters()),
        device=str(learner.device),
        precision=precision,
        threads=threads,
    )


def _refuse_unfinished(work: Path, resume: bool, force: bool) -> None:
    if work.exists() and not resume:
        if not force:
            raise TrainingError(
                f"{work} holds an unfinished run; go on with --resume, or begin anew with --force."
            )
        shutil.rmtree(work)


def _begin(work: Path, plan: Plan, instances: Instances, resume: bool) -> None:
    """Make the folder of a run, or check that it is of this one."""
    kept = {"plan": replace(plan, threads=0).as_dict(), "data": instances.digest}
    kept = json.loads(json.dumps(kept))
    if resume and (work / _PLAN).is_file():
        before = json.loads((work / _PLAN).read_text(encoding="utf-8"))
        if different := _differences(before, kept):
            raise TrainingError(
                f"{work} is a run with other {', '.join(different)}; resume it as it was begun, "
                "or begin anew with --force."
            )
        return
    with room_on_disk(work):
        work.mkdir(exist_ok=True)
        with whole_file(work / _PLAN) as file:
            file.write(json.dumps(kept, indent=1).encode())


def _differences(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """What is not as it was, of everything that a step depends on."""
    different = [] if before["data"] == now["data"] else ["pairs"]
    for name, value in now["plan"]["settings"].items():
        if before["plan"]["settings"].get(name) != value:
            different.append(name)
    return different + [
        name for name in ("base_sha256", "precision") if before["plan"][name] != now["plan"][name]
    ]


def _finish(work: Path, output: Path, learner: Learner, loop: Loop, plan: Plan) -> TrainingReport:
    """Write the encoder with the best weights, its card, log and curve."""
    best_step = plan.n_steps
    if (work / _BEST).is_dir():
        load_weights(work / _BEST, learner.model)
        best_step = int(read_state(work / _BEST)["step"])
    report = TrainingReport(
        output=str(output),
        plan=plan,
        n_instances=loop.n_instances,
        loss=loop.last_loss,
        accuracy_before=loop.accuracy_before,
        accuracy=loop.best_accuracy,
        best_step=best_step,
        seconds=loop.seconds,
        seconds_of=dict(loop.seconds_of),
    )
    with whole_folder(output) as partial:
        learner.save(partial)
        shutil.copyfile(work / _LOG, partial / "training_log.jsonl")
        write_curve(partial / "training_log.jsonl", partial / "loss.png")
        (partial / "training.json").write_text(
            json.dumps(asdict(report) | {"output": output.name}, indent=1), encoding="utf-8"
        )
        write_card(partial / "README.md", output.name, report)
    return report


@contextlib.contextmanager
def _random_numbers_of_its_own(plan: Plan) -> Iterator[None]:
    """Seed PyTorch's random numbers, and leave them afterwards as they were found."""
    import torch

    devices = list(range(torch.cuda.device_count())) if plan.device.startswith("cuda") else []
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed(plan.settings.seed)
        yield
