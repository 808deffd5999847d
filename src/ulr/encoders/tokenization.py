"""Texts to token ids, with a tokenizer for whole texts or for memoised pieces of texts.

Both return the tokens of many texts as one flat array, and the number of tokens of each text.
"""

from __future__ import annotations

import copy
import json
import threading
from itertools import chain
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from tokenizers import Encoding, Tokenizer, normalizers

Tokens = tuple[NDArray[np.int32], NDArray[np.int64]]

_SPACE = "▁"
_JOINED_PIECES = 512
_MAX_PIECES = 500_000
_TOKENS_PER_PIECE = 20
_CHARACTERS_PER_TOKEN = 1000


class TextTokenizer(Protocol):
    """Tokenizes many texts at once."""

    def __call__(self, texts: list[str], /) -> Tokens:
        """Token ids of all texts, (n_tokens,), and their number per text, (n_texts,)."""
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

    def __call__(self, texts: list[str], /) -> Tokens:
        """Token ids of all texts, and their number per text."""
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
        Most pieces in the memo; with more, it is emptied.
    """

    def __init__(self, tokenizer: Tokenizer, max_pieces: int = _MAX_PIECES) -> None:
        self._special = [token.content for token in tokenizer.get_added_tokens_decoder().values()]
        self._longest_token = max(map(len, tokenizer.get_vocab()))
        self._whole = WholeTextTokenizer(tokenizer)
        self._pieces = copy.deepcopy(tokenizer)
        self._pieces.normalizer = normalizers.Sequence([])
        self._line_end = self._pieces.encode("\n", add_special_tokens=False).ids
        self._max_pieces = max_pieces
        self._memo = self._new_memo()

    def __call__(self, texts: list[str], /) -> Tokens:
        """Token ids of all texts, and their number per text."""
        if any("<" in text and any(each in text for each in self._special) for text in texts):
            return self._whole(texts)
        memo = self._memo  # another thread may replace it
        split = [_split(text) if text else [] for text in texts]
        pieces = list(chain.from_iterable(split))
        try:
            self._learn(memo, [piece for piece in set(pieces) if piece not in memo.numbers])
        except TypeError:  # a lone surrogate
            return self._whole(texts)
        number = np.fromiter(map(memo.numbers.__getitem__, pieces), np.int64, count=len(pieces))
        all_starts, all_tokens = memo.arrays  # read after the numbers, so that it has all of them
        starts = all_starts[number]
        lengths = all_starts[number + 1] - starts
        ends = np.append(0, np.cumsum(lengths))
        indices = np.repeat(starts - ends[:-1], lengths) + np.arange(ends[-1])
        pieces_per_text = np.fromiter(map(len, split), np.int64, count=len(split))
        per_text = np.diff(ends[np.append(0, np.cumsum(pieces_per_text))])
        n_pieces, n_tokens = len(memo.numbers), len(all_tokens)
        if n_pieces > self._max_pieces or n_tokens > _TOKENS_PER_PIECE * self._max_pieces:
            self._memo = self._new_memo()
        return all_tokens[indices], per_text

    def max_characters(self, max_tokens: int) -> int:
        """Characters of a text that are enough for its first `max_tokens` tokens.

        No token is longer than the longest of the vocabulary. Twice as many characters keep the
        end of an unbroken piece, where a cut may change tokens, away from the tokens that are used.
        """
        return 2 * max_tokens * self._longest_token

    def _learn(self, memo: _Memo, new: list[str]) -> None:
        """Tokenize new pieces, many per call with line ends between them."""
        if not new:
            return
        joined = [
            "\n".join([*new[i : i + _JOINED_PIECES], ""])
            for i in range(0, len(new), _JOINED_PIECES)
        ]
        encoded = self._pieces.encode_batch_fast(joined, add_special_tokens=False)
        tokens = np.concatenate([np.array(each.ids, dtype=np.int32) for each in encoded])
        is_end = tokens == self._line_end[0]
        ends = np.flatnonzero(is_end) - np.arange(len(new))
        memo.add(new, ends, tokens[~is_end])

    def _new_memo(self) -> _Memo:
        memo = _Memo()
        memo.add(["", "\n"], np.array([0, len(self._line_end)]), np.array(self._line_end))
        return memo


class _Memo:
    """Tokens of pieces of text; pieces are only added.

    Threads read without a lock: a piece is numbered after its tokens are in `arrays`, and a
    number means the same in all later `arrays`.

    Attributes
    ----------
    numbers
        The number of each piece.
    arrays
        Starts, (n_pieces + 1,), and tokens, (n_tokens,); the tokens of piece i are those from
        ``starts[i]`` to ``starts[i + 1]``. Replaced together, never changed.
    """

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        self.arrays = np.zeros(1, dtype=np.int64), np.empty(0, dtype=np.int32)
        self._lock = threading.Lock()

    def add(self, pieces: list[str], ends: NDArray[np.int64], tokens: NDArray[np.int32]) -> None:
        """Append pieces; one that another thread has added meanwhile gets a second number."""
        with self._lock:
            starts, known = self.arrays
            first = len(starts) - 1
            self.arrays = (
                np.concatenate([starts, len(known) + ends]),
                np.concatenate([known, tokens.astype(np.int32)]),
            )
            self.numbers.update((piece, first + i) for i, piece in enumerate(pieces))


def _split(text: str) -> list[str]:
    """Pieces that make up the text with ``▁`` for its spaces; some may be empty."""
    text = _SPACE + text.replace(" ", " " + _SPACE)
    while f"{_SPACE} {_SPACE}" in text:  # a run of spaces is one piece
        text = text.replace(f"{_SPACE} {_SPACE}", _SPACE + _SPACE)
    return text.replace("\n", " \n ").split(" ")


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


def replace_surrogates(text: str) -> str:
    """Replace lone surrogates, which half of an emoji leaves; tokenizers refuse them."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


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
