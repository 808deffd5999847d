"""Names of an adviser for groups of documents that no label explains."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ulr.advisers import Interview, ask_for_name
from ulr.classifier.encoding import EncodedTexts
from ulr.classifier.model import Fitted
from ulr.progress import NO_PROGRESS, Progress

if TYPE_CHECKING:
    from ulr.classifier.suggestions import MissingLabel

_SHOWN = 4  # documents of a group that a question shows


def with_advised_names(
    missing: tuple[MissingLabel, ...],
    fitted: Fitted,
    documents: EncodedTexts | Sequence[str] | None = None,
    progress: Progress = NO_PROGRESS,
) -> tuple[MissingLabel, ...]:
    """The groups with the names that the adviser of the settings gives them, one question each."""
    settings = fitted.settings
    if settings.adviser is None or not missing:
        return missing
    given = fitted.documents if documents is None else documents
    texts = given.texts if isinstance(given, EncodedTexts) else given or ()
    progress.stage("Asking the adviser", len(missing), "questions")
    questions = [
        ask_for_name(
            settings.label_set, group.words, [texts[row] for row in group.documents[:_SHOWN]]
        )
        for group in missing
    ]
    names = Interview(settings.adviser, settings.adviser_budget).ask(questions, progress)
    taken = {name.casefold() for name in settings.label_set.names}
    found = []
    for group, name in zip(missing, names, strict=True):
        is_new = name is not None and name.casefold() not in taken
        taken.add(str(name).casefold())
        found.append(replace(group, advised_name=name if is_new else None))
    return tuple(found)
