"""The embedded encoder: averaged static token vectors. Also reads model2vec folders."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file
from scipy.sparse import csr_array
from tokenizers import Tokenizer

from ulr.encoders.counters import Counter
from ulr.encoders.protocol import CopiedByReference
from ulr.encoders.tokenization import (
    PieceTokenizer,
    TextTokenizer,
    WholeTextTokenizer,
    is_one_token,
    unknown_token,
)
from ulr.encoders.weights import PackagedFile, find_folder
from ulr.errors import EncoderError
from ulr.files import sha256
from ulr.pieces import MOST_TEXTS, map_slices
from ulr.refinement.distances import unit_rows

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
_MODEL2VEC_FILES = ("config.json", "model.safetensors", "tokenizer.json")
_MODEL2VEC_TOKENS = 512


class StaticEncoder(CopiedByReference):
    """Encode a text as the mean of its token vectors; the vector of an empty text is zero.

    Threads may share it.

    Parameters
    ----------
    vectors
        (n_tokens, n_dims) one vector per token of the tokenizer.
    tokenizer
        Turns texts into token ids.
    max_tokens
        Tokens of a text that are used. Longer texts are truncated and counted in `truncated`; they
        are cut to 1,000 characters per token before they are tokenized.
    fingerprint
        Identifies the vectors.
    ignored_token
        Id of a token that is left out of the mean, such as the one for unknown words.
    normalize
        Whether the vectors of texts are scaled to unit length.

    Attributes
    ----------
    truncated
        Texts truncated so far.
    spec
        The name from which `load_encoder` makes the same encoder; None if there is none.
    languages
        Codes of the languages that the vectors were made for; None if that is unknown.
    batch_texts
        Texts to encode per call.
    shared_by_threads
        Several threads may make these calls at the same time.
    """

    spec: str | None = None
    languages: tuple[str, ...] | None = None
    batch_texts = MOST_TEXTS
    shared_by_threads = True

    def __init__(
        self,
        vectors: NDArray[np.float32],
        tokenizer: Tokenizer,
        *,
        max_tokens: int = 4096,
        fingerprint: str = "static",
        ignored_token: int | None = None,
        normalize: bool = False,
    ) -> None:
        if max_tokens < 1:
            raise EncoderError(f"max_tokens must be at least 1; got {max_tokens}.")
        # Ids may have gaps, so the highest one matters, not their number.
        last = max(tokenizer.get_vocab().values(), default=-1)
        if last >= len(vectors):
            raise EncoderError(
                f"the tokenizer numbers its tokens from 0 to {last}, but there are only "
                f"{len(vectors)} token vectors."
            )
        self._vectors = vectors
        self._tokenizer = tokenizer
        self._unknown_token = unknown_token(tokenizer)
        self._tokenize: TextTokenizer = WholeTextTokenizer(tokenizer)
        self._ignored_token, self._normalize = ignored_token, normalize
        self.max_tokens = max_tokens
        self.fingerprint = f"{fingerprint}, {max_tokens} tokens"
        self._truncated = Counter()

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
        encoder._tokenize = PieceTokenizer(tokenizer)
        return encoder

    @classmethod
    def from_folder(cls, name_or_path: str, max_tokens: int | None = None) -> StaticEncoder:
        """A model2vec model: a folder with tokenizer.json, model.safetensors and config.json.

        Parameters
        ----------
        name_or_path
            The folder, or the model's name on the Hugging Face hub.
        max_tokens
            Tokens of a text that are used; None for the length in the config, otherwise 512.
        """
        folder = find_folder(name_or_path, _MODEL2VEC_FILES)
        settings, tensors, tokenizer = _read_model2vec(folder)
        hashes = [sha256(folder / name)[:16] for name in _MODEL2VEC_FILES]
        encoder = cls(
            _token_vectors(tensors, folder),
            tokenizer,
            max_tokens=max_tokens or settings.get("max_length") or _MODEL2VEC_TOKENS,
            fingerprint=f"static model2vec {' '.join(hashes)}",
            ignored_token=unknown_token(tokenizer),
            normalize=bool(settings.get("normalize", False)),
        )
        encoder.spec = f"static:{name_or_path}"
        return encoder

    @property
    def truncated(self) -> int:
        """Texts truncated so far."""
        return self._truncated.value

    @property
    def n_dims(self) -> int:
        """Dimensions of the vectors."""
        return int(self._vectors.shape[1])

    def knows_word(self, word: str) -> bool:
        """Whether a word is one token."""
        return is_one_token(self._tokenizer, word, self._unknown_token)

    def encode(self, texts: list[str], /) -> NDArray[np.float32]:
        """Vectors of the texts, (n_texts, n_dims); each independent of the other texts.

        Large batches are divided among the available cores.
        """
        most = self._tokenize.max_characters(self.max_tokens)

        def encode(rows: slice) -> NDArray[np.float32]:
            batch = texts[rows]
            cut = np.fromiter(map(len, batch), np.int64, count=len(batch)) > most
            if cut.any():
                tokens, counts = self._tokenize([text[:most] for text in batch])
            else:
                tokens, counts = self._tokenize(texts, rows)
            self._truncated.add(int((cut | (counts > self.max_tokens)).sum()))
            return self._means(tokens, counts)

        parts = map_slices(encode, texts) or [np.empty((0, self.n_dims), dtype=np.float32)]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _means(self, tokens: NDArray[np.int32], counts: NDArray[np.int64]) -> NDArray[np.float32]:
        """Mean token vector of each text, from the flat array of the tokens of all texts."""
        if (counts > self.max_tokens).any():
            places = np.arange(len(tokens)) - np.repeat(np.cumsum(counts) - counts, counts)
            tokens, counts = tokens[places < self.max_tokens], np.minimum(counts, self.max_tokens)
        if self._ignored_token is not None:
            kept = tokens != self._ignored_token
            ends = np.append(0, np.cumsum(kept))[np.cumsum(counts)]
            tokens, counts = tokens[kept], np.diff(ends, prepend=0)
        means = mean_of_rows(self._vectors, tokens, counts)
        if self._normalize:
            return unit_rows(means.astype(np.float64)).astype(np.float32)
        return means


class _Embedded(StaticEncoder):
    """The packaged weights, pickled as a reference to the package rather than as 32 MB."""

    spec = "static"
    languages = ("en",)

    def __reduce__(self) -> tuple[Any, ...]:
        return StaticEncoder.embedded, (self.max_tokens,)


def mean_of_rows(
    vectors: NDArray[np.float32], rows: NDArray[np.int32], counts: NDArray[np.int64]
) -> NDArray[np.float32]:
    """Mean vector of the rows of each text, (n_texts, n_dims); zero for a text without rows.

    Parameters
    ----------
    vectors
        (n_rows, n_dims) all vectors.
    rows
        Row numbers of all texts, one text after the other.
    counts
        (n_texts,) number of rows of each text.
    """
    # A sparse product adds them text by text, in order, without padding or a copy of the rows.
    occurrences = csr_array(
        (np.ones(len(rows), dtype=np.float32), rows, np.append(0, np.cumsum(counts))),
        shape=(len(counts), len(vectors)),
    )
    means: NDArray[np.float32] = occurrences @ vectors
    means /= np.maximum(counts, 1)[:, None].astype(np.float32)
    return means


def _read_model2vec(folder: Path) -> tuple[dict[str, Any], dict[str, NDArray[Any]], Tokenizer]:
    """Config, tensors and tokenizer of a model2vec folder."""
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
        raise EncoderError(f"{folder} cannot be read as a model2vec folder: {error}.") from error
    except Exception as error:  # tokenizers raises nothing more specific
        raise EncoderError(f"{folder / 'tokenizer.json'} cannot be read: {error}.") from error
    return settings, tensors, tokenizer


def _token_vectors(tensors: dict[str, NDArray[Any]], folder: Path) -> NDArray[np.float32]:
    """One vector per token; in a model2vec model tokens may share vectors and have weights."""
    # The second name is that of sentence-transformers, which writes the same kind of folder.
    vectors = tensors.get("embeddings", tensors.get("embedding.weight"))
    if vectors is None or vectors.ndim != 2:
        raise EncoderError(
            f"{folder / 'model.safetensors'} has no token vectors: 'embeddings' was expected; "
            f"it has {', '.join(sorted(tensors)) or 'nothing'}."
        )
    vectors = vectors.astype(np.float32)
    if (mapping := tensors.get("mapping")) is not None:
        vectors = vectors[mapping]
    if (weights := tensors.get("weights")) is not None:
        vectors = vectors * weights.astype(np.float32)[:, None]
    return vectors
