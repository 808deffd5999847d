"""Pieces of texts, and integers that are looked up by them."""

import re
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ulr.encoders import PieceMemo, SplitTexts

strange = st.text(
    st.one_of(st.sampled_from(list(" \n\t▁aBΣ.,'")), st.characters(exclude_categories=["Cs"]))
)


def split_by_python(text):
    return re.findall(r"\n| +[^ \n]*|[^ \n]+", " " + text.replace("▁", " ") if text else "")


@given(st.lists(strange, max_size=6))
@settings(deadline=None, max_examples=200)
def test_texts_are_split_at_spaces_and_line_ends(texts):
    pieces = SplitTexts(texts).pieces(slice(0, len(texts)))
    ends = np.cumsum(pieces.counts)
    found = [pieces.distinct[place] for place in pieces.places]
    listed = [found[end - n : end] for end, n in zip(ends, pieces.counts, strict=True)]
    assert listed == [split_by_python(text) for text in texts]
    assert len(set(pieces.distinct)) == len(pieces.distinct)


def lengths_of(pieces):
    """Each piece stands for its length, as often as it is long."""
    lengths = np.array([len(piece) for piece in pieces])
    return np.repeat(lengths, lengths).astype(np.int32), lengths


def test_integers_stay_the_same_while_the_memo_grows_and_is_emptied():
    memo = PieceMemo(lengths_of, line_end=[7, 7], max_pieces=300)
    for start in range(0, 5000, 50):
        texts = [f"{'x' * (i % 9)} {i}\n" for i in range(start, start + 50)]
        for given_texts in (texts, SplitTexts(texts)):
            values, counts = memo(given_texts)
            ends = np.cumsum(counts)
            for text, end, count in zip(texts, ends, counts, strict=True):
                expected = []
                for piece in split_by_python(text):
                    expected += [7, 7] if piece == "\n" else [len(piece)] * len(piece)
                assert values[end - count : end].tolist() == expected


def test_threads_get_the_same_integers_while_the_memo_is_emptied():
    memo = PieceMemo(lengths_of, max_pieces=100)
    batches = [[f"{'x' * (i % 9)} {i}" for i in range(n, n + 300)] for n in range(0, 3000, 60)]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(memo, batches))
    for batch, (values, counts) in zip(batches, found, strict=True):
        pieces = [piece for text in batch for piece in split_by_python(text)]
        assert values.tolist() == [len(piece) for piece in pieces for _ in piece]
        assert counts.tolist() == [len(text) + 1 for text in batch]


def test_two_memos_of_the_same_split_texts_keep_their_own_integers():
    first = PieceMemo(
        lambda pieces: (np.zeros(len(pieces), np.int32), np.ones(len(pieces), int)), max_pieces=150
    )
    second = PieceMemo(lengths_of, max_pieces=200)
    batches = [[f"{'x' * (i % 9)} {i}" for i in range(n, n + 300)] for n in range(0, 3000, 60)]

    def both(batch):
        texts = SplitTexts(batch)
        return first(texts), second(texts)

    second(SplitTexts(batches[3]))
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(both, batches))
    for batch, ((zeros, n_pieces), (values, counts)) in zip(batches, found, strict=True):
        pieces = [split_by_python(text) for text in batch]
        assert n_pieces.tolist() == list(map(len, pieces))
        assert not zeros.any()
        assert values.tolist() == [len(p) for text in pieces for p in text for _ in p]
        assert counts.tolist() == [len(text) + 1 for text in batch]


def test_each_piece_is_computed_once():
    asked = []
    memo = PieceMemo(lambda pieces: asked.extend(pieces) or lengths_of(pieces))
    for texts in (["a b", "b c\n"], ["c a d"], []):
        memo(texts)
    assert asked == [" a", " b", " c", " d"]


def test_split_texts_are_a_list_that_is_split_once():
    texts = SplitTexts(["a b", "c", ""])
    assert texts == ["a b", "c", ""]
    assert texts.pieces(slice(0, 3)) is texts.pieces(slice(0, 3))
