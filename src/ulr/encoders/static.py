"""The embedded encoder: averaged static token vectors. Also reads model2vec folders."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file
from scipy.sparse import csr_array
from tokenizers import Tokenizer

from ulr.encoders.pieces import MOST_TEXTS, Ragged, map_slices
from ulr.encoders.protocol import ModelEncoder
from ulr.encoders.tokenization import PieceTokenizer, WholeTextTokenizer
from ulr.encoders.weights import PackagedFile, find_folder, model_errors, read_json
from ulr.errors import EncoderError
from ulr.files import sha256
from ulr.vectors import unit_rows

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


class MeanEncoder(ModelEncoder):
    """Base of encoders whose vector of a text is the mean of some rows of a matrix.

    `look_up` gives row numbers of a slice of texts, and their number per text. A text without rows
    is a zero vector. Only the first characters of a text are used; longer texts count as truncated.
    Threads may share it.
    """

    batch_texts = MOST_TEXTS
    shared_by_threads = uses_pieces = True
    _normalize = False

    def __init__(
        self,
        vectors: NDArray[np.float32],
        max_characters: int,
        look_up: Callable[[list[str], slice], Ragged],
    ) -> None:
        self._vectors, self._max_characters, self._look_up = vectors, max_characters, look_up
        self.n_dims = int(vectors.shape[1])

    def encode(self, texts: list[str], /) -> NDArray[np.float32]:
        """Vectors of the texts, (n_texts, n_dims); each independent of the other texts.

        Large batches are divided among the available cores.
        """
        parts = map_slices(partial(self._encode_slice, texts), texts)
        parts = parts or [np.empty((0, self.n_dims), dtype=np.float32)]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def sums(self, texts: list[str], /) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Sums of the rows of texts, (n_texts, n_dims), and their number per text.

        Those of the pieces between blanks of a text add up to those of the text, and the vector of
        the text has their direction; unless it is truncated, or its tokens cross pieces.
        """
        numbers, counts = self._rows(texts, slice(None))
        return self._added(numbers, counts), counts

    def _encode_slice(self, texts: list[str], rows: slice) -> NDArray[np.float32]:
        numbers, counts = self._rows(texts, rows)
        means = self._added(numbers, counts)
        means /= np.maximum(counts, 1)[:, None].astype(np.float32)
        return unit_rows(means).astype(np.float32) if self._normalize else means

    def _rows(self, texts: list[str], rows: slice) -> Ragged:
        """Numbers of the rows of a slice of texts, and their number per text."""
        batch = texts[rows]
        is_cut = np.fromiter(map(len, batch), np.int64, count=len(batch)) > self._max_characters
        if is_cut.any():
            texts, rows = [text[: self._max_characters] for text in batch], slice(None)
        numbers, counts = self._look_up(texts, rows)
        return self._choose(numbers, counts, is_cut)

    def _added(self, numbers: NDArray[np.int32], counts: NDArray[np.int64]) -> NDArray[np.float32]:
        """Sum of the rows of each text."""
        # A sparse product adds them text by text, in order, without padding or a copy of the rows.
        occurrences = csr_array(
            (np.ones(len(numbers), dtype=np.float32), numbers, np.append(0, np.cumsum(counts))),
            shape=(len(counts), len(self._vectors)),
        )
        sums: NDArray[np.float32] = occurrences @ self._vectors
        return sums

    def _choose(
        self, numbers: NDArray[np.int32], counts: NDArray[np.int64], is_cut: NDArray[np.bool_]
    ) -> Ragged:
        """The rows that are used; texts that are truncated are counted."""
        self._count_truncated(int(is_cut.sum()))
        return numbers, counts


