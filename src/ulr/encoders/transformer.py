"""The dual encoder: any Hugging Face encoder on PyTorch, its last hidden states pooled."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Encoding

from ulr.encoders.lengths import alike_in_length
from ulr.encoders.pretrained import (
    Pretrained,
    cleaned,
    find_model,
    model_name,
    read_json,
    unusable,
)
from ulr.errors import EncoderError

if TYPE_CHECKING:
    import torch


def mean_of_tokens(states: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Mean over the real tokens, special ones included, (n_texts, n_dims)."""
    real = mask.unsqueeze(-1).to(states.dtype)
    return (states * real).sum(dim=1) / real.sum(dim=1)


def first_token(states: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """State of the first token, (n_texts, n_dims)."""
    return states[:, 0]


POOLINGS: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "mean": mean_of_tokens,
    "cls": first_token,
}


class TransformerEncoder:
    """A dual encoder: texts and labels through the same transformer, the last states pooled.

    A folder of sentence-transformers is recognised: its pooling, length, lower-casing and scaling
    to length one are kept, unless another is asked for. Other vectors are not scaled.

    Parameters
    ----------
    name_or_path
        A folder, or the name of a model on the Hugging Face hub. Only safetensors are read, and no
        code of the model's own is run.
    pooling
        ``"mean"`` over the tokens, special ones included, or ``"cls"``, the first token. None for
        what the folder says, else the mean.
    max_tokens
        Tokens of a text that are used, special ones included; texts that are longer are cut, and
        counted in `truncated`. None for what the folder says, else 128.
    lowercase
        Whether texts are lower-cased first. None for what the folder says, else not.
    device
        ``"cpu"``, ``"cuda"``, ``"cuda:N"`` or ``"mps"``; None for the fastest there is.
    precision
        ``"float32"``, ``"float16"`` or ``"bfloat16"``; None for half precision on a GPU and
        float32 on the CPU. It is no part of the fingerprint: the vectors remain comparable.
    tokens_at_a_time
        Tokens of a batch; None for what suits the device.

    Attributes
    ----------
    truncated
        Texts cut so far.
    n_dims
        Dimensions of the vectors.
    """

    texts_at_a_time = 512

    def __init__(
        self,
        name_or_path: str | Path,
        *,
        pooling: str | None = None,
        max_tokens: int | None = None,
        lowercase: bool | None = None,
        device: str | None = None,
        precision: str | None = None,
        tokens_at_a_time: int | None = None,
    ) -> None:
        settings: dict[str, Any] = {
            "pooling": pooling,
            "max_tokens": max_tokens,
            "lowercase": lowercase,
        }
        where: dict[str, Any] = {
            "device": device,
            "precision": precision,
            "tokens_at_a_time": tokens_at_a_time,
        }
        folder = find_model(name_or_path)
        recipe = _read_recipe(folder)
        self.pooling = recipe.pooling if pooling is None else pooling
        if self.pooling not in POOLINGS:
            raise EncoderError(f"pooling must be one of {', '.join(POOLINGS)}; got {pooling!r}.")
        self.lowercase = recipe.lowercase if lowercase is None else lowercase
        self._unit_length = recipe.unit_length
        self._model = Pretrained(recipe.transformer, str(name_or_path), **where)
        said = None
        if recipe.from_sentence_transformers:
            said = recipe.max_tokens or self._model.stated_max_tokens
        self.max_tokens = self._model.allowed_tokens(max_tokens, said)
        self._model.tokenizer.enable_truncation(
            self.max_tokens, direction=self._model.truncation_side
        )
        self.truncated = 0
        with unusable(f"{name_or_path} cannot be used as an encoder of texts"):
            self.n_dims = int(self._pooled(self._model.tokenizer.encode_batch_fast([""])).shape[1])
        self.device = str(self._model.device)
        if self._model.device.type != "cpu":
            self.texts_at_a_time = 4096
        self.fingerprint = self._fingerprint()
        name = model_name(name_or_path)
        self.spec = f"hf:{name}" if all(each is None for each in settings.values()) else None
        self._again = partial(type(self), name, **settings, **where)

    def encode(self, texts: list[str], /) -> NDArray[np.float32]:
        """Vectors of the texts, (n_texts, n_dims), in their order."""
        if not texts:
            raise EncoderError("there are no texts to encode.")
        encoded = self._model.tokenizer.encode_batch_fast(cleaned(texts, self.lowercase))
        self.truncated += sum(bool(each.overflowing) for each in encoded)
        vectors = np.empty((len(texts), self.n_dims), dtype=np.float32)
        lengths = [len(each.ids) for each in encoded]
        for places in alike_in_length(lengths, self._model.tokens_at_a_time):
            vectors[places] = self._pooled([encoded[place] for place in places])
        return vectors

    def _pooled(self, batch: list[Encoding]) -> NDArray[np.float32]:
        """Vectors of some texts, padded to the longest."""
        output, mask = self._model.run(batch)
        vectors = POOLINGS[self.pooling](output.last_hidden_state.float(), mask)
        if self._unit_length:
            vectors = vectors / vectors.norm(dim=1, keepdim=True).clamp_min(1e-12)
        return vectors.cpu().numpy()

    def _fingerprint(self) -> str:
        parts = [f"hf {self._model.fingerprint}", self.pooling, f"{self.max_tokens} tokens"]
        if self.lowercase:
            parts.append("lower case")
        if self._unit_length:
            parts.append("unit length")
        return ", ".join(parts)

    def __reduce__(self) -> tuple[Any, ...]:
        return self._again, ()


