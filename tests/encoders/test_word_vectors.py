"""Files of word vectors: every form is read alike and converted once."""

import gzip
import os
import re
import zipfile

import numpy as np
import pytest

from ulr.encoders.word_vectors import WordVectors, open_word_file
from ulr.errors import EncoderError

WORDS = [
    "the",
    "Straße",
    "日本語",
    "'s",
    "1,000",
    "-",
    '"quoted',
    "no\u00a0break",
    "next\u0085line",
]
NUMBERS = np.arange(27, dtype=np.float32).reshape(9, 3) / 8 - 1


def lines(words=WORDS, numbers=NUMBERS, end="\n"):
    rows = zip(words, numbers.tolist(), strict=True)
    return "".join(f"{word} {' '.join(map(repr, row))}{end}" for word, row in rows).encode()


FORMS = {
    "glove": lines(),
    "word2vec": b"9 3\n" + lines(),
    "fasttext": b"9 3\n" + lines(end=" \n"),
    "windows": lines(end="\r\n"),
    "byte order mark": b"\xef\xbb\xbf9 3\n" + lines(),
    "mark without counts": b"\xef\xbb\xbf" + lines(),
    "no last line end": lines()[:-1],
    "blank lines": lines() + b"\n\n",
    "tabs": lines().replace(b" ", b"\t"),
    "wide": lines().replace(b" ", b"   "),
}


def plain(path, text):
    path.write_bytes(text)
    return path


def gzipped(path, text):
    path.write_bytes(gzip.compress(text))
    return path


def zipped(path, text, name="vectors.txt", **others):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for each, content in {name: text, **others}.items():
            archive.writestr(each, content)
    return path


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def many(tmp_path):
    """300 words of 4 dimensions, on some 9,000 bytes."""
    numbers = np.random.default_rng(0).normal(size=(300, 4)).astype(np.float32)
    words = [f"word{i}" for i in range(300)]
    return words, numbers, plain(tmp_path / "many.txt", lines(words, numbers))


@pytest.mark.parametrize("pack", [plain, gzipped, zipped])
@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_words_and_vectors(tmp_path, form, pack):
    vectors = open_word_file(pack(tmp_path / "vectors", FORMS[form]))
    assert list(vectors.rows) == WORDS
    np.testing.assert_array_equal(vectors.matrix, NUMBERS)
    assert list(vectors.rows.values()) == list(range(9))
    assert vectors.malformed_lines == 0


def test_words_may_have_spaces(tmp_path):
    words = [".", ". . .", "at name@domain.com", "0.5", "1 of 2", "x"]
    vectors = open_word_file(plain(tmp_path / "v.txt", lines(words, NUMBERS[:6])))
    assert list(vectors.rows) == words
    np.testing.assert_array_equal(vectors.matrix, NUMBERS[:6])


def test_a_single_line_is_enough(tmp_path):
    vectors = open_word_file(plain(tmp_path / "v.txt", b"one 1 2 3 4"))
    assert (list(vectors.rows), vectors.matrix.tolist()) == (["one"], [[1, 2, 3, 4]])


@pytest.mark.parametrize(
    "bad",
    [b"few 1 2", b"many 1 2 3 4 5", b"text 1 2 x 4", b"nan 1 2 nan 4", b"inf 1 2 3 1e999",
     b"word", b" 1 2 3 4", b"a\rb 1 2 3 x", b"\xff\xfe 1 2 3 \xff"],
)  # fmt: skip
def test_malformed_lines_are_left_out_and_counted(many, bad):
    words, numbers, path = many
    given = path.read_bytes().split(b"\n")
    path.write_bytes(b"\n".join([*given[:7], bad, *given[7:200], bad, *given[200:]]))
    vectors = open_word_file(path)
    assert vectors.malformed_lines == 2
    assert list(vectors.rows) == words
    np.testing.assert_array_equal(vectors.matrix, numbers)


def test_more_than_one_malformed_line_in_a_hundred_is_refused(many):
    _, _, path = many
    given = path.read_bytes().split(b"\n")
    path.write_bytes(b"\n".join([*given[:7], *[b"short 1 2"] * 4, *given[7:]]))
    message = "a word and 4 numbers; 4 of 304 lines are different, such as 'short 1 2'"
    with pytest.raises(EncoderError, match=message):
        open_word_file(path)
    assert names(path.parent) == ["many.txt"]


def test_of_a_word_given_twice_the_first_counts(tmp_path):
    path = plain(tmp_path / "v.txt", b"a 1 1\nb 2 2\na 3 3\na 4 4\nc 5 5\nb 6 6\n")
    vectors = open_word_file(path)
    assert {word: vectors.matrix[row, 0] for word, row in vectors.rows.items()} == {
        "a": 1, "b": 2, "c": 5
    }  # fmt: skip


def test_bytes_that_are_not_utf8_are_replaced(tmp_path):
    vectors = open_word_file(plain(tmp_path / "v.txt", b"a 1 1\ncaf\xe9 2 2\nna\xc3\xafve 3 3\n"))
    assert list(vectors.rows) == ["a", "caf\ufffd", "naïve"]


def test_conversion_is_mapped_and_lies_beside_the_file(many):
    _, _, path = many
    vectors = open_word_file(path)
    assert isinstance(vectors.matrix.base, np.memmap)
    assert names(path.parent) == ["many.txt", "many.txt.ulr"]
    assert names(path.parent / "many.txt.ulr") == ["about.json", "vectors.npy", "words.txt"]


