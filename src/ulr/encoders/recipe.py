"""Settings in the files of sentence-transformers: pooling, length, normalisation and prompts."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ulr.encoders.pretrained import read_json
from ulr.errors import EncoderError

POOLINGS = ("mean", "cls")
FILES = (
    "modules.json",
    "config_sentence_transformers.json",
    "sentence_*_config.json",
    "*_Pooling/config.json",
)


@dataclass(frozen=True)
class Recipe:
    """Settings that a folder prescribes.

    Attributes
    ----------
    transformer
        Folder of the model and its tokenizer.
    from_sentence_transformers
        Whether the folder states settings; the others are defaults if not.
    pooling
        One of `POOLINGS`.
    include_prompt
        Whether the tokens of a prompt are pooled too.
    max_tokens
        Tokens of a text that are used; None if that is not stated.
    lowercase, normalize
        Whether texts are lower-cased, and vectors scaled to unit length.
    prompts
        Prefixes of texts by name.
    default_prompt_name
        The one that is used unless another is named.
    """

    transformer: Path
    from_sentence_transformers: bool = False
    pooling: str = "mean"
    include_prompt: bool = True
    max_tokens: int | None = None
    lowercase: bool = False
    normalize: bool = False
    prompts: dict[str, str] = field(default_factory=dict)
    default_prompt_name: str | None = None

    def prompt(self, *names: str) -> str:
        """The first prompt of some names that exists, otherwise the default one, if any."""
        for name in (*names, self.default_prompt_name):
            if name is not None and name in self.prompts:
                return self.prompts[name]
        return ""


def read_recipe(folder: Path) -> Recipe:
    """The settings of a sentence-transformers folder; the defaults for other folders."""
    if not (folder / "modules.json").is_file():
        return Recipe(folder)
    try:
        modules = read_json(folder / "modules.json")
        kinds = [str(module["type"]).rpartition(".")[2] for module in modules]
        if kinds[:2] != ["Transformer", "Pooling"] or kinds[2:] not in ([], ["Normalize"]):
            raise unsupported(folder, f"the modules {', '.join(kinds)}")
        transformer, pooling = (folder / module["path"] for module in modules[:2])
        settings = read_json(next(iter(sorted(transformer.glob("sentence_*_config.json"))), None))
        pooling_config = read_json(pooling / "config.json")
        own = read_json(folder / "config_sentence_transformers.json")
        if own.get("truncate_dim") is not None:
            raise unsupported(folder, "a truncate_dim")
        return Recipe(
            transformer,
            from_sentence_transformers=True,
            pooling=_pooling(folder, pooling_config),
            include_prompt=bool(pooling_config.get("include_prompt", True)),
            max_tokens=settings.get("max_seq_length"),
            lowercase=bool(settings.get("do_lower_case", False)),
            normalize=len(kinds) == 3,
            prompts={str(name): str(each) for name, each in (own.get("prompts") or {}).items()},
            default_prompt_name=own.get("default_prompt_name"),
        )
    except (KeyError, TypeError, AttributeError, json.JSONDecodeError, UnicodeError) as error:
        raise EncoderError(
            f"{folder} is not a complete model of sentence-transformers: {error!r}."
        ) from error


def unsupported(folder: Path, found: str) -> EncoderError:
    """The error for settings that would need another kind of encoder."""
    return EncoderError(
        f"{folder} has {found}, where only Transformer, Pooling (mean or cls) and Normalize are "
        f"supported; give SentenceTransformer({str(folder)!r}) itself as the encoder."
    )


def _pooling(folder: Path, config: dict[str, Any]) -> str:
    """The pooling of a sentence-transformers folder, stated by name or, formerly, by flags."""
    flags = [
        key.removeprefix("pooling_mode_").removesuffix("_tokens").removesuffix("_token")
        for key, value in config.items()
        if key.startswith("pooling_mode_") and value
    ]
    stated = config.get("pooling_mode", flags or "mean")
    modes = [stated] if isinstance(stated, str) else list(stated)
    if len(modes) != 1 or modes[0] not in POOLINGS:
        raise unsupported(folder, f"the pooling {' + '.join(modes)}")
    return str(modes[0])
