"""`OpenAIAdviser`: a language model behind any server that speaks OpenAI's protocol."""

from __future__ import annotations

import os
import sys
import threading
from functools import cached_property, partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ulr.advisers.answers import AnswerCache
from ulr.errors import AdviserError, require
from ulr.files import user_cache

_KEY = "OPENAI_API_KEY"
_THREADS = 4  # questions at the same time; rate limits of small accounts allow not much more
_MOST_FAILURES = 3  # in a row, after which a server is given up
_CHARACTERS_PER_TOKEN = 4  # of English, for the estimate before anything is sent
_ANSWER_TOKENS = 256  # of an answer; a server that thinks before it answers needs more
_THINKING_TOKENS = 4096


def _is_address(url: str) -> bool:
    try:
        return urlsplit(url).scheme in ("http", "https")
    except ValueError:  # a bracket that is not closed
        return False


class OpenAIAdviser:
    """Asks a language model: OpenAI, vLLM, Ollama, llama.cpp, LM Studio and others.

    The key is read from the environment variable ``OPENAI_API_KEY`` when the first question is sent,
    and is neither kept nor written anywhere. Requests are repeated with growing delays, or after the
    delay that the server asks for. Answers are kept, usable or not, so that no run pays twice.

    Parameters
    ----------
    url
        Address of the server, such as ``http://localhost:11434/v1``.
    model
        Name of the model there.
    timeout
        Seconds to wait for an answer.
    retries
        How often a request that failed is repeated.
    cache
        Folder of the answers; by default one in the user's cache folder.
    dry_run
        Whether questions are only counted, and nothing is sent.

    Attributes
    ----------
    remembered
        Answers found in the cache so far.
    sent, prompt_tokens
        Questions sent so far (in a dry run: that would be sent), and their estimated tokens.

    Examples
    --------
    >>> from ulr.advisers import OpenAIAdviser
    >>> adviser = OpenAIAdviser("http://localhost:11434/v1", "qwen2.5", dry_run=True)
    >>> adviser("Is a late goal about sports?")
    ''
    >>> adviser.sent, adviser.prompt_tokens
    (1, 7)
    """

    uses_schema = True

    def __init__(
        self,
        url: str,
        model: str,
        *,
        timeout: float = 120.0,
        retries: int = 5,
        cache: str | Path | None = None,
        dry_run: bool = False,
    ) -> None:
        if not isinstance(url, str) or not _is_address(url):
            raise AdviserError(
                f"the address of a language model must begin with http:// or https://; got {url!r}."
            )
        if not isinstance(model, str) or not model.strip():
            raise AdviserError(f"the name of a language model must be a text; got {model!r}.")
        self.url, self.model, self.timeout, self.retries = url, model, timeout, retries
        self.cache, self.dry_run = cache, dry_run
        self.remembered = self.sent = self.prompt_tokens = 0
        self._failures, self._form = 0, {True: 0, False: 0}  # with a schema and without
        self._lock = threading.Lock()  # guards the counts, and the making of client and cache

    def __reduce__(self) -> tuple[Any, ...]:
        names = ("timeout", "retries", "cache", "dry_run")
        options = {name: getattr(self, name) for name in names}
        return partial(OpenAIAdviser, self.url, self.model, **options), ()

    def __repr__(self) -> str:
        return f"OpenAIAdviser({self.place!r}, {self.model!r})"

    @property
    def shared_by_threads(self) -> int:
        """How many threads may ask at the same time."""
        return 1 if self.dry_run else _THREADS

    @property
    def place(self) -> str:
        """The address without user name, password and query, which may be secrets."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"

    def __call__(self, prompt: str, schema: dict[str, Any] | None = None) -> str:
        """The answer to a prompt, which follows a JSON schema where the server can do so.

        It is empty where the server could not answer, and in a dry run.
        """
        with self._lock:
            answers = self._answers
        found = answers.get(self.model, prompt, schema)
        with self._lock:
            if found is not None:
                self.remembered += 1
                return found
            if not self.sent and not self.dry_run:
                print(
                    f"ulr: the names of the labels and beginnings of documents are sent to "
                    f"{self.place} (model {self.model}).",
                    file=sys.stderr,
                )
            self.sent += 1
            self.prompt_tokens += -(-len(prompt) // _CHARACTERS_PER_TOKEN)
            if self.dry_run:
                return ""
            client = self._client
        answer = self._request(client, prompt, schema)
        if answer is not None:
            answers.put(self.model, prompt, schema, answer)
        return answer or ""

    @cached_property
    def _answers(self) -> AnswerCache:
        return AnswerCache(self.cache or user_cache("answers"))

    @cached_property
    def _client(self) -> Any:
        openai = require("openai", "llm", AdviserError)
        key = os.environ.get(_KEY) or "none"  # servers on this machine need none
        if not (key.isascii() and key.isprintable()):
            raise AdviserError(
                f"the key in the environment variable {_KEY} has characters of no key."
            )
        return openai.OpenAI(
            base_url=self.url,
            api_key=key,
            timeout=self.timeout,
            max_retries=self.retries,
        )

    def _request(self, client: Any, prompt: str, schema: dict[str, Any] | None) -> str | None:
        """The answer of the server; None if it fails now and then, an error if it does so again."""
        import openai

        try:
            answer = self._complete(client, prompt, schema)
        except (openai.APIConnectionError, openai.APIStatusError) as failure:
            status = getattr(failure, "status_code", 500)
            with self._lock:
                self._failures += 1
                passes = status in (408, 409, 429) or status >= 500
                if passes and self._failures < _MOST_FAILURES:
                    return None
            raise AdviserError(self._explained(failure)) from None
        except openai.OpenAIError as failure:  # a response that is not the protocol's
            raise AdviserError(self._explained(failure)) from None
        with self._lock:
            self._failures = 0
        return answer

    def _complete(self, client: Any, prompt: str, schema: dict[str, Any] | None) -> str | None:
        """One request, in the first form that the server accepts."""
        import openai

        forms = _forms(schema)
        for number in range(self._form[schema is not None], len(forms)):
            try:
                found = client.chat.completions.create(
                    model=self.model,
                    messages=[{"role": "user", "content": prompt}],
                    **forms[number],
                )
            except (openai.BadRequestError, openai.UnprocessableEntityError):
                if number == len(forms) - 1:
                    raise
                continue
            except ValueError:  # a body that is not JSON, such as one that was cut off
                return None
            self._form[schema is not None] = number
            break
        choices = getattr(found, "choices", None)
        if not choices:
            return None
        # What was cut off may be a thought instead of the answer.
        cut_off = choices[0].finish_reason == "length"
        return "" if cut_off else str(choices[0].message.content or "")

    def _explained(self, failure: Exception) -> str:
        """What went wrong, what to do, and never the key."""
        reason = str(failure)
        if key := os.environ.get(_KEY):
            reason = reason.replace(key, "…")  # before it is cut, perhaps within the key
        reason = " ".join(reason.split())[:300].rstrip(".")
        advice = "check --llm and --llm-model, and whether the server runs"
        if getattr(failure, "status_code", 0) in (401, 403):
            advice = f"put the key into the environment variable {_KEY}"
        return (
            f"the language model {self.model} at {self.place} does not answer ({reason}); {advice}. "
            "Answers so far are kept, so that another run does not ask for them again."
        )


def _forms(schema: dict[str, Any] | None) -> list[dict[str, Any]]:
    """Forms of a request: what a server may refuse, it is asked for first."""
    plain: list[dict[str, Any]] = [
        {"temperature": 0, "max_tokens": _ANSWER_TOKENS},
        {"max_completion_tokens": _THINKING_TOKENS},  # models that think refuse the other two
    ]
    if schema is None:
        return plain
    format = {"name": "answer", "strict": True, "schema": schema}
    structured = {"response_format": {"type": "json_schema", "json_schema": format}}
    return [structured | each for each in plain] + plain
