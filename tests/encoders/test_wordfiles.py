"""Files of word vectors: every form read alike, converted once, whole or not at all."""

import gzip
import json
import os
import re
import signal
import subprocess
import sys
import zipfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ulr.encoders.vocabulary import Vocabulary, WordVectors
from ulr.encoders.wordfiles import open_word_file
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
FILES = ["about.json", "hashes.npy", "offsets.npy", "rows.npy", "vectors.npy", "words.npy"]

CONVERT = """
import sys
from ulr.encoders.wordfiles import open_word_file

def wait(done, size):
    print(done, flush=True)
    sys.stdin.readline()

open_word_file(sys.argv[1], sys.argv[2], wait, checkpoint_bytes=2000)
"""


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


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def found(vectors):
    return [vectors.vocabulary[row] for row in range(len(vectors.vocabulary))]


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
    assert found(vectors) == WORDS
    np.testing.assert_array_equal(vectors.matrix, NUMBERS)
    assert vectors.vocabulary.rows(WORDS[::-1]).tolist() == list(range(9))[::-1]
    assert vectors.malformed_lines == vectors.duplicate_words == vectors.replaced_words == 0


def test_the_hash_is_of_the_content_however_it_is_packed(tmp_path):
    hashes = {
        open_word_file(pack(tmp_path / pack.__name__, FORMS[form])).sha256
        for pack, form in [(plain, "glove"), (gzipped, "word2vec"), (zipped, "fasttext")]
    }
    assert len(hashes) == 1
    other = open_word_file(plain(tmp_path / "other", lines(numbers=NUMBERS + 1)))
    assert other.sha256 not in hashes


def test_numbers_are_the_nearest_floats(tmp_path):
    # The fourth is just below the middle of two floats; by way of a double it would go up.
    texts = ["0.1", "1e-05", "-3.4028234e38", "1.00000017881393432617", "7"]
    path = plain(tmp_path / "v.txt", f"a {' '.join(texts)}\nb c {' '.join(texts)}\n".encode())
    expected = np.array(texts, dtype=np.float32)
    expected[3] = np.nextafter(np.float32(1), np.float32(2))
    np.testing.assert_array_equal(open_word_file(path).matrix, [expected, expected])


def test_words_may_have_spaces(tmp_path):
    words = [".", ". . .", "at name@domain.com", "0.5", "1 of 2", "x"]
    vectors = open_word_file(plain(tmp_path / "v.txt", lines(words, NUMBERS[:6])))
    assert found(vectors) == words
    np.testing.assert_array_equal(vectors.matrix, NUMBERS[:6])


def test_a_single_line_is_enough(tmp_path):
    vectors = open_word_file(plain(tmp_path / "v.txt", b"one 1 2 3 4"))
    assert (found(vectors), vectors.matrix.tolist()) == (["one"], [[1, 2, 3, 4]])


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
    assert found(vectors) == words
    np.testing.assert_array_equal(vectors.matrix, numbers)


def test_more_than_one_malformed_line_in_a_hundred_is_refused(many):
    _, _, path = many
    given = path.read_bytes().split(b"\n")
    path.write_bytes(b"\n".join([*given[:7], *[b"short 1 2"] * 4, *given[7:]]))
    message = "4 of 304 lines are not a word and 4 numbers; the first is line 8, 'short 1 2'"
    with pytest.raises(EncoderError, match=message):
        open_word_file(path)
    assert names(path.parent) == ["many.txt"]


def test_of_a_word_given_twice_the_first_counts(tmp_path):
    path = plain(tmp_path / "v.txt", b"a 1 1\nb 2 2\na 3 3\na 4 4\nc 5 5\nb 6 6\n")
    vectors = open_word_file(path)
    assert vectors.matrix[vectors.vocabulary.rows(["a", "b", "c"])][:, 0].tolist() == [1, 2, 5]
    assert vectors.duplicate_words == 3


def test_what_is_not_utf8_is_replaced_and_counted(tmp_path):
    vectors = open_word_file(plain(tmp_path / "v.txt", b"a 1 1\ncaf\xe9 2 2\nna\xc3\xafve 3 3\n"))
    assert found(vectors) == ["a", "caf\ufffd", "naïve"]
    assert vectors.replaced_words == 1


