"""The vector cache: lookups, sharing, interruption, damage, and disks that are full."""

import pickle
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ulr.encoders import encode_texts
from ulr.encoders.cache import CachedEncoder, clear_cache, inspect_cache
from ulr.errors import EncoderError


class Letters:
    """Counts letters, and records the batches that it was given."""

    fingerprint = "letters"
    batch_texts = 10

    def __init__(self):
        self.asked = []

    def encode(self, texts, /):
        self.asked.append(list(texts))
        counts = [[text.count(chr(97 + i)) for i in range(26)] for text in texts]
        return np.array(counts, dtype=np.float32)


TEXTS = [f"{'abc' * (i % 7)} number {i % 31} {'xyz' * i}" for i in range(45)]


def files(folder, suffix="vectors"):
    return sorted(folder.glob(f"*/*.{suffix}"))


def test_vectors_are_those_of_the_encoder(tmp_path):
    plain = encode_texts(Letters(), TEXTS)
    cached = CachedEncoder(Letters(), tmp_path)
    np.testing.assert_array_equal(encode_texts(cached, TEXTS), plain)
    np.testing.assert_array_equal(encode_texts(cached, TEXTS), plain)


def test_a_second_run_encodes_nothing(tmp_path):
    first, second = Letters(), Letters()
    vectors = encode_texts(CachedEncoder(first, tmp_path), TEXTS)
    cached = CachedEncoder(second, tmp_path)
    np.testing.assert_array_equal(encode_texts(cached, TEXTS[::-1]), vectors[::-1])
    assert (first.asked != [], second.asked) == (True, [])
    assert (cached.found, cached.encoded) == (len(TEXTS), 0)


def test_a_text_that_occurs_twice_is_encoded_once(tmp_path):
    encoder = Letters()
    vectors = CachedEncoder(encoder, tmp_path).encode(["b", "a", "b", "", "a"])
    assert encoder.asked == [["b", "a", ""]]
    np.testing.assert_array_equal(vectors, Letters().encode(["b", "a", "b", "", "a"]))


def test_missing_texts_are_encoded_in_their_order(tmp_path):
    encoder = Letters()
    cached = CachedEncoder(encoder, tmp_path)
    cached.encode(["a", "c"])
    vectors = cached.encode(["d", "c", "b", "a", "d"])
    assert encoder.asked[1] == ["d", "b"]
    np.testing.assert_array_equal(vectors, Letters().encode(["d", "c", "b", "a", "d"]))


def test_similar_unicode_texts_are_different(tmp_path):
    texts = ["é", "e\u0301", "日本語", "\ud83d", "", " "]
    encoder = Letters()
    CachedEncoder(encoder, tmp_path).encode(texts)
    assert encoder.asked == [texts]


def test_encoders_do_not_share_vectors(tmp_path):
    other = Letters()
    other.fingerprint = "other letters"
    CachedEncoder(Letters(), tmp_path).encode(["a"])
    CachedEncoder(other, tmp_path).encode(["a"])
    assert other.asked == [["a"]]
    assert [entry.encoder for entry in inspect_cache(tmp_path)] != ["letters"]


def test_two_at_once_see_each_others_vectors(tmp_path):
    one, two = Letters(), Letters()
    first, second = CachedEncoder(one, tmp_path), CachedEncoder(two, tmp_path)
    first.encode(["a"])
    second.encode(["a", "b"])
    first.encode(["b", "a"])
    assert (one.asked, two.asked) == ([["a"]], [["b"]])


