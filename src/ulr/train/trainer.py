"""sentence-transformers' trainers with the paper's losses: batches, validation, progress."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import torch
from datasets import Dataset
from sentence_transformers import (
    CrossEncoderTrainer,
    CrossEncoderTrainingArguments,
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
)
from sentence_transformers.base.data_collator import BaseDataCollator
from sentence_transformers.base.evaluation import BaseEvaluator
from sentence_transformers.base.sampler import DefaultBatchSampler
from sentence_transformers.cross_encoder.losses import BinaryCrossEntropyLoss
from torch import Tensor
from torch.utils.data import SequentialSampler
from transformers import PrinterCallback, TrainerCallback

from ulr.encoders import load_transformer
from ulr.errors import TrainingError
from ulr.progress import Progress
from ulr.train.instances import Instance
from ulr.train.losses import CategoryLoss, DotProductLoss, HingeLoss
from ulr.train.settings import SINGLE, TrainingPlan, TrainingSettings

ACCURACY = "eval_ranking_accuracy"
_LOGGED_STEPS = 200
_NAMES_TOGETHER = 64
_SCHEMA = pa.schema({"text": pa.string(), "categories": pa.list_(pa.string())})


def load_model(base: str | Path, settings: TrainingSettings) -> Any:
    """The model to start from; weights of a new head depend on the random state only."""
    device = "cpu" if settings.trainer_arguments.get("use_cpu") else None
    options: dict[str, Any] = {"device": device, "precision": "float32"}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(settings.random_state)
        if settings.objective == SINGLE:
            model, _ = load_transformer("CrossEncoder", base, new_outputs=1, **options)
        else:
            model, _ = load_transformer("SentenceTransformer", base, **options)
            # The losses need vectors of any length, and training uses no prompts.
            while type(model[-1]).__name__ == "Normalize":
                del model[-1]
            model.prompts = dict.fromkeys(model.prompts, "")
    for name, module in model.transformers_model.named_modules():
        if name.endswith("position_embeddings") and hasattr(module, "num_embeddings"):
            # RoBERTa numbers positions from the one after that of the padding.
            first = 0 if module.padding_idx is None else module.padding_idx + 1
            if settings.max_tokens > (limit := module.num_embeddings - first):
                raise TrainingError(
                    f"max_tokens must be at most {limit} for {base}, which has no positions for "
                    f"more; got {settings.max_tokens}."
                )
    model.max_seq_length = settings.max_tokens
    return model


def write_dataset(path: Path, windows: Iterable[Sequence[Instance]]) -> Dataset:
    """A dataset of instances in an Arrow file, which is mapped into memory."""
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, _SCHEMA) as out:
        for window in windows:
            rows = [instance._asdict() for instance in window]
            out.write_batch(pa.RecordBatch.from_pylist(rows, _SCHEMA))
    return Dataset.from_file(str(path))


def in_order(dataset: Dataset, batch_size: int, drop_last: bool, **_: Any) -> DefaultBatchSampler:
    """Batches in the order of the dataset, which is the order of training."""
    return DefaultBatchSampler(SequentialSampler(dataset), batch_size, drop_last)


def category_indices(categories: Sequence[Sequence[str]]) -> tuple[list[str], Tensor]:
    """The different categories, and those of each text as (n_texts, n) indices; -1 is padding."""
    different = {name for names in categories for name in names}
    ordered = sorted(different, key=lambda name: (len(name), name))
    numbers = {name: number for number, name in enumerate(ordered)}
    width = max(2, *map(len, categories))
    padded = [[numbers[name] for name in row] + [-1] * (width - len(row)) for row in categories]
    return ordered, torch.tensor(padded)


class DualCollator(BaseDataCollator):  # type: ignore[misc]
    """Texts and the different categories of a batch, tokenized, for a `CategoryLoss`."""

    def __call__(self, features: list[dict[str, Any]]) -> dict[str, Any]:
        """Collate instances."""
        names, indices = category_indices([each["categories"] for each in features])
        columns = {"text": [each["text"] for each in features]}
        # Names of similar length together; padded to the longest, most of them would be padding.
        for start in range(0, len(names), _NAMES_TOGETHER):
            columns[f"category{start}"] = names[start : start + _NAMES_TOGETHER]
        batch = {
            f"{column}_{key}": value
            for column, texts in columns.items()
            for key, value in self.preprocess_fn(texts).items()
        }
        return batch | {"label": indices}


class SingleCollator(BaseDataCollator):  # type: ignore[misc]
    """Pairs of category and text, for sentence-transformers' `BinaryCrossEntropyLoss`."""

    def __call__(self, features: list[dict[str, Any]]) -> dict[str, Any]:
        """Collate instances."""
        counts = [len(each["categories"]) for each in features]
        return {
            "category": [name for each in features for name in each["categories"]],
            "text": [
                each["text"] for each, n in zip(features, counts, strict=True) for _ in range(n)
            ],
            "label": torch.tensor([i == 0 for n in counts for i in range(n)]),
        }


