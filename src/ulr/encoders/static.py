"""The embedded encoder: static token vectors, averaged. No network, no PyTorch, no padding.

Folders that model2vec wrote are read as well.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file
from tokenizers import Tokenizer

from ulr.encoders.means import means_of_rows
from ulr.encoders.tokens import Pieces, Tokenize, WholeTexts
from ulr.encoders.weights import PackagedFile, find_folder
from ulr.errors import EncoderError
from ulr.files import sha256
from ulr.refine.distances import unit_rows

_VECTORS = PackagedFile(
    "wordllama",
    "weights/l2_supercat_256.safetensors",
    "64b47a2dc493cb8e85944076601189739852d7b64e0e1eedcb1937a251cd9fd5",
)
_TOKENIZER = PackagedFile(
    "wordllama",
    "tokenizers/l2_supercat_tokenizer_config.json",
    "93248f2a9ec36c7b35f700a033d5f36228aae48db61aee31007fa49062cdeb68",
)

FILES = (_VECTORS, _TOKENIZER)
_TEXTS_AT_A_TIME = 1024
_MODEL2VEC_FILES = ("config.json", "model.safetensors", "tokenizer.json")
_MODEL2VEC_TOKENS = 512


class StaticEncoder:
    """A text's vector is the mean of its tokens' vectors; an empty text's is zero.

    Parameters
    ----------
    vectors
        (n_tokens, n_dims) one vector a token of the tokenizer.
    tokenizer
        Turns texts into token numbers.
    max_tokens
        Tokens of a text that are used; what follows is cut off, and counted in `truncated`.
    fingerprint
        What tells these vectors from others.
    left_out
        A token that does not count, such as the one for unknown words.
    unit
        Whether the vectors of texts are scaled to length one.

    Attributes
    ----------
    truncated
        Texts cut so far.
    spec
        What `load_encoder` makes the same one of, where there is such a thing.
    """

    spec: str | None = None

    def __init__(
        self,
        vectors: NDArray[np.float32],
        tokenizer: Tokenizer,
        *,
        max_tokens: int = 4096,
        fingerprint: str = "static",
        left_out: int | None = None,
        unit: bool = False,
    ) -> None:
        if max_tokens < 1:
            raise EncoderError(f"max_tokens must be at least 1; got {max_tokens}.")
        # The numbers of the tokens may have gaps, so the highest counts, not how many there are.
        last = max(tokenizer.get_vocab().values(), default=-1)
        if last >= len(vectors):
            raise EncoderError(
                f"the tokenizer numbers its tokens from 0 to {last}, but there are only "
                f"{len(vectors)} token vectors."
            )
        self._vectors = vectors
        self._tokenize: Tokenize = WholeTexts(tokenizer)
        self._left_out, self._unit = left_out, unit
        self.max_tokens = max_tokens
        self.fingerprint = f"{fingerprint}, {max_tokens} tokens"
        self.truncated = 0

    @classmethod
    def embedded(cls, max_tokens: int = 4096) -> StaticEncoder:
        """The default encoder: 32,000 token vectors of 256 dimensions, installed with `ulr`."""
        vectors = load_file(_VECTORS.locate())["embedding.weight"].astype(np.float32)
        tokenizer = Tokenizer.from_file(str(_TOKENIZER.locate()))
        encoder = _Embedded(
            vectors,
            tokenizer,
            max_tokens=max_tokens,
            fingerprint=f"static wordllama {_VECTORS.sha256[:16]}",
        )
        encoder._tokenize = Pieces(tokenizer)
        return encoder

    @classmethod
    def from_folder(cls, name_or_path: str, max_tokens: int | None = None) -> StaticEncoder:
        """A model2vec model: tokenizer.json, model.safetensors and config.json in a folder.

        Parameters
        ----------
        name_or_path
            The folder, or the model's name on the hub.
        max_tokens
            Tokens of a text that are used; None for what the model says, else 512.
        """
        folder = find_folder(name_or_path, _MODEL2VEC_FILES)
        for name in _MODEL2VEC_FILES:
            if not (folder / name).is_file():
                raise EncoderError(
                    f"{folder} is not a model2vec folder: it has no {name}; it needs "
                    f"{', '.join(_MODEL2VEC_FILES)}."
                )
        try:
            settings = json.loads((folder / "config.json").read_text(encoding="utf-8"))
            tensors = load_file(str(folder / "model.safetensors"))
            tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        except (OSError, ValueError, SafetensorError) as error:
            raise EncoderError(
                f"{folder} cannot be read as a model2vec folder: {error}."
            ) from error
        except Exception as error:  # tokenizers raises nothing more special
            raise EncoderError(f"{folder / 'tokenizer.json'} cannot be read: {error}.") from error
        hashes = [sha256(folder / name)[:16] for name in _MODEL2VEC_FILES]
        encoder = cls(
            _one_vector_a_token(tensors, tokenizer, folder),
            tokenizer,
            max_tokens=max_tokens or settings.get("max_length") or _MODEL2VEC_TOKENS,
            fingerprint=f"static model2vec {' '.join(hashes)}",
            left_out=_unknown_token(tokenizer),
            unit=bool(settings.get("normalize", False)),
        )
        encoder.spec = f"static:{name_or_path}"
        return encoder

    @property
    def n_dims(self) -> int:
        """Dimensions of the vectors."""
        return int(self._vectors.shape[1])

    def encode(self, texts: list[str], /) -> NDArray[np.float32]:
        """Vectors of the texts, (n_texts, n_dims); each the same whatever else is in the list."""
        vectors = np.empty((len(texts), self.n_dims), dtype=np.float32)
        for start in range(0, len(texts), _TEXTS_AT_A_TIME):
            few = slice(start, start + _TEXTS_AT_A_TIME)
            vectors[few] = self._means(*self._tokenize(texts[few]))
        return vectors

    def _means(self, tokens: NDArray[np.int32], counts: NDArray[np.int64]) -> NDArray[np.float32]:
        """Mean token vector of each text.

        Parameters
        ----------
        tokens
            (n_tokens,) the tokens of all texts in a row.
        counts
            (n_texts,) how many each text has.
        """
        if (too_long := counts > self.max_tokens).any():
            self.truncated += int(too_long.sum())
            places = np.arange(len(tokens)) - np.repeat(np.cumsum(counts) - counts, counts)
            tokens, counts = tokens[places < self.max_tokens], np.minimum(counts, self.max_tokens)
        if self._left_out is not None:
            counted = tokens != self._left_out
            ends = np.append(0, np.cumsum(counted))[np.cumsum(counts)]
            tokens, counts = tokens[counted], np.diff(ends, prepend=0)
        means = means_of_rows(self._vectors, tokens, counts)
        if self._unit:
            return unit_rows(means.astype(np.float64)).astype(np.float32)
        return means


def _one_vector_a_token(
    tensors: dict[str, NDArray[Any]], tokenizer: Tokenizer, folder: Path
) -> NDArray[np.float32]:
    """The vectors of a model2vec model, where tokens may share one and have weights of their own.

    Sentence-transformers writes the same folder with another name for the vectors.
    """
    vectors = tensors.get("embeddings", tensors.get("embedding.weight"))
    if vectors is None or vectors.ndim != 2:
        raise EncoderError(
            f"{folder / 'model.safetensors'} holds no token vectors: 'embeddings' was expected; "
            f"it has {', '.join(sorted(tensors)) or 'nothing'}."
        )
    each = vectors.astype(np.float32)
    if (place := tensors.get("mapping")) is not None:
        each = each[place]
    if (weights := tensors.get("weights")) is not None:
        each = each * weights.astype(np.float32)[:, None]
    return each


def _unknown_token(tokenizer: Tokenizer) -> int | None:
    """The token that stands for words a tokenizer does not know, where it has one."""
    if not hasattr(tokenizer.model, "unk_token"):
        number = json.loads(tokenizer.to_str())["model"].get("unk_id")
    else:
        unknown = tokenizer.model.unk_token
        number = None if unknown is None else tokenizer.token_to_id(unknown)
    return None if number is None else int(number)


class _Embedded(StaticEncoder):
    """The packaged weights, pickled as a reference to the package rather than as 32 MB."""

    spec = "static"

    def __reduce__(self) -> tuple[Any, ...]:
        return StaticEncoder.embedded, (self.max_tokens,)
