"""The dual encoder: any Hugging Face encoder on PyTorch, its last hidden states pooled."""

from __future__ import annotations

from collections.abc import Callable
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
)
from ulr.encoders.protocol import CopiedByReference
from ulr.encoders.recipe import read_recipe, unsupported
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
        folder = find_model(name_or_path)
        recipe = read_recipe(folder)
        if recipe.default_prompt_name is not None:
            raise unsupported(folder, "a default_prompt_name")
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
