"""Options of a language model as adviser, and the plan of its questions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from ulr.classifier import Settings
from ulr.cli.console import print_json
from ulr.cli.groups import LANGUAGE_MODEL, option
from ulr.cli.options import note_no_effect
from ulr.errors import AdviserError

if TYPE_CHECKING:
    from ulr.jobs import Documents, Support
    from ulr.progress import Progress


@dataclass(frozen=True)
class LanguageModelOptions:
    """A language model that is asked a bounded number of questions."""

    llm: Annotated[
        str | None,
        option(
            LANGUAGE_MODEL,
            "--llm",
            help="Address of a server with OpenAI's protocol, such as http://localhost:11434/v1. It is "
            "sent the names of the labels and the beginnings of some documents; the key is read from "
            "OPENAI_API_KEY.",
        ),
    ] = None
    llm_model: Annotated[
        str | None, option(LANGUAGE_MODEL, "--llm-model", help="Name of the model there.")
    ] = None
    llm_budget: Annotated[
        int, option(LANGUAGE_MODEL, "--llm-budget", help="Most questions.", min=1)
    ] = Settings.adviser_budget
    llm_dry_run: Annotated[
        bool,
        option(
            LANGUAGE_MODEL,
            "--llm-dry-run",
            help="Only print how many questions and tokens would be sent.",
        ),
    ] = False

    def check_one_machine(self) -> None:
        """Refuse a language model where several workers classify."""
        if self.llm is not None:
            raise AdviserError(
                "--llm advises jobs on one machine; leave --cluster, --part and addresses of files "
                "out, or --llm."
            )

    def parameters(self, cache: str | None) -> dict[str, Any]:
        """The parameters of the settings that these options give."""
        if self.llm is None:
            if self.llm_model is not None or self != LanguageModelOptions():
                note_no_effect("--llm-model, --llm-budget or --llm-dry-run", "without --llm")
            return {}
        if self.llm_model is None:
            raise AdviserError("--llm needs the name of a model; add --llm-model NAME.")
        from ulr.advisers import OpenAIAdviser

        adviser = OpenAIAdviser(self.llm, self.llm_model, cache=cache, dry_run=self.llm_dry_run)
        return {"adviser": adviser, "adviser_budget": self.llm_budget}


def print_plan(
    documents: Documents, settings: Settings, support: Support, progress: Progress, as_json: bool
) -> None:
    """Fit with an adviser that sends nothing, and print what it would have sent."""
    from ulr.jobs import fit_documents

    fit_documents(documents, settings, progress, support)
    print_sent(settings, as_json)


def print_sent(settings: Settings, as_json: bool) -> None:
    """Print what an adviser that sends nothing would have sent."""
    adviser: Any = settings.adviser
    if as_json:
        plan = {"url": adviser.place, "model": adviser.model, "questions": adviser.sent}
        plan |= {"remembered": adviser.remembered, "prompt_tokens": adviser.prompt_tokens}
        print_json(plan)
        return
    print(
        f"{adviser.sent:,} questions of about {adviser.prompt_tokens:,} tokens in all would be sent to "
        f"{adviser.place} (model {adviser.model}); {adviser.remembered:,} are already answered. "
        "Nothing was sent or written."
    )