@settings(deadline=None, max_examples=50)
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), max_size=20))
def test_words_are_found_and_others_are_not(words):
    vocabulary = Vocabulary.of(words)
    assert vocabulary.rows(words).tolist() == [words.index(word) for word in words]
    others = [word + "x" for word in words if word + "x" not in words]
    assert (vocabulary.rows(others) == -1).all()
    assert vocabulary.duplicates == len(words) - len(set(words))


def test_words_that_share_a_hash_are_told_apart():
    # The two halves of the Thue-Morse sequence agree under every polynomial modulo 2**64.
    signs = [bin(i).count("1") % 2 for i in range(4096)]
    one, two = ("".join("ab"[sign ^ flip] for sign in signs) for flip in (0, 1))
    assert len(set(Vocabulary.of([one, two])._hashes.tolist())) == 1
    assert Vocabulary.of(["x", two, one, two]).rows([one, two, "y"]).tolist() == [2, 1, -1]
    assert Vocabulary.of([one]).rows([two, one]).tolist() == [-1, 0]


def test_conversion_is_mapped_and_lies_beside_the_file(many):
    _, _, path = many
    vectors = open_word_file(path)
    assert isinstance(vectors.matrix.base, np.memmap)
    assert names(path.parent) == ["many.txt", "many.txt.ulr"]
    assert names(path.parent / "many.txt.ulr") == FILES


def test_blocks_do_not_matter(many, tmp_path):
    _, _, path = many
    for size in (500, 2000, 1 << 20):
        open_word_file(path, tmp_path / f"cache{size}", checkpoint_bytes=size)
    folders = [next((tmp_path / f"cache{size}").iterdir()) for size in (500, 2000, 1 << 20)]
    assert all(contents(folder) == contents(folders[0]) for folder in folders[1:])


def test_progress_goes_to_the_size_of_the_file(many):
    _, _, path = many
    calls = []
    open_word_file(path, None, lambda *call: calls.append(call), checkpoint_bytes=2000)
    size = path.stat().st_size
    assert len(calls) > 3
    assert calls == sorted(calls)
    assert {of for _, of in calls} == {size}
    assert calls[-1] == (size, size)


@pytest.mark.parametrize("pack", [plain, zipped])
def test_killed_conversion_goes_on_to_the_same_bytes(many, tmp_path, pack):
    path = pack(tmp_path / "packed", many[2].read_bytes())
    open_word_file(path, tmp_path / "whole")
    (whole,) = (tmp_path / "whole").iterdir()
    cache = tmp_path / "killed"
    process = start(path, cache)
    for _ in range(3):
        process.stdout.readline()
        print(file=process.stdin, flush=True)
    process.stdout.readline()
    process.send_signal(signal.SIGKILL)
    process.communicate()
    (partial,) = cache.iterdir()
    progress = json.loads((partial / "progress.json").read_text())
    assert partial.name.endswith(".partial")
    assert progress["text_bytes"] >= 8000
    calls = []
    open_word_file(path, cache, lambda *call: calls.append(call), checkpoint_bytes=2000)
    assert names(cache) == [whole.name]
    assert contents(cache / whole.name) == contents(whole)
    uninterrupted = []
    open_word_file(
        path, tmp_path / "c", lambda *call: uninterrupted.append(call), checkpoint_bytes=2000
    )
    assert len(calls) <= len(uninterrupted) - 4


def test_progress_that_is_ahead_of_its_files_is_not_trusted(many, tmp_path):
    path, cache = many[2], tmp_path / "cache"
    process = start(path, cache)
    process.stdout.readline()
    process.kill()
    process.communicate()
    (partial,) = cache.iterdir()
    os.truncate(partial / "vectors.npy", 200)
    np.testing.assert_array_equal(open_word_file(path, cache).matrix, many[1])