class StaticEncoder(MeanEncoder):
    """Encode a text as the mean of its token vectors; the vector of an empty text is zero.

    Texts of more than `max_tokens` tokens are truncated and counted in `truncated`.
    `ignored_token` is left out of the mean, such as the one for unknown words. With `pieces`, the
    tokenizer is applied to pieces of texts, which are remembered; see `PieceTokenizer`. Threads may
    share it.
    """

    def __init__(
        self,
        vectors: NDArray[np.float32],
        tokenizer: Tokenizer,
        *,
        max_tokens: int = 4096,
        fingerprint: str = "static",
        ignored_token: int | None = None,
        normalize: bool = False,
        pieces: bool = False,
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
        look_up = PieceTokenizer(tokenizer) if pieces else WholeTextTokenizer(tokenizer)
        super().__init__(vectors, look_up.characters_per_token * max_tokens, look_up)
        self._ignored_token, self._normalize = ignored_token, normalize
        self.max_tokens = max_tokens
        self.fingerprint = f"{fingerprint}, {max_tokens} tokens"

    @classmethod
    def embedded(cls, max_tokens: int = 4096) -> StaticEncoder:
        """The default encoder: 32,000 token vectors of 256 dimensions, installed with `ulr`."""
        encoder = cls(
            load_file(_VECTORS.locate())["embedding.weight"].astype(np.float32),
            Tokenizer.from_file(str(_TOKENIZER.locate())),
            max_tokens=max_tokens,
            fingerprint=f"static wordllama {_VECTORS.sha256[:16]}",
            pieces=True,
        )
        encoder.spec, encoder.languages = "static", ("en",)
        encoder._again = partial(cls.embedded, max_tokens)  # instead of 32 MB of vectors
        return encoder

    @classmethod
    def from_folder(cls, name_or_path: str, max_tokens: int | None = None) -> StaticEncoder:
        """A model2vec model: a folder with three files, or a name on the Hugging Face hub.

        `max_tokens` of a text are used; None for the length in the config, otherwise 512.
        """
        folder = find_folder(name_or_path, _MODEL2VEC_FILES)
        for name in _MODEL2VEC_FILES:
            if not (folder / name).is_file():
                raise EncoderError(
                    f"{folder} is not a model2vec folder: it has no {name}; it needs "
                    f"{', '.join(_MODEL2VEC_FILES)}."
                )
        with model_errors(f"{folder} cannot be read as a model2vec folder"):
            settings = read_json(folder / "config.json")
            tensors = load_file(str(folder / "model.safetensors"))
            tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        # The second name is that of sentence-transformers, which writes the same kind of folder.
        vectors = tensors.get("embeddings", tensors.get("embedding.weight"))
        if vectors is None or vectors.ndim != 2:
            raise EncoderError(
                f"{folder / 'model.safetensors'} has no token vectors: 'embeddings' was expected; "
                f"it has {', '.join(sorted(tensors)) or 'nothing'}."
            )
        vectors = vectors.astype(np.float32)
        if (mapping := tensors.get("mapping")) is not None:  # tokens may share vectors
            vectors = vectors[mapping]
        if (weights := tensors.get("weights")) is not None:
            vectors = vectors * weights.astype(np.float32)[:, None]
        hashes = [sha256(folder / name)[:16] for name in _MODEL2VEC_FILES]
        encoder = cls(
            vectors,
            tokenizer,
            max_tokens=max_tokens or settings.get("max_length") or _MODEL2VEC_TOKENS,
            fingerprint=f"static model2vec {' '.join(hashes)}",
            ignored_token=_unknown_token(tokenizer),
            normalize=bool(settings.get("normalize", False)),
        )
        encoder.spec = f"static:{name_or_path}"
        return encoder

    def _choose(
        self, numbers: NDArray[np.int32], counts: NDArray[np.int64], is_cut: NDArray[np.bool_]
    ) -> Ragged:
        is_long = counts > self.max_tokens
        self._count_truncated(int((is_cut | is_long).sum()))
        if is_long.any():
            places = np.arange(len(numbers)) - np.repeat(np.cumsum(counts) - counts, counts)
            numbers = numbers[places < self.max_tokens]
            counts = np.minimum(counts, self.max_tokens)
        if self._ignored_token is not None:
            kept = numbers != self._ignored_token
            ends = np.append(0, np.cumsum(kept))[np.cumsum(counts)]
            numbers, counts = numbers[kept], np.diff(ends, prepend=0)
        return numbers, counts


def _unknown_token(tokenizer: Tokenizer) -> int | None:
    """Id of the token for unknown words; None if there is none."""
    if hasattr(tokenizer.model, "unk_token"):
        number = tokenizer.token_to_id(tokenizer.model.unk_token or "")
    else:
        number = json.loads(tokenizer.to_str())["model"].get("unk_id")
    return None if number is None else int(number)
