"""Files of word vectors: every form is read alike and converted once."""

import gzip
import os
import re
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pytest
from python_process import run_python

from ulr.encoders.words import open_word_file
from ulr.errors import EncoderError

WORDS = ["the", "Straße", "日本語", "'s", "1,000", "-", '"quoted', "no\u00a0break", "a\u0085b"]
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
    "blank lines, and no last line end": lines() + b"\n\n" + lines()[:-1],
    "tabs": lines().replace(b" ", b"\t"),
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


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"one 1 2 3 4", {"one": 1}),
        (b". 1 1\n. . . 2 2\nat name@domain.com 3 3\n0.5 4 4\n1 of 2 5 5\n",
         {".": 1, ". . .": 2, "at name@domain.com": 3, "0.5": 4, "1 of 2": 5}),
        (b"a 1 1\nb 2 2\na 3 3\na 4 4\nc 5 5\nb 6 6\n", {"a": 1, "b": 2, "c": 5}),
        (b"a 1 1\ncaf\xe9 2 2\nna\xc3\xafve 3 3\n", {"a": 1, "caf\ufffd": 2, "naïve": 3}),
    ],
    ids=["a single line", "spaces in words", "the first of equal words", "bytes that are no UTF-8"],
)  # fmt: skip
def test_strange_words_are_read(tmp_path, content, expected):
    vectors = open_word_file(plain(tmp_path / "v.txt", content))
    assert {word: vectors.matrix[row, 0] for word, row in vectors.rows.items()} == expected


@pytest.mark.parametrize(
    "bad",
    [b"few 1 2", b"many 1 2 3 4 5", b"text 1 2 x 4", b"nan 1 2 nan 4", b"inf 1 2 3 1e999",
     b"inf 1 2 3 1e39", b"word", b" 1 2 3 4", b"a\rb 1 2 3 x", b"\xff\xfe 1 2 3 \xff"],
)  # fmt: skip
def test_malformed_lines_are_left_out_and_counted(many, bad):
    words, numbers, path = many
    given = path.read_bytes().split(b"\n")
    path.write_bytes(b"\n".join([*given[:7], bad, *given[7:200], bad, *given[200:]]))
    vectors = open_word_file(path)
    assert vectors.malformed_lines == 2
    assert list(vectors.rows) == words
    np.testing.assert_array_equal(vectors.matrix, numbers)


def is_converted(path):
    """Whether opening a file converts it, which changes the modification time of the result."""
    about = path.with_name(f"{path.name}.ulr") / "about.json"
    before = about.stat().st_mtime_ns if about.exists() else None
    open_word_file(path)
    return about.stat().st_mtime_ns != before


def test_a_file_is_converted_once_to_a_folder_beside_it_and_mapped(many):
    *_, path = many
    assert [is_converted(path) for _ in range(3)] == [True, False, False]
    os.utime(path, ns=(1, 1))  # the same content
    assert not is_converted(path)
    assert isinstance(open_word_file(path).matrix.base, np.memmap)
    assert names(path.parent) == ["many.txt", "many.txt.ulr"]


@pytest.mark.parametrize(
    "change",
    [
        lambda path, folder: path.write_bytes(path.read_bytes().replace(b"word7 ", b"other ")),
        lambda path, folder: os.truncate(folder / "vectors.bin", 500),
        lambda path, folder: (folder / "vectors.bin").unlink(),
        lambda path, folder: (folder / "about.json").write_text("[1]"),
        lambda path, folder: os.truncate(folder / "about.json", 3000),
    ],
    ids=["source", "vectors cut", "vectors missing", "other JSON", "words cut"],
)
def test_a_changed_file_or_damaged_conversion_is_converted_again(many, change):
    _, numbers, path = many
    digest = open_word_file(path).sha256
    content = path.read_bytes()
    change(path, path.with_name("many.txt.ulr"))
    os.utime(path, ns=(1, 1))
    assert is_converted(path)
    vectors = open_word_file(path)
    np.testing.assert_array_equal(vectors.matrix, numbers)
    assert (vectors.sha256 == digest) == (path.read_bytes() == content)
    assert ("other" in vectors.rows) == (path.read_bytes() != content)