@dataclass(frozen=True)
class _Recipe:
    """What a folder says about how vectors are made with it."""

    transformer: Path
    from_sentence_transformers: bool = False
    pooling: str = "mean"
    max_tokens: int | None = None
    lowercase: bool = False
    unit_length: bool = False


def _read_recipe(folder: Path) -> _Recipe:
    """The recipe in a folder of sentence-transformers; the plain one for other folders."""
    if not (folder / "modules.json").is_file():
        return _Recipe(folder)
    try:
        modules = read_json(folder / "modules.json")
        kinds = [str(module["type"]).rpartition(".")[2] for module in modules]
        if kinds[:2] != ["Transformer", "Pooling"] or kinds[2:] not in ([], ["Normalize"]):
            raise _only_with_sentence_transformers(folder, f"the modules {', '.join(kinds)}")
        transformer, pooling = (folder / module["path"] for module in modules[:2])
        own = read_json(next(iter(sorted(transformer.glob("sentence_*_config.json"))), None))
        for what in ("default_prompt_name", "truncate_dim"):
            if read_json(folder / "config_sentence_transformers.json").get(what) is not None:
                raise _only_with_sentence_transformers(folder, f"a {what}")
        return _Recipe(
            transformer,
            from_sentence_transformers=True,
            pooling=_pooling(folder, read_json(pooling / "config.json")),
            max_tokens=own.get("max_seq_length"),
            lowercase=bool(own.get("do_lower_case", False)),
            unit_length=len(kinds) == 3,
        )
    except (KeyError, TypeError, AttributeError, json.JSONDecodeError, UnicodeError) as error:
        raise EncoderError(
            f"{folder} is not a whole model of sentence-transformers: {error!r}."
        ) from error


def _pooling(folder: Path, config: dict[str, Any]) -> str:
    """The pooling of a sentence-transformers folder, stated by name or by one flag a kind."""
    flags = [
        key.removeprefix("pooling_mode_").removesuffix("_tokens").removesuffix("_token")
        for key, value in config.items()
        if key.startswith("pooling_mode_") and value
    ]
    stated = config.get("pooling_mode", flags or "mean")
    modes = [stated] if isinstance(stated, str) else list(stated)
    if len(modes) != 1 or modes[0] not in POOLINGS:
        raise _only_with_sentence_transformers(folder, f"the pooling {' + '.join(modes)}")
    return str(modes[0])


def _only_with_sentence_transformers(folder: Path, what: str) -> EncoderError:
    return EncoderError(
        f"{folder} has {what}, where only Transformer, Pooling (mean or cls) and Normalize are "
        f"understood; give SentenceTransformer({str(folder)!r}) itself as the encoder."
    )