def test_progress_goes_to_the_size_of_the_file(many):
    _, _, path = many
    calls = []
    open_word_file(path, None, lambda *call: calls.append(call))
    assert calls[-1] == (path.stat().st_size, path.stat().st_size)


def test_hash_depends_on_the_file(tmp_path):
    paths = [tmp_path / "a", tmp_path / "b"]
    plain(paths[0], lines())
    plain(paths[1], lines(numbers=NUMBERS + 1))
    assert len({open_word_file(path).sha256 for path in paths}) == 2


def test_changed_file_is_converted_anew(many):
    words, numbers, path = many
    open_word_file(path)
    path.write_bytes(lines(words, numbers * 2))
    np.testing.assert_array_equal(open_word_file(path).matrix, numbers * 2)
    assert names(path.parent) == ["many.txt", "many.txt.ulr"]


def test_files_of_one_name_do_not_meet_in_a_cache(tmp_path):
    for folder, factor in (("a", 1), ("b", 2)):
        (tmp_path / folder).mkdir()
        path = plain(tmp_path / folder / "v.txt", lines(numbers=NUMBERS * factor))
        vectors = open_word_file(path, tmp_path / "deep" / "cache")
        np.testing.assert_array_equal(vectors.matrix, NUMBERS * factor)
        assert names(path.parent) == ["v.txt"]
    assert len(names(tmp_path / "deep" / "cache")) == 2


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "must have lines of a word and its numbers; it starts with nothing"),
        (b"A text.\nAnother one, longer.\n", "a word and its numbers; it starts with 'A text.'"),
        (b"1 x\n1 2\n1 2 3\n", "a word and 1 numbers; 2 of 3 lines are different"),
        (b"\x80\x04\x95" * 99, "it starts with '\ufffd.*…'"),
        (b"x" * (3 << 20), "it starts with 'xxx"),
        (b"no vectors here 1\n" + b"nothing\n" * 5000, "of a word and its numbers"),
    ],
    ids=["empty", "prose", "hardly any", "binary", "endless line", "long"],
)
def test_other_files_are_refused(tmp_path, content, message):
    path = plain(tmp_path / "v.txt", content)
    with pytest.raises(EncoderError, match=message):
        open_word_file(path)
    assert names(tmp_path) == ["v.txt"]


@pytest.mark.parametrize("kept", [0.2, 0.6, 0.99])
@pytest.mark.parametrize("pack", [gzipped, zipped])
def test_packed_files_that_are_cut_short_are_refused(many, tmp_path, pack, kept):
    path = pack(tmp_path / "packed", many[2].read_bytes())
    os.truncate(path, int(path.stat().st_size * kept))
    with pytest.raises(EncoderError, match="packed is incomplete or damaged"):
        open_word_file(path, tmp_path / "cache")
    assert names(tmp_path / "cache") == []


def test_damaged_archives_are_refused(many, tmp_path):
    path = zipped(tmp_path / "packed.zip", many[2].read_bytes())
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 255
    path.write_bytes(content)
    with pytest.raises(EncoderError, match="is incomplete or damaged"):
        open_word_file(path, tmp_path / "cache")
    assert names(tmp_path / "cache") == []


def test_the_only_file_of_vectors_of_an_archive_is_taken(tmp_path):
    others = {"README.md": "about", "__MACOSX/._v.vec": "x", "folder/": ""}
    path = zipped(tmp_path / "v.zip", FORMS["fasttext"], "folder/v.vec", **others)
    assert list(open_word_file(path).rows) == WORDS


@pytest.mark.parametrize(
    ("name", "others", "message"),
    [
        ("a.50d.txt", {"a.100d.txt": ""}, r"it holds a\.50d\.txt, a\.100d\.txt\. Extract it"),
        ("a.md", {"b.bin": ""}, r"must hold one file of word vectors; it holds a\.md, b\.bin\."),
        ("empty/", {}, r"it holds none\."),
    ],
)
def test_archives_of_several_files_are_refused(tmp_path, name, others, message):
    path = zipped(tmp_path / "v.zip", b"" if name == "empty/" else FORMS["glove"], name, **others)
    with pytest.raises(EncoderError, match=message):
        open_word_file(path)
    assert names(tmp_path) == ["v.zip"]


def test_archives_with_a_password_are_refused(tmp_path):
    path = zipped(tmp_path / "v.zip", FORMS["glove"])
    content = bytearray(path.read_bytes())
    for place in (6, content.index(b"PK\x01\x02") + 8):
        content[place] |= 1
    path.write_bytes(content)
    with pytest.raises(EncoderError, match=r"v\.zip cannot be extracted: .*password"):
        open_word_file(path)


def test_missing_files_are_named(tmp_path):
    for path in (tmp_path / "none.txt", tmp_path):
        message = f"there is no file of word vectors {re.escape(str(path))}"
        with pytest.raises(EncoderError, match=message):
            open_word_file(path)


@pytest.mark.parametrize(("words", "shape"), [(["a"], (2, 3)), (["a", "b"], (2,)), ([], (0, 3))])
def test_words_without_a_vector_each_are_refused(words, shape):
    with pytest.raises(EncoderError, match="words and vectors must be of the same number"):
        WordVectors.of(words, np.ones(shape, dtype=np.float32))
