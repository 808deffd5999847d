"""Texts to token numbers: through a tokenizer as it is, or piece by piece with a memory.

Both give the tokens of many texts as one flat array and the number of tokens of each text.
"""

from __future__ import annotations

import copy
from itertools import chain
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer, normalizers

Tokens = tuple[NDArray[np.int32], NDArray[np.int64]]

_SPACE = "▁"
_JOINED_PIECES = 512
_MOST_PIECES = 500_000


class Tokenize(Protocol):
    """Gives the tokens of texts: all of them in a row, and how many each text has."""

    def __call__(self, texts: list[str], /) -> Tokens:
        """Token numbers, (n_tokens,), and their number per text, (n_texts,)."""
        ...


class WholeTexts:
    """Every text goes through the tokenizer."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        tokenizer.no_truncation()
        tokenizer.no_padding()
        self._tokenizer = tokenizer

    def __call__(self, texts: list[str], /) -> Tokens:
        """Token numbers and their number per text."""
        try:
            encoded = self._tokenizer.encode_batch_fast(texts, add_special_tokens=False)
        except TypeError:  # half a character, as a cut emoji leaves it, is no Unicode
            whole = [whole_characters(text) for text in texts]
            encoded = self._tokenizer.encode_batch_fast(whole, add_special_tokens=False)
        return _flat([each.ids for each in encoded])


class Pieces:
    """A text is cut at spaces and line ends, and every piece is tokenized only once.

    Fit for a tokenizer that puts ``▁`` for spaces and before the text, splits nothing itself, and
    has no token with a ``▁`` after another character or with a line end: then no token crosses
    a cut, and the tokens are those of the whole text.

    Parameters
    ----------
    tokenizer
        Such a tokenizer.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._special = [token.content for token in tokenizer.get_added_tokens_decoder().values()]
        self._whole = WholeTexts(tokenizer)
        self._pieces = copy.deepcopy(tokenizer)
        self._pieces.normalizer = normalizers.Sequence([])
        self._line_end = self._pieces.encode("\n", add_special_tokens=False).ids
        # Pieces are numbered; the tokens of all of them lie in a row, those of number i from
        # starts[i] to starts[i + 1].
        self._numbers: dict[str, int] = {"": 0, "\n": 1}
        self._tokens = np.array(self._line_end, dtype=np.int32)
        self._starts = np.array([0, 0, len(self._line_end)], dtype=np.int64)

    def __call__(self, texts: list[str], /) -> Tokens:
        """Token numbers and their number per text."""
        if any("<" in text and any(each in text for each in self._special) for text in texts):
            return self._whole(texts)
        cut = [_cut(text) if text else [] for text in texts]
        pieces = list(chain.from_iterable(cut))
        try:
            self._learn(set(pieces).difference(self._numbers))
        except TypeError:  # half a character
            return self._whole(texts)
        number = np.fromiter(map(self._numbers.__getitem__, pieces), np.int64, count=len(pieces))
        starts = self._starts[number]
        lengths = self._starts[number + 1] - starts
        ends = np.append(0, np.cumsum(lengths))
        places = np.repeat(starts - ends[:-1], lengths) + np.arange(ends[-1])
        pieces_per_text = np.fromiter(map(len, cut), np.int64, count=len(cut))
        per_text = np.diff(ends[np.append(0, np.cumsum(pieces_per_text))])
        tokens = self._tokens[places]
        self._forget()
        return tokens, per_text

    def _learn(self, unknown: set[str]) -> None:
        """Tokenize pieces not met before, many in one go with line ends between them."""
        if not unknown:
            return
        new = list(unknown)
        joined = [
            "\n".join([*new[i : i + _JOINED_PIECES], ""])
            for i in range(0, len(new), _JOINED_PIECES)
        ]
        encoded = self._pieces.encode_batch_fast(joined, add_special_tokens=False)
        tokens = np.concatenate([np.array(each.ids, dtype=np.int32) for each in encoded])
        is_end = tokens == self._line_end[0]
        ends = np.flatnonzero(is_end) - np.arange(len(new))
        first = len(self._numbers)
        self._numbers.update((piece, first + i) for i, piece in enumerate(new))
        self._starts = np.concatenate([self._starts, len(self._tokens) + ends])
        self._tokens = np.concatenate([self._tokens, tokens[~is_end]])

    def _forget(self) -> None:
        """Keep the memory bounded."""
        if len(self._numbers) > _MOST_PIECES:
            self._numbers = {"": 0, "\n": 1}
            self._starts, self._tokens = self._starts[:3], self._tokens[: len(self._line_end)]


def _cut(text: str) -> list[str]:
    """Pieces that make up the text with ``▁`` for its spaces; some may be empty."""
    text = _SPACE + text.replace(" ", " " + _SPACE)
    while f"{_SPACE} {_SPACE}" in text:  # a run of spaces is one piece
        text = text.replace(f"{_SPACE} {_SPACE}", _SPACE + _SPACE)
    return text.replace("\n", " \n ").split(" ")


def _flat(tokens: list[list[int]]) -> Tokens:
    counts = np.fromiter(map(len, tokens), np.int64, count=len(tokens))
    return np.fromiter(chain.from_iterable(tokens), np.int32, count=int(counts.sum())), counts


def whole_characters(text: str) -> str:
    """The text with every surrogate that has lost its other half replaced."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
