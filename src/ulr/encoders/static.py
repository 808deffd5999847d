"""The embedded encoder: static token vectors, averaged. No network, no PyTorch, no padding."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file
from scipy.sparse import csr_array
from tokenizers import Tokenizer

from ulr.encoders.tokens import Pieces, Tokenize, WholeTexts
from ulr.encoders.weights import PackagedFile
from ulr.errors import EncoderError

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

    Attributes
    ----------
    truncated
        Texts cut so far.
    """

    def __init__(
        self,
        vectors: NDArray[np.float32],
        tokenizer: Tokenizer,
        *,
        max_tokens: int = 4096,
        fingerprint: str = "static",
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
        # Summed as a sparse product: row by row, in token order, with nothing padded or gathered.
        occurrences = csr_array(
            (np.ones(len(tokens), dtype=np.float32), tokens, np.append(0, np.cumsum(counts))),
            shape=(len(counts), len(self._vectors)),
        )
        means: NDArray[np.float32] = occurrences @ self._vectors
        means /= np.maximum(counts, 1)[:, None].astype(np.float32)
        return means


class _Embedded(StaticEncoder):
    """The packaged weights, pickled as a reference to the package rather than as 32 MB."""

    spec = "static"

    def __reduce__(self) -> tuple[Any, ...]:
        return StaticEncoder.embedded, (self.max_tokens,)
