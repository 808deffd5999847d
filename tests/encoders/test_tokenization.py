"""Tokens of pieces are those of the whole text."""

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from ulr.encoders import SplitTexts
from ulr.encoders.tokenization import PieceTokenizer, WholeTextTokenizer

PATH = Path(find_spec("wordllama").origin).parent / "tokenizers/l2_supercat_tokenizer_config.json"


def load():
    return Tokenizer.from_file(str(PATH))


@pytest.fixture(scope="module")
def both():
    return PieceTokenizer(load()), WholeTextTokenizer(load())


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


def test_no_token_crosses_a_cut():
    for token in load().get_vocab():
        assert "▁" not in token.lstrip("▁")
        assert "\n" not in token


@pytest.mark.parametrize("kind", [list, SplitTexts])
def test_spaces_line_ends_and_special_tokens_are_kept(both, kind):
    texts = ["", " ", "   ", "\n", "\n\n \n", " a", "a ", "a  b   c", "▁", "a▁ b", "▁ ▁", "x\n y"]
    texts += ["<s>", "plain", "", "a </s> b", "x < y > z", "end<unk>", "last\n", "</s>"]
    texts += ["word" * 500, "tab\there", "日本語 テキスト", "😀 😀", "cut \ud83d emoji"]
    assert_same(both, kind(texts))
    assert_same(both, kind(texts * 60))  # which Arrow splits


def test_only_texts_with_special_tokens_are_tokenized_as_a_whole():
    pieces, whole = PieceTokenizer(load()), WholeTextTokenizer(load())
    asked = []
    pieces._whole = lambda texts: asked.append(texts) or whole(texts)
    texts = ["<s>", "plain", "", "a </s> b", "x < y > z", "end<unk>", "last\n", "</s>"]
    for kind in (list, SplitTexts):
        tokens, counts = pieces(kind(texts))
        for ours, expected in zip((tokens, counts), whole(texts), strict=True):
            np.testing.assert_array_equal(ours, expected)
    assert asked == [["<s>", "a </s> b", "end<unk>", "</s>"]] * 2
