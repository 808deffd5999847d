"""Tokens of pieces are those of the whole text."""

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from ulr.encoders.tokenization import PieceTokenizer, WholeTextTokenizer

PATH = Path(find_spec("wordllama").origin).parent / "tokenizers/l2_supercat_tokenizer_config.json"


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.from_file(str(PATH))


@pytest.fixture(scope="module")
def both(tokenizer):
    return PieceTokenizer(tokenizer), WholeTextTokenizer(tokenizer)


def assert_same(both, texts):
    for ours, whole in zip(*(tokenize(texts) for tokenize in both), strict=True):
        np.testing.assert_array_equal(ours, whole)


# Whatever is special to the tokenizer, often.
strange = st.text(
    st.one_of(
        st.sampled_from(list(" \n\t\r▁<s>/\u00a0\u2009")), st.characters(exclude_categories=["Cs"])
    )
)


@given(st.lists(strange, max_size=8))
@settings(deadline=None, max_examples=300)
def test_pieces_give_the_tokens_of_the_whole_text(both, texts):
    assert_same(both, texts)


@pytest.mark.parametrize(
    "text",
    ["", " ", "   ", "\n", "\n\n \n", " a", "a ", "a  b   c", "▁", "a▁ b", "▁ ▁", "x\n y", "<s>",
     "a </s> b", "word" * 500, "tab\there", "日本語 テキスト", "😀 😀"],
)  # fmt: skip
def test_spaces_line_ends_and_marks_are_kept(both, text):
    assert_same(both, [text])


def test_no_token_crosses_a_cut(tokenizer):
    for token in tokenizer.get_vocab():
        assert "▁" not in token.lstrip("▁")
        assert "\n" not in token


def test_tokens_are_right_after_the_memo_was_emptied(tokenizer):
    pieces, whole = PieceTokenizer(tokenizer, max_pieces=50), WholeTextTokenizer(tokenizer)
    for start in range(0, 1000, 20):
        texts = [f"word{start + i} common {i}" for i in range(20)]
        assert_same((pieces, whole), texts)


def test_half_a_character_is_replaced(both):
    assert_same(both, ["cut \ud83d emoji", "plain"])