@pytest.mark.parametrize("suffix", ["keys", "vectors"])
@pytest.mark.parametrize("place", [0.005, 0.3, 0.6, 0.999])
def test_a_vector_with_a_damaged_byte_is_encoded_again(tmp_path, suffix, place):
    plain = encode_texts(CachedEncoder(Letters(), tmp_path), TEXTS)
    (file,) = files(tmp_path, suffix)
    content = bytearray(file.read_bytes())
    content[int(place * len(content))] ^= 0x10
    file.write_bytes(content)
    encoder = Letters()
    np.testing.assert_array_equal(encode_texts(CachedEncoder(encoder, tmp_path), TEXTS), plain)
    assert encoder.asked
    (entry,) = inspect_cache(tmp_path)
    assert entry.damaged_megabytes > 0
    encoder.asked.clear()
    np.testing.assert_array_equal(encode_texts(CachedEncoder(encoder, tmp_path), TEXTS), plain)
    assert encoder.asked == []


@pytest.mark.parametrize(
    ("suffix", "left", "n_batches"),
    [("vectors", 0, 5), ("vectors", 3, 5), ("vectors", 1500, 4), ("vectors", -1, 1),
     ("keys", 0, 5), ("keys", 11, 5), ("keys", 12, 5), ("keys", 300, 4), ("keys", -1, 1)],
)  # fmt: skip
def test_complete_vectors_of_a_truncated_file_are_found(tmp_path, suffix, left, n_batches):
    plain = encode_texts(CachedEncoder(Letters(), tmp_path), TEXTS)
    (file,) = files(tmp_path, suffix)
    file.write_bytes(file.read_bytes()[:left])
    encoder = Letters()
    np.testing.assert_array_equal(encode_texts(CachedEncoder(encoder, tmp_path), TEXTS), plain)
    assert len(encoder.asked) == n_batches


def test_other_files_are_ignored(tmp_path):
    CachedEncoder(Letters(), tmp_path).encode(["a"])
    (file,) = files(tmp_path)
    for suffix in ("keys", "vectors"):
        (file.parent / f"foreign.{suffix}").write_bytes(b"something else altogether" * 10)
    np.testing.assert_array_equal(
        CachedEncoder(Letters(), tmp_path).encode(["a", "b"]), Letters().encode(["a", "b"])
    )


WORKER = """
import sys, time
import numpy as np
from ulr.encoders import encode_texts
from ulr.encoders.cache import CachedEncoder
from test_cache import Letters, TEXTS

class Slow(Letters):
    def encode(self, texts, /):
        time.sleep(float(sys.argv[2]))
        print(len(texts), flush=True)
        return super().encode(texts)

cached = CachedEncoder(Slow(), sys.argv[1])
np.save(sys.argv[3], encode_texts(cached, TEXTS * 2))
"""


def work(folder, seconds, out):
    command = [sys.executable, "-c", WORKER, str(folder), str(seconds), str(out)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parent)


def test_a_killed_run_continues_with_the_same_batches(tmp_path):
    whole = Letters()
    encode_texts(CachedEncoder(whole, tmp_path / "whole"), TEXTS * 2)
    with work(tmp_path / "killed", 0.3, tmp_path / "out.npy") as process:
        for _ in range(3):
            process.stdout.readline()
        process.send_signal(signal.SIGKILL)
    assert not (tmp_path / "out.npy").exists()
    rest = Letters()
    vectors = encode_texts(CachedEncoder(rest, tmp_path / "killed"), TEXTS * 2)
    np.testing.assert_array_equal(vectors, encode_texts(Letters(), TEXTS * 2))
    assert 2 <= len(whole.asked) - len(rest.asked) <= 3
    assert rest.asked == whole.asked[-len(rest.asked) :]


def test_processes_that_share_a_cache_encode_each_text_once(tmp_path):
    workers = [work(tmp_path / "cache", 0.05, tmp_path / f"{i}.npy") for i in range(3)]
    n_encoded = 0
    for process in workers:
        out, _ = process.communicate(timeout=60)
        assert process.returncode == 0
        n_encoded += sum(map(int, out.split()))
    for i in range(3):
        np.testing.assert_array_equal(
            np.load(tmp_path / f"{i}.npy"), encode_texts(Letters(), TEXTS * 2)
        )
    (entry,) = inspect_cache(tmp_path / "cache")
    assert (n_encoded, entry.texts, entry.damaged_megabytes) == (len(TEXTS), len(TEXTS), 0)


