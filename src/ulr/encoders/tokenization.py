"""Texts to token ids, and the limits that keep this fast and its results within a model."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from functools import cached_property
from itertools import chain

import numpy as np
from tokenizers import Encoding, Tokenizer, normalizers

from ulr.encoders.pieces import SPACE, PieceMemo, Ragged, replace_surrogates
from ulr.errors import EncoderError

_ALL = slice(None)
_JOINED_PIECES = 512
# Bounds time and memory. A longer text is cut, which changes a result only if a token covers more
# than that on average: long runs of blanks, or words that become a single unknown token.
CHARACTERS_PER_TOKEN = 1000


class WholeTextTokenizer:
    """Applies a tokenizer to whole texts."""

    characters_per_token = CHARACTERS_PER_TOKEN

    def __init__(self, tokenizer: Tokenizer) -> None:
        tokenizer.no_truncation()
        tokenizer.no_padding()
        self._tokenizer = tokenizer

    def __call__(self, texts: list[str], rows: slice = _ALL, /) -> Ragged:
        """Flat token ids of some texts, and their number per text."""
        texts = texts[rows]
        try:
            encoded = self._tokenizer.encode_batch_fast(texts, add_special_tokens=False)
        except TypeError:  # a lone surrogate
            valid = [replace_surrogates(text) for text in texts]
            encoded = self._tokenizer.encode_batch_fast(valid, add_special_tokens=False)
        counts = np.fromiter((len(each.ids) for each in encoded), np.int64, count=len(encoded))
        ids = chain.from_iterable(each.ids for each in encoded)
        return np.fromiter(ids, np.int32, count=int(counts.sum())), counts


class PieceTokenizer:
    """Splits texts at spaces and line ends, and tokenizes each piece only once.

    For a tokenizer that replaces spaces by ``▁``, puts one before the text, does not split texts
    itself, and has no token with a line end or with a ``▁`` after another character: no token
    crosses a piece, so the tokens are those of the whole text. Only a special token, such as
    ``<s>``, changes what follows it; texts with one are tokenized as a whole. The tokenizer belongs
    to this object afterwards.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._special = [token.content for token in tokenizer.get_added_tokens_decoder().values()]
        # Twice the longest token: a cut may change the last tokens of an unbroken piece, which are
        # then not among those that are used.
        self.characters_per_token = 2 * max(map(len, tokenizer.get_vocab()))
        tokenizer.no_truncation()
        tokenizer.no_padding()
        self._normalizer, self._pieces = tokenizer.normalizer, tokenizer
        self._pieces.normalizer = normalizers.Sequence([])
        self._line_end = self._pieces.encode("\n", add_special_tokens=False).ids
        self._memo = PieceMemo(self._tokenize, self._line_end)

    @cached_property
    def _whole(self) -> WholeTextTokenizer:
        """The tokenizer as it was given; few texts need it, and a copy takes as long as a hundred."""
        tokenizer = copy.deepcopy(self._pieces)
        tokenizer.normalizer = self._normalizer
        return WholeTextTokenizer(tokenizer)

    def __call__(self, texts: list[str], rows: slice = _ALL, /) -> Ragged:
        """Flat token ids of some texts, and their number per text."""
        some = texts[rows]
        tokens, counts = self._memo.of_slice(texts, rows)
        special = [
            row
            for row, text in enumerate(some)
            if "<" in text and any(each in text for each in self._special)
        ]
        if not special:
            return tokens, counts
        own_tokens, own_counts = self._whole([some[row] for row in special])
        is_special = np.zeros(len(some), dtype=bool)
        is_special[special] = True
        others = tokens[~np.repeat(is_special, counts)]
        counts = np.where(is_special, 0, counts)
        places = np.repeat(np.cumsum(counts)[special], own_counts)
        counts[special] = own_counts
        return np.insert(others, places, own_tokens), counts

    def _tokenize(self, pieces: list[str]) -> Ragged:
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


def clean_texts(texts: Sequence[str], max_tokens: int, side: str = "right") -> list[str]:
    """Texts for a tokenizer that truncates on a side: valid Unicode, of bounded length."""
    most = CHARACTERS_PER_TOKEN * max_tokens
    kept = slice(-most, None) if side == "left" else slice(most)
    return [replace_surrogates(text[kept]) for text in texts]


def n_truncated(texts: list[str], encoded: list[Encoding], max_tokens: int) -> int:
    """Number of texts that were truncated, given their tokens from a tokenizer that truncates."""
    most = CHARACTERS_PER_TOKEN * max_tokens
    pairs = zip(texts, encoded, strict=True)
    return sum(len(text) > most or bool(each.overflowing) for text, each in pairs)


def check_max_tokens(
    requested: int, tokenizer: Tokenizer, max_positions: int | None, name: str, *, pair: bool
) -> None:
    """Refuse a number of tokens of a text or a pair, special ones included, that is impossible."""
    least = tokenizer.num_special_tokens_to_add(pair) + 1
    if requested < least:
        raise EncoderError(f"max_tokens must be at least {least} for {name}; got {requested}.")
    if max_positions is not None and requested > max_positions:
        raise EncoderError(
            f"max_tokens must be at most {max_positions} for {name}, which has no positions for "
            f"more; got {requested}."
        )
