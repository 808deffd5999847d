"""Pieces of texts, and integers that are looked up by them."""

import re
from zlib import crc32

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ulr.pieces import PieceIntegers, SplitTexts, Vocabulary, map_slices, pieces_of, split_pieces
from ulr.word_counts import N_COLUMNS, WordCounter, count_words

strange = st.text(
    st.one_of(st.sampled_from(list(" \n\t▁aBΣ.,'")), st.characters(exclude_categories=["Cs"]))
)


def split_by_python(text):
    return re.findall(r"\n| +[^ \n]*|[^ \n]+", " " + text.replace("▁", " ") if text else "")


def listed(pieces):
    """The pieces of each text."""
    ends = np.cumsum(pieces.counts)
    found = [pieces.vocabulary.pieces[number] for number in pieces.distinct[pieces.places]]
    return [found[end - count : end] for end, count in zip(ends, pieces.counts, strict=True)]


@given(st.lists(strange, max_size=6))
@settings(deadline=None, max_examples=200)
def test_texts_are_split_at_spaces_and_line_ends(texts):
    pieces = split_pieces(texts, Vocabulary())
    assert listed(pieces) == [split_by_python(text) for text in texts]
    assert len(set(pieces.vocabulary.pieces)) == len(pieces.vocabulary.pieces)


@given(st.lists(strange, max_size=6))
@settings(deadline=None, max_examples=200)
def test_words_of_pieces_are_those_of_the_texts(texts):
    counts = count_words(texts)
    for text, row in zip(texts, counts, strict=True):
        words = re.findall(r"\w\w+", text.lower())
        columns = [crc32(word.encode()) % N_COLUMNS for word in words]
        expected = {column: float(columns.count(column)) for column in columns}
        assert dict(zip(row.indices.tolist(), row.data.tolist(), strict=True)) == expected


def lengths_of(pieces):
    """Each piece stands for its length, as often as it is long."""
    lengths = np.array([len(piece) for piece in pieces])
    return np.repeat(lengths, lengths).astype(np.int32), lengths


def test_integers_stay_the_same_while_the_vocabulary_grows_and_is_emptied():
    integers, vocabulary = PieceIntegers(lengths_of, line_end=[7, 7]), Vocabulary(300)
    vocabularies = {vocabulary}
    for start in range(0, 5000, 50):
        texts = [f"{'x' * (i % 9)} {i}\n" for i in range(start, start + 50)]
        vocabulary = vocabulary.renewed()
        vocabularies.add(vocabulary)
        values, counts = integers(split_pieces(texts, vocabulary))
        ends = np.cumsum(counts)
        for text, end, count in zip(texts, ends, counts, strict=True):
            expected = []
            for piece in split_by_python(text):
                expected += [7, 7] if piece == "\n" else [len(piece)] * len(piece)
            assert values[end - count : end].tolist() == expected
    assert len(vocabularies) > 10
    assert max(len(each.pieces) for each in vocabularies) < 500


def test_split_texts_are_a_list_that_is_split_once():
    texts = SplitTexts(["a b", "c", ""])
    whole, first = slice(0, 3), slice(0, 2)
    assert texts == ["a b", "c", ""]
    assert texts[:16] is texts
    assert type(texts[first]) is list
    assert texts[-1] == ""
    ours, other = Vocabulary(), Vocabulary()
    assert texts.pieces(whole, ours) is texts.pieces(whole, other)
    assert listed(pieces_of(texts, first, ours)) == listed(pieces_of(list(texts), first, other))


def test_slices_cover_the_texts_in_order_and_are_bounded():
    texts = ["a" * 3_000_000, "b" * 3_000_000, "c" * 9_000_000, *["d"] * 40_000]
    slices = map_slices(lambda rows: rows, texts)
    assert [place for rows in slices for place in range(rows.start, rows.stop)] == list(
        range(len(texts))
    )
    assert [rows.stop - rows.start for rows in slices[:3]] == [1, 1, 1]
    assert max(rows.stop - rows.start for rows in slices) <= 16_384
    assert map_slices(lambda rows: rows, []) == []


def test_counter_of_several_batches_counts_as_one():
    texts = [f"word{i % 700} common {i % 3}x" for i in range(5000)]
    counter = WordCounter()
    parts = [counter(texts[i : i + 617]) for i in range(0, 5000, 617)]
    whole = count_words(texts)
    np.testing.assert_array_equal(np.concatenate([part.indices for part in parts]), whole.indices)
    np.testing.assert_array_equal(np.concatenate([part.data for part in parts]), whole.data)
