"""The questions that an adviser is asked, and the strict parser of its answers."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ulr.labels import Label, LabelSet

DOCUMENT_CHARACTERS = 400  # in a question; some 100 tokens, as many as `minilm` reads
_SAMPLE_CHARACTERS = 150
_MOST_PHRASES, _PHRASE_CHARACTERS = 5, 60
_decoder = json.JSONDecoder()


@dataclass(frozen=True)
class Question:
    """A prompt, the JSON schema of its answer, and what reads the object that was answered."""

    prompt: str
    schema: dict[str, Any]
    read: Callable[[dict[str, Any]], Any]  # None for what is not an answer

    def parse(self, answer: str) -> Any:
        """What an answer says; None if no JSON object in it answers the question.

        The object may stand in other text, such as a fence of Markdown, or after what a model
        thinks, which may have objects too: the last one counts.
        """
        found, place = None, answer.find("{")
        while place >= 0:
            end = place + 1
            with contextlib.suppress(ValueError, RecursionError):
                value, end = _decoder.raw_decode(answer, place)
                said = self.read(value)
                found = found if said is None else said
            place = answer.find("{", end)
        return found


def ask_for_label(labels: LabelSet, text: str) -> Question:
    """Ask which label a document has; the answer is its position."""
    places = {_folded(name): place for place, name in enumerate(labels.names)}

    def read(value: dict[str, Any]) -> int | None:
        label = value.get("label")
        return places.get(_folded(label)) if isinstance(label, str) else None

    # A small model was right on 4 of 5 headlines that it got wrong with the categories first.
    *others, last = map(_described, labels)
    prompt = (
        f"Document:\n{excerpt(text, DOCUMENT_CHARACTERS)}\n\n"
        f"What is the document about: {', '.join(others)} or {last}? "
        'Answer with the name of one category, as JSON: {"label": "…"}'
    )
    return Question(prompt, _schema(label={"type": "string", "enum": list(labels.names)}), read)


def ask_for_phrases(labels: LabelSet, label: Label, texts: Sequence[str]) -> Question:
    """Ask for phrases and a description of a label, which become its further phrases."""
    prompt = (
        f"{_collection(texts)}They are sorted into the categories: {'; '.join(labels.names)}.\n\n"
        f'Describe the category "{label.name}" so that its documents can be told from those of the '
        "other categories. Answer as JSON with one short sentence and three to five phrases of one to "
        'three words: {"description": "…", "phrases": ["…", "…", "…"]}'
    )
    return Question(prompt, _PHRASES, _read_phrases)


def ask_for_name(labels: LabelSet, words: Sequence[str], texts: Sequence[str]) -> Question:
    """Ask for the name of a group of documents that no label explains; the answer is a text."""

    def read(value: dict[str, Any]) -> str | None:
        name = value.get("name")
        names = _clean([name]) if isinstance(name, str) else []
        return names[0] if names and _folded(names[0]) not in map(_folded, labels.names) else None

    prompt = (
        f"{_collection(texts)}Words that are frequent in them: {', '.join(words)}.\n"
        f"They fit none of the categories: {'; '.join(labels.names)}.\n\n"
        "Name the category that these documents have in common, in one to three words, as JSON: "
        '{"name": "…"}'
    )
    return Question(prompt, _schema(name={"type": "string"}), read)


def excerpt(text: str, most: int) -> str:
    """The beginning of a text on one line, cut between words."""
    text = " ".join(text[: 4 * most].split())
    return text if len(text) <= most else text[:most].rpartition(" ")[0] or text[:most]


def _collection(texts: Sequence[str]) -> str:
    shown = "\n".join(f"- {excerpt(text, _SAMPLE_CHARACTERS)}" for text in texts)
    return f"Some documents of a collection:\n{shown}\n\n"


def _described(label: Label) -> str:
    others = [phrase for phrase in label.phrases if phrase != label.name]
    return f"{label.name} ({'; '.join(others)})" if others else label.name


def _schema(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


_PHRASES = _schema(
    description={"type": "string"},
    phrases={"type": "array", "items": {"type": "string"}, "maxItems": _MOST_PHRASES},
)


def _read_phrases(value: dict[str, Any]) -> tuple[str, ...] | None:
    description, phrases = value.get("description"), value.get("phrases")
    if not isinstance(phrases, list) or not all(isinstance(each, str) for each in phrases):
        return None
    found = [each for each in _clean(phrases) if len(each) <= _PHRASE_CHARACTERS][:_MOST_PHRASES]
    if isinstance(description, str):
        found += [excerpt(each, DOCUMENT_CHARACTERS) for each in _clean([description])]
    return tuple(dict.fromkeys(found)) or None


def _clean(texts: Sequence[str]) -> list[str]:
    """Texts with single blanks, without empty ones and without what no label may hold."""
    cleaned = (" ".join(text.split()) for text in texts)
    return [text for text in cleaned if any(map(str.isalnum, text)) and text.isprintable()]


def _folded(name: str) -> str:
    return " ".join(name.split()).casefold()
