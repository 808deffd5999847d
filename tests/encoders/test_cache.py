"""The vector cache: found again, shared, resumed after a kill, and never believed when damaged."""

import pickle
import signal
import subprocess
import sys

import numpy as np
import pytest

from ulr.encoders import encode_texts
from ulr.encoders.cache import CachedEncoder, clear, look_into
from ulr.errors import EncoderError


class Letters:
    """A real if simple encoder: how often each letter occurs, and in what company it was asked."""

    fingerprint = "letters"
    texts_at_a_time = 10

    def __init__(self):
        self.asked = []

    def encode(self, texts, /):
        self.asked.append(list(texts))
        counts = [[text.count(chr(97 + i)) for i in range(26)] for text in texts]
        return np.array(counts, dtype=np.float32)


TEXTS = [f"{'abc' * (i % 7)} number {i % 31} {'xyz' * i}" for i in range(45)]


def files(folder):
    return sorted(folder.glob("*/*.vectors"))


def test_vectors_are_the_encoders_own(tmp_path):
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


def test_only_what_is_missing_is_encoded_in_the_order_of_the_texts(tmp_path):
    encoder = Letters()
    cached = CachedEncoder(encoder, tmp_path)
    cached.encode(["a", "c"])
    vectors = cached.encode(["d", "c", "b", "a", "d"])
    assert encoder.asked[1] == ["d", "b"]
    np.testing.assert_array_equal(vectors, Letters().encode(["d", "c", "b", "a", "d"]))


def test_unicode_and_half_characters_are_texts_of_their_own(tmp_path):
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
    assert [entry.encoder for entry in look_into(tmp_path)] != ["letters"]


def test_two_at_once_see_each_others_vectors(tmp_path):
    one, two = Letters(), Letters()
    first, second = CachedEncoder(one, tmp_path), CachedEncoder(two, tmp_path)
    first.encode(["a"])
    second.encode(["a", "b"])
    first.encode(["b", "a"])
    assert (one.asked, two.asked) == ([["a"]], [["b"]])


@pytest.mark.parametrize("place", [0.3, 0.6, 0.999])
def test_a_damaged_byte_is_noticed_and_its_block_made_anew(tmp_path, place):
    plain = encode_texts(CachedEncoder(Letters(), tmp_path), TEXTS)
    (file,) = files(tmp_path)
    content = bytearray(file.read_bytes())
    content[int(place * len(content))] ^= 0x10
    file.write_bytes(content)
    encoder = Letters()
    np.testing.assert_array_equal(encode_texts(CachedEncoder(encoder, tmp_path), TEXTS), plain)
    assert encoder.asked
    (entry,) = look_into(tmp_path)
    assert entry.damaged_megabytes > 0
    encoder.asked.clear()
    np.testing.assert_array_equal(encode_texts(CachedEncoder(encoder, tmp_path), TEXTS), plain)
    assert encoder.asked == []


@pytest.mark.parametrize("left", [0, 3, 24, 1500, -1])
def test_a_file_cut_off_anywhere_gives_what_is_whole(tmp_path, left):
    plain = encode_texts(CachedEncoder(Letters(), tmp_path), TEXTS)
    (file,) = files(tmp_path)
    file.write_bytes(file.read_bytes()[:left])
    encoder = Letters()
    np.testing.assert_array_equal(encode_texts(CachedEncoder(encoder, tmp_path), TEXTS), plain)
    assert len(encoder.asked) == (1 if left == -1 else 5 if left < 1500 else 4)


def test_a_file_that_is_none_of_its_own_is_left_alone(tmp_path):
    cached = CachedEncoder(Letters(), tmp_path)
    cached.encode(["a"])
    (file,) = files(tmp_path)
    (file.parent / "foreign.vectors").write_bytes(b"something else altogether" * 10)
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
    here = str(__file__).rpartition("/")[0]
    command = [sys.executable, "-c", WORKER, str(folder), str(seconds), str(out)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=here)


def test_a_killed_run_goes_on_where_it_died_in_the_same_company(tmp_path):
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


def test_two_processes_may_share_it(tmp_path):
    both = [work(tmp_path / "cache", 0.02, tmp_path / f"{i}.npy") for i in range(2)]
    for process in both:
        process.communicate(timeout=60)
        assert process.returncode == 0
    for i in range(2):
        np.testing.assert_array_equal(
            np.load(tmp_path / f"{i}.npy"), encode_texts(Letters(), TEXTS * 2)
        )
    (entry,) = look_into(tmp_path / "cache")
    assert entry.damaged_megabytes == 0


def test_looking_and_clearing(tmp_path):
    (tmp_path / "mine.txt").write_text("not of the cache")
    CachedEncoder(Letters(), tmp_path).encode(["a", "b"])
    (entry,) = look_into(tmp_path)
    assert (entry.encoder, entry.texts, entry.dimensions) == ("letters", 2, 26)
    assert entry.megabytes == pytest.approx((24 + 2 * 16 + 2 * 26 * 4) / 1e6)
    assert clear(tmp_path) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
    assert look_into(tmp_path) == []


def test_it_can_be_sent_to_another_process(tmp_path):
    class_of_module = pickle.loads(pickle.dumps(CachedEncoder(Letters(), tmp_path)))
    np.testing.assert_array_equal(class_of_module.encode(["ab"]), Letters().encode(["ab"]))


def test_how_many_texts_were_cut_is_not_known_of_found_ones(tmp_path):
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

    with pytest.raises(EncoderError, match="fingerprint, and Nameless has none; give it"):
        CachedEncoder(Nameless(), tmp_path)


def test_a_folder_that_cannot_be_is_one_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(EncoderError, match=r"the cache .*file cannot be used: Not a directory"):
        CachedEncoder(Letters(), tmp_path / "file")
    with pytest.raises(EncoderError, match="there is no cache"):
        look_into(tmp_path / "nowhere")
