"""The model card of a trained encoder: what it is, what it learnt from, and its figures."""

from __future__ import annotations

from pathlib import Path

from ulr.train.models import SINGLE
from ulr.train.settings import Settings, TrainingReport, duration

_KINDS = {
    "dot": "A dual encoder: texts and categories go through the same transformer, the last hidden "
    "states of their tokens are averaged, and the cosine of the two vectors says how well a "
    "category fits. Trained with the dot product and binary cross entropy.",
    "l2": "A dual encoder: texts and categories go through the same transformer, the last hidden "
    "states of their tokens are averaged, and the squared distance of the two vectors says how "
    "well a category fits. Trained with the contrastive hinge loss.",
    SINGLE: "A single encoder: a category and a text are read together, as `[CLS] category [SEP] "
    "text [SEP]`, and the one output says how well the category fits. Trained with binary cross "
    "entropy.",
}
_USES = {
    "dot": ("hf", ""),
    "l2": ("hf", " --distance l2"),
    SINGLE: ("cross", ""),
}
_DUAL_CODE = """\
from transformers import AutoModel, AutoTokenizer

tokenizer, model = AutoTokenizer.from_pretrained("{name}"), AutoModel.from_pretrained("{name}")
given = tokenizer(texts, padding=True, truncation=True, max_length={tokens}, return_tensors="pt")
mask = given["attention_mask"].unsqueeze(-1)
vectors = (model(**given).last_hidden_state * mask).sum(1) / mask.sum(1)"""
_SINGLE_CODE = """\
from transformers import AutoModelForSequenceClassification, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("{name}")
model = AutoModelForSequenceClassification.from_pretrained("{name}")
given = tokenizer(categories, texts, padding=True, truncation="only_second",
                  max_length={tokens}, return_tensors="pt")
scores = model(**given).logits[:, 0]"""


def write_card(path: Path, name: str, report: TrainingReport) -> None:
    """Write the card of an encoder that is called `name`."""
    settings = report.plan.settings
    code = _SINGLE_CODE if settings.objective == SINGLE else _DUAL_CODE
    prefix, more = _USES[settings.objective]
    parts = [
        _front_matter(settings),
        f"# {name}",
        _KINDS[settings.objective],
        f"    ulr classify FILE --labels LABELS --encoder {prefix}:{name}{more} -o OUT.csv",
        "With transformers alone:",
        f"```python\n{code.format(name=name, tokens=settings.max_tokens)}\n```",
        _length(settings),
        "## Data",
        _data(report),
        "## Settings",
        _settings(report),
        "## Figures",
        _figures(report),
        "![loss](loss.png)",
    ]
    path.write_text("\n\n".join(part for part in parts if part) + "\n", encoding="utf-8")


def _front_matter(settings: Settings) -> str:
    task = "text-classification" if settings.objective == SINGLE else "feature-extraction"
    tags = "tags:\n- text-classification\n- zero-shot-classification\n- ulr"
    return f"---\nlibrary_name: transformers\npipeline_tag: {task}\n{tags}\n---"


def _length(settings: Settings) -> str:
    if settings.max_tokens == 128:
        return ""
    return (
        f"It was trained on the first {settings.max_tokens} tokens of a text; `ulr` reads 128 "
        f"unless `max_tokens={settings.max_tokens}` is asked for in Python."
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
    rows = {
        "base": f"{plan.base} ({plan.n_parameters / 1e6:.1f}M weights, sha256 "
        f"{plan.base_sha256[:16]}…)",
        "objective": settings.objective
        + (f", margin {settings.margin:g}" if settings.objective == "l2" else ""),
        "instances": f"{report.n_instances:,}, each with up to {settings.n_negatives} negatives",
        "batch": f"{settings.batch_size}, in {settings.parts} parts"
        if settings.parts > 1
        else f"{settings.batch_size}",
        "tokens": f"{settings.max_tokens}",
        "optimizer": f"AdamW, weight decay {settings.weight_decay:g}, gradients clipped at "
        f"{settings.clip:g}",
        "rate": f"up to {settings.peak_rate:g} over {settings.warmup:.0%} of {plan.n_steps:,} "
        "steps, then down to 0, both linearly",
        "seed": f"{settings.seed}",
        "precision": f"{plan.precision} on {plan.device}",
    }
    return "\n".join(["| | |", "|---|---|", *(f"| {k} | {v} |" for k, v in rows.items())])


def _figures(report: TrainingReport) -> str:
    lines = [
        f"- {report.n_instances:,} instances in {duration(report.seconds)}, "
        f"{report.instances_per_second:.1f} a second",
        f"- loss over the last steps: {report.loss:.4f}",
    ]
    if report.accuracy is not None and report.accuracy_before is not None:
        lines.insert(
            0,
            f"- ranking accuracy among {report.plan.n_ranked} categories, on "
            f"{report.plan.n_held_out:,} texts held out: {report.accuracy:.1%} (the base: "
            f"{report.accuracy_before:.1%}), after step {report.best_step:,}",
        )
    return "\n".join(lines)
