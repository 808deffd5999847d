"""Advisers: language models that answer a bounded number of questions about labels and documents.

An adviser is any callable from a prompt to an answer. `OpenAIAdviser` asks a server, `Interview` asks
questions within a budget and keeps the answers that can be used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ulr.lazy import lazy_names

if TYPE_CHECKING:
    from ulr.advisers.answers import AnswerCache
    from ulr.advisers.interview import Adviser, Interview, adviser_name
    from ulr.advisers.questions import Question, ask_for_label, ask_for_name, ask_for_phrases
    from ulr.advisers.server import OpenAIAdviser

__all__ = [
    "Adviser",
    "AnswerCache",
    "Interview",
    "OpenAIAdviser",
    "Question",
    "adviser_name",
    "ask_for_label",
    "ask_for_name",
    "ask_for_phrases",
]

__getattr__ = lazy_names(
    __name__,
    answers="AnswerCache",
    interview="Adviser Interview adviser_name",
    server="OpenAIAdviser",
    questions="Question ask_for_label ask_for_name ask_for_phrases",
)
