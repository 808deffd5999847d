"""Label Studio: tasks with suggested labels, and the labels that people chose."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

from ulr.integrations.corrections import Corrections, read_json, write_json
from ulr.integrations.labelled import LabelledTexts

_TEXT, _LABEL = "text", "label"  # names of the two tags of the labelling interface


def label_studio_config(labelled: LabelledTexts) -> str:
    """The labelling interface of a project, to paste under Settings > Labeling Interface > Code."""
    choices = "\n".join(f"    <Choice value={quoteattr(name)}/>" for name in labelled.names)
    kind = "multiple" if labelled.several else "single"
    return (
        f'<View>\n  <Text name="{_TEXT}" value="${_TEXT}"/>\n'
        f'  <Choices name="{_LABEL}" toName="{_TEXT}" choice="{kind}">\n{choices}\n'
        "  </Choices>\n</View>\n"
    )


def to_label_studio(labelled: LabelledTexts, path: str | Path, *, overwrite: bool = False) -> None:
    """Write texts as tasks whose labels are predictions, to import into a project.

    The score of a prediction is the confidence, by which tasks can be ordered.
    """
    tasks = [_task(labelled, row) for row in range(len(labelled.texts))]
    write_json(path, tasks, lines=False, overwrite=overwrite)


def _task(labelled: LabelledTexts, row: int) -> dict[str, Any]:
    task: dict[str, Any] = {"data": {_TEXT: labelled.texts[row]}}
    if labels := labelled.labels[row]:
        chosen = {"type": "choices", "from_name": _LABEL, "to_name": _TEXT}
        task["predictions"] = [
            {
                "model_version": labelled.model_version,
                "score": labelled.confidence[row],
                "result": [{**chosen, "value": {"choices": list(labels)}}],
            }
        ]
    return task


def from_label_studio(path: str | Path, *, text: str = _TEXT, label: str = _LABEL) -> Corrections:
    """Read an export of a project, in the format JSON or JSON-MIN.

    Parameters
    ----------
    path
        The export.
    text
        The key of the text in the data of a task.
    label
        The name of the tag of the choices.
    """
    answers = ((_data(task)[text], _choices(task, label)) for task in read_json(path))
    return Corrections.of(answers, str(path))


def _data(task: Mapping[str, Any]) -> Any:
    """The data of a task, which are beside the labels in the format JSON-MIN."""
    return task.get("data", task)


def _choices(task: Mapping[str, Any], label: str) -> Iterator[str]:
    """What people chose for a task; predictions and annotations that were skipped do not count."""
    if "data" not in task:  # JSON-MIN: a name, or several
        chosen = task.get(label) or {"choices": []}
        yield from [chosen] if isinstance(chosen, str) else chosen["choices"]
        return
    for annotation in task.get("annotations", []):
        for result in annotation.get("result", []):
            is_own = result.get("from_name") == label and result.get("type") == "choices"
            if is_own and not annotation.get("was_cancelled"):
                yield from result["value"]["choices"]
