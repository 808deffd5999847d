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

from ulr.encoders.batching import batches_by_length
from ulr.encoders.counters import Counter
from ulr.encoders.pretrained import (
    Pretrained,
    absolute_name,
    clean_texts,
    find_model,
    model_errors,
    read_json,
)
from ulr.encoders.protocol import CopiedByReference
from ulr.encoders.tokenization import count_truncated
from ulr.errors import EncoderError

if TYPE_CHECKING:
    import torch


def mean_pooling(states: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Mean over the tokens that are not padding, special ones included, (n_texts, n_dims)."""
    kept = mask.unsqueeze(-1).to(states.dtype)
    return (states * kept).sum(dim=1) / kept.sum(dim=1)


def cls_pooling(states: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """State of the first token, (n_texts, n_dims)."""
    return states[:, 0]


POOLINGS: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "mean": mean_pooling,
    "cls": cls_pooling,
}


class TransformerEncoder(CopiedByReference):
    """A dual encoder: texts and labels are encoded by the same transformer, with pooling.

    For a sentence-transformers folder, the defaults are its own pooling, length, lower-casing and
    normalisation. Vectors of other models are not normalised. Threads may share it.

    Parameters
    ----------
    name_or_path
        A folder, or the name of a model on the Hugging Face hub. Only safetensors are read, and no
        code of the model is run.
    pooling
        ``"mean"`` over the tokens, special ones included, or ``"cls"``, the first token. None for
        the folder's own, otherwise the mean.
    max_tokens
        Tokens of a text that are used, special ones included. Longer texts are truncated and
        counted in `truncated`; they are cut to 1,000 characters per token before. None for the
        folder's own, otherwise 128.
    lowercase
        Whether texts are lower-cased. None for the folder's own setting, otherwise not.
    device
        ``"cpu"``, ``"cuda"``, ``"cuda:N"`` or ``"mps"``; None for the fastest one.
    precision
        ``"float32"``, ``"float16"`` or ``"bfloat16"``; None for half precision on a GPU and
        float32 on the CPU. It is not part of the fingerprint: the vectors remain comparable.
    batch_tokens
        Tokens of a batch; None for a number that suits the device.

    Attributes
    ----------
    truncated
        Texts truncated so far.
    n_dims
        Dimensions of the vectors.
    """

    batch_texts = 512
    languages: tuple[str, ...] | None = None

    def __init__(
        self,
        name_or_path: str | Path,
        *,
        pooling: str | None = None,
        max_tokens: int | None = None,
        lowercase: bool | None = None,
        device: str | None = None,
        precision: str | None = None,
        batch_tokens: int | None = None,
    ) -> None:
        settings: dict[str, Any] = {
            "pooling": pooling,
            "max_tokens": max_tokens,
            "lowercase": lowercase,
        }
        placement: dict[str, Any] = {
            "device": device,
            "precision": precision,
            "batch_tokens": batch_tokens,
        }
        recipe = _read_recipe(find_model(name_or_path))
        self.pooling = recipe.pooling if pooling is None else pooling
        if self.pooling not in POOLINGS:
            raise EncoderError(f"pooling must be one of {', '.join(POOLINGS)}; got {pooling!r}.")
        self.lowercase = recipe.lowercase if lowercase is None else lowercase
        self._normalize = recipe.normalize
        self._model = Pretrained(recipe.transformer, str(name_or_path), **placement)
        default = None
        if recipe.from_sentence_transformers:
            default = recipe.max_tokens or self._model.stated_max_tokens
        self.max_tokens = self._model.choose_max_tokens(max_tokens, default)
        self._model.tokenizer.enable_truncation(
            self.max_tokens, direction=self._model.truncation_side
        )
        self._truncated = Counter()
        with model_errors(f"{name_or_path} cannot be used as an encoder of texts"):
            self.n_dims = int(self._pooled(self._model.tokenizer.encode_batch_fast([""])).shape[1])
        self.device = str(self._model.device)
        if self._model.device.type != "cpu":
            self.batch_texts = 4096
        self.fingerprint = f"hf {self._model.fingerprint}, {self.pooling}, {self.max_tokens} tokens"
        self.fingerprint += ", lower case" * self.lowercase + ", unit length" * self._normalize
        name = absolute_name(name_or_path)
        self.spec = f"hf:{name}" if all(each is None for each in settings.values()) else None
        self._again = partial(type(self), name, **settings, **placement)

    @property
    def truncated(self) -> int:
        """Texts truncated so far."""
        return self._truncated.value

    def encode(self, texts: list[str], /) -> NDArray[np.float32]:
        """Vectors of the texts, (n_texts, n_dims), in their order."""
        if not texts:
            raise EncoderError("there are no texts to encode.")
        model = self._model
        cleaned = clean_texts(texts, self.lowercase, self.max_tokens, model.truncation_side)
        encoded = model.tokenizer.encode_batch_fast(cleaned)
        self._truncated.add(count_truncated(texts, encoded, self.max_tokens))
        vectors = np.empty((len(texts), self.n_dims), dtype=np.float32)
        lengths = [len(each.ids) for each in encoded]
        for batch in batches_by_length(lengths, model.batch_tokens):
            vectors[batch] = self._pooled([encoded[index] for index in batch])
        return vectors

    def _pooled(self, batch: list[Encoding]) -> NDArray[np.float32]:
        """Vectors of tokenized texts, (n_texts, n_dims)."""
        output, mask = self._model.run(batch)
        vectors = POOLINGS[self.pooling](output.last_hidden_state.float(), mask)
        if self._normalize:
            vectors = vectors / vectors.norm(dim=1, keepdim=True).clamp_min(1e-12)
        return vectors.cpu().numpy()

    def __reduce__(self) -> tuple[Any, ...]:
        return self._again, ()


@dataclass(frozen=True)
class _Recipe:
    """Settings that a folder prescribes."""

    transformer: Path
    from_sentence_transformers: bool = False
    pooling: str = "mean"
    max_tokens: int | None = None
    lowercase: bool = False
    normalize: bool = False


def _read_recipe(folder: Path) -> _Recipe:
    """The settings of a sentence-transformers folder; the defaults for other folders."""
    if not (folder / "modules.json").is_file():
        return _Recipe(folder)
    try:
        modules = read_json(folder / "modules.json")
        kinds = [str(module["type"]).rpartition(".")[2] for module in modules]
        if kinds[:2] != ["Transformer", "Pooling"] or kinds[2:] not in ([], ["Normalize"]):
            raise _unsupported(folder, f"the modules {', '.join(kinds)}")
        transformer, pooling = (folder / module["path"] for module in modules[:2])
        settings = read_json(next(iter(sorted(transformer.glob("sentence_*_config.json"))), None))
        for name in ("default_prompt_name", "truncate_dim"):
            if read_json(folder / "config_sentence_transformers.json").get(name) is not None:
                raise _unsupported(folder, f"a {name}")
        return _Recipe(
            transformer,
            from_sentence_transformers=True,
            pooling=_pooling(folder, read_json(pooling / "config.json")),
            max_tokens=settings.get("max_seq_length"),
            lowercase=bool(settings.get("do_lower_case", False)),
            normalize=len(kinds) == 3,
        )
    except (KeyError, TypeError, AttributeError, json.JSONDecodeError, UnicodeError) as error:
        raise EncoderError(
            f"{folder} is not a complete model of sentence-transformers: {error!r}."
        ) from error


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
        raise _unsupported(folder, f"the pooling {' + '.join(modes)}")
    return str(modes[0])


def _unsupported(folder: Path, found: str) -> EncoderError:
    return EncoderError(
        f"{folder} has {found}, where only Transformer, Pooling (mean or cls) and Normalize are "
        f"supported; give SentenceTransformer({str(folder)!r}) itself as the encoder."
    )