def test_user_cache_is_used_where_nothing_can_be_next_to_the_file(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    # With .ulr after it, the first name is longer than file systems allow.
    for name in ("v" * 250 + ".txt", "taken.txt"):
        path = plain(tmp_path / name, lines())
        if name == "taken.txt":
            (tmp_path / "taken.txt.ulr").mkdir()
            plain(tmp_path / "taken.txt.ulr" / "letters.txt", b"dear")
        for _ in range(2):
            np.testing.assert_array_equal(open_word_file(path).matrix, NUMBERS)
    assert len(names(tmp_path / "cache" / "ulr" / "derived")) == 2
    assert names(tmp_path / "taken.txt.ulr") == ["letters.txt"]


class Changes:
    """Progress that changes the file while it is read."""

    def __init__(self, path):
        self.path, self.total, self.done = path, None, 0

    def stage(self, name, total=None, unit="documents"):
        self.total = total

    def advance(self, count=1):
        self.done += count
        if self.path is not None:
            self.path.write_bytes(lines())


def test_progress_goes_to_the_size_of_a_file_which_may_not_change_meanwhile(many):
    *_, path = many
    progress = Changes(None)
    open_word_file(path, progress)
    assert progress.done == progress.total == path.stat().st_size
    shutil.rmtree(path.with_name("many.txt.ulr"))
    with pytest.raises(EncoderError, match="changed while it was read"):
        open_word_file(path, Changes(path))
    assert names(path.parent) == ["many.txt"]


def test_full_disk_leaves_nothing_behind(many, tmp_path):
    *_, path = many
    code = (
        "import resource, sys; from pathlib import Path\n"
        "from ulr.encoders.words import open_word_file\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (300, 300))\n"
        "try:\n    open_word_file(Path(sys.argv[1]))\n"
        "except ValueError as error:\n    print(error)"
    )
    run = run_python("-c", code, path, XDG_CACHE_HOME=str(tmp_path / "cache"))
    assert re.search(r"cannot be written to .*many.txt.ulr \(File.* nor to .*cache", run.stdout)
    assert {each.name for each in tmp_path.rglob("*") if each.is_file()} == {"many.txt"}


def locked(path):
    """An archive with a password."""
    content = bytearray(zipped(path, FORMS["glove"]).read_bytes())
    for place in (6, content.index(b"PK\x01\x02") + 8):
        content[place] |= 1
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "must have lines of a word and its numbers; it starts with ''"),
        (b"A text.\nAnother one, longer.\n", "a word and its numbers; it starts with 'A text.'"),
        (b"2 9\n\x80\x04\n\x95\n", "a word and 9 numbers; 2 of 2 lines are different"),
        (
            lines(["a"] * 300, np.ones((300, 4))) + b"short 1 2\n" * 4,
            "a word and 4 numbers; 4 of 304 lines are different, such as 'short 1 2'",
        ),
        (b"\x80\x04\x95" * 99, "it starts with '\ufffd.*…'"),
        (b"x" * (3 << 20), "it starts with 'xxx"),
        (
            lambda path: zipped(path, b"", "a.50d.txt", **{"a.100d.txt": ""}),
            r"it holds a\.50d\.txt, a\.100d\.txt\. Extract it",
        ),
        (
            lambda path: zipped(path, b"", "a.md", **{"b.bin": ""}),
            r"must hold one \.txt or \.vec file of word vectors; it holds a\.md, b\.bin\.",
        ),
        (locked, r"v\.txt cannot be extracted: .*password"),
        (Path.mkdir, r"there is no file of word vectors .*v\.txt"),
    ],
    ids="empty prose word2vec short binary endless two none locked missing".split(),
)
def test_other_files_are_refused(tmp_path, content, message):
    path = tmp_path / "v.txt"
    content(path) if callable(content) else plain(path, content)
    with pytest.raises(EncoderError, match=message):
        open_word_file(path)
    assert names(tmp_path) == ["v.txt"]


def cut_short(share):
    return lambda content: content[: int(share * len(content))]


def change_byte(content):
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 255]) + content[middle + 1 :]


@pytest.mark.parametrize("damage", [cut_short(0.2), cut_short(0.6), cut_short(0.99), change_byte])
@pytest.mark.parametrize("pack", [gzipped, zipped])
def test_packed_files_that_are_damaged_are_refused(many, tmp_path, pack, damage):
    path = pack(tmp_path / "packed", many[2].read_bytes())
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(EncoderError, match=r"packed cannot be extracted: .* download it again"):
        open_word_file(path)
    assert names(tmp_path) == ["many.txt", "packed"]


def test_the_only_file_of_vectors_of_an_archive_is_taken(tmp_path):
    others = {"README.md": "about", "__MACOSX/._v.vec": "x", "folder/": ""}
    path = zipped(tmp_path / "v.zip", FORMS["fasttext"], "folder/v.vec", **others)
    assert list(open_word_file(path).rows) == WORDS
