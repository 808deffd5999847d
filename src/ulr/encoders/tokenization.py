"""Texts to token ids, with a tokenizer for whole texts or for memoised pieces of texts.

Both return the tokens of many texts as one flat array, and the number of tokens of each text.
"""

from __future__ import annotations

import copy
import json
from itertools import chain
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from tokenizers import Encoding, Tokenizer, normalizers

from ulr.pieces import MAX_PIECES, SPACE, PieceIntegers, Vocabulary, pieces_of
from ulr.pieces import replace_surrogates as replace_surrogates

Tokens = tuple[NDArray[np.int32], NDArray[np.int64]]

ALL = slice(None)
_JOINED_PIECES = 512
_CHARACTERS_PER_TOKEN = 1000


class TextTokenizer(Protocol):
    """Tokenizes many texts at once."""

    def __call__(self, texts: list[str], rows: slice = ALL, /) -> Tokens:
        """Token ids of some texts, (n_tokens,), and their number per text, (n_texts,)."""
        ...

    def max_characters(self, max_tokens: int) -> int:
        """Characters of a text that are enough for its first `max_tokens` tokens."""
        ...


class WholeTextTokenizer:
    """Applies a tokenizer to whole texts."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        tokenizer.no_truncation()
        tokenizer.no_padding()
        self._tokenizer = tokenizer

    def __call__(self, texts: list[str], rows: slice = ALL, /) -> Tokens:
        """Token ids of some texts, and their number per text."""
        texts = texts[rows]
        try:
            encoded = self._tokenizer.encode_batch_fast(texts, add_special_tokens=False)
        except TypeError:  # a lone surrogate
            valid = [replace_surrogates(text) for text in texts]
            encoded = self._tokenizer.encode_batch_fast(valid, add_special_tokens=False)
        counts = np.fromiter((len(each.ids) for each in encoded), np.int64, count=len(encoded))
        ids = chain.from_iterable(each.ids for each in encoded)
        return np.fromiter(ids, np.int32, count=int(counts.sum())), counts

    def max_characters(self, max_tokens: int) -> int:
        """See `max_characters`."""
        return max_characters(max_tokens)


class PieceTokenizer:
    """Splits texts at spaces and line ends, and tokenizes each piece only once.

    For a tokenizer that replaces spaces by ``▁``, puts one before the text, does not split texts
    itself, and has no token with a line end or with a ``▁`` after another character: no token
    crosses a piece, so the tokens are those of the whole text. Threads may share it.

    Parameters
    ----------
    tokenizer
        Such a tokenizer.
    max_pieces
        Most pieces to remember; with more, all are forgotten.
    """

    def __init__(self, tokenizer: Tokenizer, max_pieces: int = MAX_PIECES) -> None:
        self._special = [token.content for token in tokenizer.get_added_tokens_decoder().values()]
        self._longest_token = max(map(len, tokenizer.get_vocab()))
        self._whole = WholeTextTokenizer(tokenizer)
        self._pieces = copy.deepcopy(tokenizer)
        self._pieces.normalizer = normalizers.Sequence([])
        self._line_end = self._pieces.encode("\n", add_special_tokens=False).ids
        self._tokens = PieceIntegers(self._tokenize, self._line_end)
        self._vocabulary = Vocabulary(max_pieces)

    def __call__(self, texts: list[str], rows: slice = ALL, /) -> Tokens:
        """Token ids of some texts, and their number per text."""
        some = texts[rows]
        if any("<" in text and any(each in text for each in self._special) for text in some):
            return self._whole(some)
        vocabulary = self._vocabulary = self._vocabulary.renewed()
        return self._tokens(pieces_of(texts, rows, vocabulary))

    def max_characters(self, max_tokens: int) -> int:
        """Characters of a text that are enough for its first `max_tokens` tokens.

        No token is longer than the longest of the vocabulary. Twice as many characters keep the
        end of an unbroken piece, where a cut may change tokens, away from the tokens that are used.
        """
        return 2 * max_tokens * self._longest_token

    def _tokenize(self, pieces: list[str]) -> Tokens:
        """Tokens of pieces, many per call with line ends between them."""
        joined = [
            "\n".join([*pieces[i : i + _JOINED_PIECES], ""]).replace(" ", SPACE)
            for i in range(0, len(pieces), _JOINED_PIECES)
        ]
        encoded = self._pieces.encode_batch_fast(joined, add_special_tokens=False)
        tokens = np.concatenate([np.array(each.ids, dtype=np.int32) for each in encoded])
        is_end = tokens == self._line_end[0]
        ends = np.flatnonzero(is_end) - np.arange(len(pieces))
        return tokens[~is_end], np.diff(ends, prepend=0)


def max_characters(max_tokens: int) -> int:
    """Characters of a text that are tokenized to get its first `max_tokens` tokens.

    1,000 per token, which bounds time and memory. Longer texts are cut, which changes a result only
    if a token covers more than that on average: long runs of blanks, or words that become a single
    unknown token.
    """
    return _CHARACTERS_PER_TOKEN * max_tokens


def count_truncated(texts: list[str], encoded: list[Encoding], max_tokens: int) -> int:
    """Number of texts that were truncated, given their tokens from a tokenizer that truncates."""
    most = max_characters(max_tokens)
    pairs = zip(texts, encoded, strict=True)
    return sum(len(text) > most or bool(each.overflowing) for text, each in pairs)


def unknown_token(tokenizer: Tokenizer) -> int | None:
    """Id of the token for unknown words; None if there is none."""
    if not hasattr(tokenizer.model, "unk_token"):
        number = json.loads(tokenizer.to_str())["model"].get("unk_id")
    else:
        unknown = tokenizer.model.unk_token
        number = None if unknown is None else tokenizer.token_to_id(unknown)
    return None if number is None else int(number)


def is_one_token(tokenizer: Tokenizer, word: str, unknown: int | None) -> bool:
    """Whether a word is a single token, other than the one for unknown words."""
    ids = tokenizer.encode(replace_surrogates(word), add_special_tokens=False).ids
    return len(ids) == 1 and ids[0] != unknown
