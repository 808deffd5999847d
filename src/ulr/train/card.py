"""Model card and loss curve of a trained encoder."""

from __future__ import annotations

from itertools import accumulate
from pathlib import Path

from ulr.plots import new_figure, write_figure
from ulr.train.checkpoints import read_log
from ulr.train.losses import SINGLE
from ulr.train.settings import TrainingReport, TrainingSettings, duration

_SMOOTHING = 0.95
_DUAL = (
    "A dual encoder: texts and categories are encoded by the same transformer with mean pooling, "
    "and compared by "
)
_KINDS = {
    "dot": f"{_DUAL}cosine. Trained with the dot product and binary cross entropy.",
    "l2": f"{_DUAL}squared distance. Trained with the contrastive hinge loss.",
    SINGLE: "A single encoder: it scores a pair of category and text, `[CLS] category [SEP] text "
    "[SEP]`. Trained with binary cross entropy.",
}
_OPTIONS = {"dot": "hf:{}", "l2": "hf:{} --distance l2", SINGLE: "cross:{}"}
_DUAL_CODE = """\
from transformers import AutoModel, AutoTokenizer

tokenizer, model = AutoTokenizer.from_pretrained("{name}"), AutoModel.from_pretrained("{name}")
inputs = tokenizer(texts, padding=True, truncation=True, max_length={tokens}, return_tensors="pt")
mask = inputs["attention_mask"].unsqueeze(-1)
vectors = (model(**inputs).last_hidden_state * mask).sum(1) / mask.sum(1)"""
_SINGLE_CODE = """\
from transformers import AutoModelForSequenceClassification, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("{name}")
model = AutoModelForSequenceClassification.from_pretrained("{name}")
inputs = tokenizer(categories, texts, padding=True, truncation="only_second",
                   max_length={tokens}, return_tensors="pt")
scores = model(**inputs).logits[:, 0]"""


def write_card(path: Path, name: str, report: TrainingReport) -> None:
    """Write the model card of an encoder called `name`."""
    settings = report.plan.settings
    single = settings.objective == SINGLE
    code = (_SINGLE_CODE if single else _DUAL_CODE).format(name=name, tokens=settings.max_tokens)
    task = "text-classification" if single else "feature-extraction"
    tags = "tags:\n- text-classification\n- zero-shot-classification\n- ulr"
    encoder = _OPTIONS[settings.objective].format(name)
    parts = [
        f"---\nlibrary_name: transformers\npipeline_tag: {task}\n{tags}\n---",
        f"# {name}",
        _KINDS[settings.objective],
        f"    ulr classify FILE --labels LABELS --encoder {encoder} -o OUT.csv",
        "With transformers alone:",
        f"```python\n{code}\n```",
        _length(settings),
        "## Data",
        _data(report),
        "## Settings",
        _settings(report),
        "## Results",
        _results(report),
        "![loss](loss.png)",
    ]
    path.write_text("\n\n".join(part for part in parts if part) + "\n", encoding="utf-8")


def _length(settings: TrainingSettings) -> str:
    if settings.max_tokens == 128:
        return ""
    return (
        f"It was trained on the first {settings.max_tokens} tokens of a text; `ulr` reads 128 "
        f"unless the encoder is created with `max_tokens={settings.max_tokens}` in Python."
    )


def _data(report: TrainingReport) -> str:
    lines = [
        "| files | texts | categories | share | negatives | malformed rows |",
        "|---|---|---|---|---|---|",
    ]
    for each in report.plan.sources:
        files = each.files[0] if len(each.files) == 1 else f"{each.files[0]} … {each.files[-1]}"
        lines.append(
            f"| {files} | {each.texts:,} | {each.categories:,} | {each.share:.0%} | "
            f"{each.negatives} | {each.malformed:,} |"
        )
    return "\n".join(lines)


def _settings(report: TrainingReport) -> str:
    plan, settings = report.plan, report.plan.settings
    margin = f", margin {settings.margin:g}" if settings.objective == "l2" else ""
    parts = f", in {settings.parts} parts" if settings.parts > 1 else ""
    rows = {
        "base": f"{plan.base} ({plan.n_parameters / 1e6:.1f}M weights, fingerprint "
        f"{plan.base_fingerprint})",
        "objective": f"{settings.objective}{margin}",
        "instances": f"{report.n_instances:,}, each with up to {settings.n_negatives} negatives",
        "batch": f"{settings.batch_size}{parts}",
        "tokens": f"{settings.max_tokens}",
        "optimizer": f"AdamW, weight decay {settings.weight_decay:g}, gradients clipped at "
        f"{settings.max_grad_norm:g}",
        "learning rate": f"up to {settings.learning_rate:g} over {settings.warmup:.0%} of "
        f"{plan.n_steps:,} steps, then down to 0, both linearly",
        "seed": f"{settings.random_state}",
        "precision": f"{plan.precision} on {plan.device}",
    }
    return "\n".join(["| | |", "|---|---|", *(f"| {k} | {v} |" for k, v in rows.items())])


def _results(report: TrainingReport) -> str:
    lines = [
        f"- {report.n_instances:,} instances in {duration(report.seconds)}, "
        f"{report.instances_per_second:.1f} per second",
        f"- smoothed loss after the last step: {report.loss:.4f}",
    ]
    if report.accuracy is not None and report.accuracy_before is not None:
        lines.insert(
            0,
            f"- ranking accuracy among {report.plan.n_ranked} categories, on "
            f"{report.plan.n_held_out:,} held-out texts: {report.accuracy:.1%} (base: "
            f"{report.accuracy_before:.1%}), after step {report.best_step:,}",
        )
    return "\n".join(lines)


def write_curve(log: Path, picture: Path) -> None:
    """Plot the loss of every step, smoothed, and the ranking accuracy of every validation."""
    lines = read_log(log)
    steps = [line for line in lines if "loss" in line]
    validations = [line for line in lines if "validation_accuracy" in line]
    losses = [line["loss"] for line in steps]
    smooth = accumulate(losses, lambda before, now: _SMOOTHING * before + (1 - _SMOOTHING) * now)
    figure = new_figure(7.0, 5.0 if validations else 3.5)
    panels = figure.subplots(2 if validations else 1, 1, sharex=True, squeeze=False)[:, 0]
    numbers = [line["step"] for line in steps]
    panels[0].plot(numbers, losses, color="0.8", linewidth=0.7, label="each step")
    panels[0].plot(numbers, list(smooth), color="tab:blue", linewidth=1.5, label="smoothed")
    panels[0].set_ylabel("loss")
    panels[0].legend(frameon=False)
    if validations:
        at = [line["step"] for line in validations]
        accuracies = [100 * line["validation_accuracy"] for line in validations]
        panels[1].plot(at, accuracies, color="tab:orange", marker="o", markersize=3)
        panels[1].set_ylabel("ranking accuracy, %")
    panels[-1].set_xlabel("step")
    write_figure(figure, picture)