FULL_DISK = """
import resource, sys
import numpy as np
from ulr.encoders import encode_texts
from ulr.encoders.cache import CachedEncoder
from test_cache import Letters, TEXTS

encoder = CachedEncoder(Letters(), sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), int(sys.argv[2])))
vectors = encode_texts(encoder, TEXTS)
print(np.array_equal(vectors, encode_texts(Letters(), TEXTS)), encoder.disabled, encoder.encoded)
"""


@pytest.mark.parametrize("n_bytes", [500, 1500, 10_000])
def test_full_disk_disables_the_cache_and_not_the_run(tmp_path, n_bytes):
    pytest.importorskip("resource")
    command = [sys.executable, "-c", FULL_DISK, str(tmp_path), str(n_bytes)]
    run = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parent)
    is_full = n_bytes < 10_000
    assert run.stdout == f"True {is_full} {len(TEXTS)}\n"
    assert run.stderr.count("cannot be written to") == is_full
    (entry,) = inspect_cache(tmp_path)
    assert entry.damaged_megabytes == 0
    assert entry.texts == {500: 0, 1500: 10, 10_000: len(TEXTS)}[n_bytes]


def test_a_deleted_cache_is_disabled_with_one_warning(tmp_path):
    encoder = CachedEncoder(Letters(), tmp_path / "cache")
    encoder.encode(["a"])
    shutil.rmtree(tmp_path / "cache")
    with pytest.warns(RuntimeWarning, match="cannot be written to") as warned:
        encode_texts(encoder, TEXTS)
    assert len(warned) == 1
    assert encoder.disabled


def test_languages_and_vocabulary_are_those_of_the_encoder(tmp_path):
    encoder = Letters()
    cached = CachedEncoder(encoder, tmp_path)
    assert (cached.languages, cached.knows_word) == (None, None)
    encoder.languages, encoder.knows_word = ("en", "de"), str.islower
    cached = CachedEncoder(encoder, tmp_path)
    assert cached.languages == ("en", "de")
    assert [cached.knows_word(word) for word in ("word", "Word")] == [True, False]


def test_inspecting_and_clearing(tmp_path):
    (tmp_path / "mine.txt").write_text("not part of the cache")
    CachedEncoder(Letters(), tmp_path).encode(["a", "b"])
    (entry,) = inspect_cache(tmp_path)
    assert (entry.encoder, entry.texts, entry.dimensions) == ("letters", 2, 26)
    assert entry.megabytes == pytest.approx((12 + 2 * (16 + 4) + 2 * 26 * 4) / 1e6)
    assert entry.damaged_megabytes == 0
    assert clear_cache(tmp_path) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
    assert inspect_cache(tmp_path) == []


def test_it_can_be_pickled(tmp_path):
    again = pickle.loads(pickle.dumps(CachedEncoder(Letters(), tmp_path)))
    np.testing.assert_array_equal(again.encode(["ab"]), Letters().encode(["ab"]))


def test_truncated_texts_are_unknown_once_vectors_were_found(tmp_path):
    encoder = Letters()
    encoder.truncated = 3
    cached = CachedEncoder(encoder, tmp_path)
    cached.encode(["a"])
    assert cached.truncated == 3
    cached.encode(["a"])
    assert cached.truncated is None


def test_an_encoder_without_a_fingerprint_is_refused(tmp_path):
    class Nameless:
        def encode(self, texts, /):
            return np.zeros((len(texts), 2), dtype=np.float32)

    with pytest.raises(EncoderError, match="Nameless has none; give it an attribute"):
        CachedEncoder(Nameless(), tmp_path)


def test_impossible_folders_are_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(EncoderError, match=r"the cache .*file cannot be used: Not a directory"):
        CachedEncoder(Letters(), tmp_path / "file")
    with pytest.raises(EncoderError, match="there is no cache"):
        inspect_cache(tmp_path / "nowhere")