class RankingAccuracy(BaseEvaluator):  # type: ignore[misc]
    """Share of texts whose true category scores higher than each of their false ones."""

    def __init__(self, instances: Sequence[Instance], loss: Any) -> None:
        super().__init__()
        self._texts = [each.text for each in instances]
        self._pairs = [(name, each.text) for each in instances for name in each.categories]
        self._names, self._indices = category_indices([each.categories for each in instances])
        self._loss = loss

    def __call__(self, model: Any, *_: Any, **__: Any) -> dict[str, float]:
        """Evaluate a model."""
        options = {"convert_to_tensor": True, "show_progress_bar": False}
        mask = self._indices >= 0
        scores = torch.full(mask.shape, -math.inf)
        if isinstance(self._loss, CategoryLoss):
            texts = model.encode(self._texts, **options)
            categories = model.encode(self._names, **options)[self._indices]
            scores[mask] = self._loss.compare(texts, categories).float().cpu()[mask]
        else:
            logits = model.predict(self._pairs, activation_fn=torch.nn.Identity(), **options)
            scores[mask] = logits.float().cpu()
        right = scores[:, 0] > scores[:, 1:].max(dim=1).values  # a tie is not right
        return {ACCURACY.removeprefix("eval_"): float(right.float().mean())}


class RunCallback(TrainerCallback):  # type: ignore[misc]
    """Reports the progress of a run, adds the duration to its log, and ends a run that diverges."""

    def __init__(self, plan: TrainingPlan, progress: Progress, log: Callable[[str], None]) -> None:
        self._plan, self._progress, self._log = plan, progress, log
        self._start, self._loss = time.perf_counter(), math.nan
        self.started = False

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Take the progress and the duration of earlier parts of a resumed run from its state."""
        self.started = True
        self._start -= state.log_history[-1]["seconds"] if state.log_history else 0.0
        self._progress.stage("Training", self._plan.n_instances, "instances")
        self._progress.advance(state.global_step * self._plan.settings.batch_size)

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Move the progress; the last batch may be smaller."""
        size = self._plan.settings.batch_size
        before = (state.global_step - 1) * size
        self._progress.advance(min(size, self._plan.n_instances - before))

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any], **_: Any) -> None:
        """Complete a line of the log."""
        state.log_history[-1]["seconds"] = time.perf_counter() - self._start
        self._loss = logs.get("loss", self._loss)
        if "loss" in logs and not math.isfinite(self._loss):
            raise TrainingError(
                f"the loss of step {state.global_step} is {self._loss}; start again with a "
                f"learning rate below {self._plan.settings.learning_rate:g}."
            )
        if ACCURACY in logs:
            loss = "" if math.isnan(self._loss) else f", loss {self._loss:.4f}"
            self._log(
                f"step {state.global_step:,} of {self._plan.n_steps:,}: ranking accuracy "
                f"{logs[ACCURACY]:.1%}{loss}"
            )


def loss_of(model: Any, settings: TrainingSettings) -> torch.nn.Module:
    """The loss of an objective."""
    if settings.objective == SINGLE:
        return BinaryCrossEntropyLoss(model)
    if settings.objective == "l2":
        return HingeLoss(model, settings.margin)
    return DotProductLoss(model)


def make_trainer(
    model: Any,
    plan: TrainingPlan,
    dataset: Dataset,
    held_out: Sequence[Instance],
    work: Path,
    callback: TrainerCallback,
) -> Any:
    """The trainer of a run, with its checkpoints in the folder `work`."""
    settings, loss, cuda = plan.settings, loss_of(model, plan.settings), plan.device == "cuda"
    bf16 = cuda and torch.cuda.is_bf16_supported()
    chosen: dict[str, Any] = {
        "output_dir": str(work),
        "per_device_train_batch_size": settings.batch_size // settings.parts,
        "gradient_accumulation_steps": settings.parts,
        "num_train_epochs": 1,  # the dataset repeats texts where that is wanted
        "batch_sampler": in_order,
        "learning_rate": settings.learning_rate,
        "warmup_steps": plan.n_steps // 10,
        "seed": settings.random_state,
        "use_cpu": plan.device == "cpu",
        "bf16": bf16,
        "fp16": cuda and not bf16,
        "save_steps": settings.checkpoint_every,
        "save_total_limit": 1,
        "logging_steps": -(-plan.n_steps // _LOGGED_STEPS),
        "logging_nan_inf_filter": False,
        "dataloader_pin_memory": cuda,
        "report_to": "none",
        "disable_tqdm": True,
    }
    if held_out:
        chosen |= {
            "eval_strategy": "steps",
            "eval_steps": settings.checkpoint_every,
            "eval_on_start": not any(work.glob("checkpoint-*")),
            "load_best_model_at_end": True,
            "metric_for_best_model": ACCURACY,
        }
    single = settings.objective == SINGLE
    arguments = CrossEncoderTrainingArguments if single else SentenceTransformerTrainingArguments
    try:
        args = arguments(**chosen | dict(settings.trainer_arguments))
    except (TypeError, ValueError) as error:
        raise TrainingError(f"the trainer refuses its arguments: {error}.") from None
    card = model.model_card_data
    card.widget = [{}]  # otherwise the trainer shows texts of the dataset in the card
    trainer = (CrossEncoderTrainer if single else SentenceTransformerTrainer)(
        model=model,
        args=args,
        train_dataset=dataset,
        loss=loss,
        evaluator=RankingAccuracy(held_out, loss) if held_out else None,
        data_collator=(SingleCollator if single else DualCollator)(model.preprocess),
        callbacks=[callback],
    )
    card.widget = []
    for each in card.train_datasets:
        each |= {"examples": None, "examples_table": ""}
    trainer.remove_callback(PrinterCallback)
    return trainer