def test_second_process_waits_and_takes_what_the_first_made(many, tmp_path):
    path, cache = many[2], tmp_path / "cache"
    first = start(path, cache)
    first.stdout.readline()
    others = [start(path, cache) for _ in range(2)]
    with pytest.raises(subprocess.TimeoutExpired):
        others[0].wait(1)
    assert first.communicate("\n" * 100)[1] == ""
    for other in others:
        assert other.communicate() == ("", "")
        assert other.returncode == 0
    (folder,) = cache.iterdir()
    assert names(folder) == FILES
    np.testing.assert_array_equal(open_word_file(path, cache).matrix, many[1])


def test_many_processes_at_once_all_succeed(many, tmp_path):
    path, cache = many[2], tmp_path / "cache"
    processes = [start(path, cache) for _ in range(3)]
    for process in processes:
        print("\n" * 100, file=process.stdin, flush=True)
    assert [process.communicate()[1] for process in processes] == [""] * 3
    (folder,) = cache.iterdir()
    assert names(folder) == FILES


def start(path, cache):
    """A process that converts, and waits for a line after every step."""
    cache.mkdir(exist_ok=True)
    return subprocess.Popen(
        [sys.executable, "-c", CONVERT, path, cache],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("name", FILES)
def test_damaged_conversion_is_made_anew(many, name):
    path = many[2]
    open_word_file(path)
    folder = path.with_name("many.txt.ulr")
    before = contents(folder)
    os.truncate(folder / name, 100)
    np.testing.assert_array_equal(open_word_file(path).matrix, many[1])
    (folder / name).unlink()
    np.testing.assert_array_equal(open_word_file(path).matrix, many[1])
    assert contents(folder) == before
    assert names(path.parent) == ["many.txt", "many.txt.ulr"]


def test_conversion_of_another_format_is_made_anew(many):
    path = many[2]
    open_word_file(path)
    about = path.with_name("many.txt.ulr") / "about.json"
    before = about.read_bytes()
    about.write_bytes(before.replace(b'"format": 1', b'"format": 0'))
    open_word_file(path)
    assert about.read_bytes() == before


def test_touched_file_keeps_its_conversion(many):
    path = many[2]
    open_word_file(path)
    vectors = path.with_name("many.txt.ulr") / "vectors.npy"
    made = vectors.stat()
    os.utime(path, (1, 1))
    open_word_file(path)
    assert os.path.samestat(vectors.stat(), made)
    about = json.loads(vectors.with_name("about.json").read_text())
    assert about["stamp"] == [path.stat().st_size, 10**9]


def test_changed_file_is_converted_anew(many):
    words, numbers, path = many
    open_word_file(path)
    path.write_bytes(lines(words, numbers * 2))
    np.testing.assert_array_equal(open_word_file(path).matrix, numbers * 2)
    assert names(path.parent) == ["many.txt", "many.txt.ulr"]


def test_mapped_vectors_outlive_the_replacement_of_their_files(many):
    words, numbers, path = many
    older = open_word_file(path)
    path.write_bytes(lines(words, numbers * 2))
    open_word_file(path)
    np.testing.assert_array_equal(older.matrix, numbers)


def test_unchanged_file_is_not_read_again(many):
    _, numbers, path = many
    open_word_file(path)
    stat = path.stat()
    path.write_bytes(bytes(stat.st_size))
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    np.testing.assert_array_equal(open_word_file(path).matrix, numbers)


def test_files_of_one_name_do_not_meet_in_a_cache(tmp_path):
    for folder, factor in (("a", 1), ("b", 2)):
        (tmp_path / folder).mkdir()
        path = plain(tmp_path / folder / "v.txt", lines(numbers=NUMBERS * factor))
        vectors = open_word_file(path, tmp_path / "deep" / "cache")
        np.testing.assert_array_equal(vectors.matrix, NUMBERS * factor)
        assert names(path.parent) == ["v.txt"]
    assert len(names(tmp_path / "deep" / "cache")) == 2


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is read-only to this user")
def test_beside_a_file_in_a_folder_to_be_read_only_nothing_is_written(many, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "of user"))
    folder = tmp_path / "shared"
    folder.mkdir()
    path = plain(folder / "v.txt", FORMS["glove"])
    folder.chmod(0o555)
    np.testing.assert_array_equal(open_word_file(path).matrix, NUMBERS)
    assert names(folder) == ["v.txt"]
    assert len(names(tmp_path / "of user" / "ulr" / "words")) == 1
    folder.chmod(0o755)


