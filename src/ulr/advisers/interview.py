"""Asking an adviser within a budget, and keeping the answers that can be used."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from typing import Any, Protocol, runtime_checkable

from ulr.advisers.questions import Question
from ulr.errors import AdviserError
from ulr.progress import NO_PROGRESS, Progress


@runtime_checkable
class Adviser(Protocol):
    """Any callable from a prompt to an answer, such as a function around a language model.

    Optional attributes:

    - ``model`` (str): its name, for the summary
    - ``uses_schema`` (bool): whether it is called with the JSON schema of the answer as well
    - ``shared_by_threads`` (int): how many threads may call it at the same time; by default one
    - ``remembered`` (int): answers that it did not have to compute so far
    """

    def __call__(self, prompt: str, /) -> str:
        """The answer to a prompt."""
        ...


def adviser_name(adviser: Adviser) -> str:
    """Name of a model, or of the function or class that a user brings."""
    name = getattr(adviser, "model", None) or getattr(adviser, "__name__", None)
    return str(name or type(adviser).__name__)


class Interview:
    """Asks an adviser at most so many questions.

    Attributes
    ----------
    left
        Questions that may still be asked.
    asked, remembered, unusable
        Questions so far, those of them whose answer the adviser remembered from an earlier run, and
        those whose answer could not be used.

    Examples
    --------
    >>> from ulr.advisers import Interview, ask_for_label
    >>> from ulr.labels import as_label_set
    >>> interview = Interview(lambda prompt: '{"label": "Sports"}', budget=10)
    >>> interview.ask([ask_for_label(as_label_set(["sports", "business"]), "A late goal")])
    [0]
    >>> interview.left
    9
    """

    def __init__(self, adviser: Adviser, budget: int) -> None:
        self._adviser, self.left = adviser, budget
        self.asked = self.remembered = self.unusable = 0

    def ask(self, questions: Sequence[Question], progress: Progress = NO_PROGRESS) -> list[Any]:
        """What the answer to each question says, None where it says nothing or was not asked."""
        chosen = questions[: self.left]
        before = getattr(self._adviser, "remembered", 0)
        found: list[Any] = []
        for question, answer in zip(chosen, self._answers(chosen), strict=True):
            found.append(question.parse(answer))
            progress.advance(1)
        self.left -= len(chosen)
        self.asked += len(chosen)
        self.remembered += getattr(self._adviser, "remembered", 0) - before
        self.unusable += found.count(None)
        return found + [None] * (len(questions) - len(chosen))

    def _answers(self, questions: Sequence[Question]) -> Iterator[str]:
        """Answers in the order of the questions."""
        n_threads = min(getattr(self._adviser, "shared_by_threads", 1), len(questions))
        if n_threads <= 1:
            yield from map(self._answer, questions)
            return
        answers: list[Future[str]] = [Future() for _ in questions]
        waiting = deque(zip(answers, questions, strict=True))
        # Daemons, unlike those of a pool: Ctrl-C does not wait for an answer that may take minutes.
        for _ in range(n_threads):
            threading.Thread(target=self._work, args=(waiting,), daemon=True).start()
        try:
            for answer in answers:
                yield answer.result()
        finally:
            waiting.clear()

    def _work(self, waiting: deque[tuple[Future[str], Question]]) -> None:
        while waiting:
            try:
                future, question = waiting.popleft()
            except IndexError:  # another thread took the last one
                return
            try:
                future.set_result(self._answer(question))
            except BaseException as failure:  # raised where the answer is read
                future.set_exception(failure)

    def _answer(self, question: Question) -> str:
        uses_schema = getattr(self._adviser, "uses_schema", False)
        more = (question.schema,) if uses_schema else ()
        answer = self._adviser(question.prompt, *more)
        if not isinstance(answer, str):
            raise AdviserError(
                f"the adviser {adviser_name(self._adviser)} must return a text; got "
                f"{type(answer).__name__}."
            )
        return answer