def test_a_file_that_changes_while_it_is_read_is_refused(many):
    path = many[2]

    def append(done, size):
        with path.open("ab") as file:
            file.write(b"late 1 2 3 4\n")

    with pytest.raises(EncoderError, match=r"many\.txt changed while it was read; try again"):
        open_word_file(path, None, append, checkpoint_bytes=2000)
    assert names(path.parent) == ["many.txt"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is not a file of word vectors: a line must be .*; it has no lines"),
        (b"A text.\nAnother one, longer.\n", "word and its numbers; it has line 1, 'A text.'"),
        (b"word\n" * 9, "is not a file of word vectors: .* it has line 1, 'word'"),
        (b"1 x\n1 2\n1 2 3\n", "2 of 3 lines are not a word and 1 numbers; .* line 1, '1 x'"),
        (b"\x80\x04\x95" * 99, "it has line 1, '\ufffd.*…'"),
        (b"x" * (17 << 20), "it has a line of more than 16 MB"),
    ],
    ids=["empty", "prose", "words", "hardly any", "binary", "endless line"],
)
def test_other_files_are_refused(tmp_path, content, message):
    path = plain(tmp_path / "v.txt", content)
    with pytest.raises(EncoderError, match=message):
        open_word_file(path)
    assert names(tmp_path) == ["v.txt"]


def test_other_files_are_refused_early(many):
    path = plain(many[2], b"no vectors here\n" * 1000)
    calls = []
    with pytest.raises(EncoderError, match="it has line 1, 'no vectors here'"):
        open_word_file(path, None, lambda *call: calls.append(call), checkpoint_bytes=2000)
    assert calls == []


@pytest.mark.parametrize("kept", [0.2, 0.6, 0.99])
@pytest.mark.parametrize("pack", [gzipped, zipped])
def test_packed_files_that_are_cut_short_are_refused(many, tmp_path, pack, kept):
    path = pack(tmp_path / "packed", many[2].read_bytes())
    os.truncate(path, int(path.stat().st_size * kept))
    with pytest.raises(EncoderError, match="packed is cut short or damaged; get it anew"):
        open_word_file(path, tmp_path / "cache", checkpoint_bytes=2000)
    assert names(tmp_path / "cache") == []


def test_damaged_archives_are_refused(many, tmp_path):
    path = zipped(tmp_path / "packed.zip", many[2].read_bytes())
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 255
    path.write_bytes(content)
    with pytest.raises(EncoderError, match="is cut short or damaged"):
        open_word_file(path, tmp_path / "cache", checkpoint_bytes=2000)
    assert names(tmp_path / "cache") == []


def test_the_only_file_of_vectors_of_an_archive_is_taken(tmp_path):
    others = {"README.md": "about", "__MACOSX/._v.vec": "x", "folder/": ""}
    path = zipped(tmp_path / "v.zip", FORMS["fasttext"], "folder/v.vec", **others)
    assert found(open_word_file(path)) == WORDS


@pytest.mark.parametrize(
    ("name", "others", "message"),
    [
        ("a.50d.txt", {"a.100d.txt": ""}, r"it holds a\.50d\.txt, a\.100d\.txt\. Unpack it"),
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
    with pytest.raises(EncoderError, match=r"v\.zip cannot be unpacked: .*password"):
        open_word_file(path)


def test_missing_files_are_named(tmp_path):
    for path in (tmp_path / "none.txt", tmp_path):
        message = f"there is no file of word vectors {re.escape(str(path))}"
        with pytest.raises(EncoderError, match=message):
            open_word_file(path)


@pytest.mark.parametrize(("words", "shape"), [(["a"], (2, 3)), (["a", "b"], (2,)), ([], (0, 3))])
def test_words_without_a_vector_each_are_refused(words, shape):
    with pytest.raises(EncoderError, match="words need one vector each"):
        WordVectors.of(words, np.ones(shape, dtype=np.float32))
